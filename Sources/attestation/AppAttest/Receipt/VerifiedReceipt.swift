/// The proof that a receipt passed every check. Only `UnverifiedReceipt.verified(…)` makes one.
public struct VerifiedReceipt: Sendable {
    /// The receipt, to be kept and sent back to Apple as it is.
    public let bytes: [UInt8]
    /// What it says.
    public let fields: ReceiptFields

    init(bytes: [UInt8], fields: ReceiptFields) {
        self.bytes = bytes
        self.fields = fields
    }
}
