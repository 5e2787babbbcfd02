import AppAttest
import KeyStore

extension ReceiptState {
    /// What is known of an attestation's receipt.
    init(_ fields: ReceiptFields) {
        self.init(
            createdAt: fields.creationTime.seconds,
            expiresAt: fields.expirationTime?.seconds
        )
    }
}
