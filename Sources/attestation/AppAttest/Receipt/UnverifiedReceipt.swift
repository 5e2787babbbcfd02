internal import Cryptography

/// A receipt of Apple's fraud assessment as it came, read and not judged: a CMS message in BER.
///
/// One is inside each attestation, which does not cover it; refreshed ones come from Apple's
/// server.
public struct UnverifiedReceipt: Sendable {
    /// The longest receipt that is read. 3…4 KiB have been seen.
    public static let bytesMax = 32 * 1024

    /// The receipt, to be kept and sent back to Apple as it is.
    public let bytes: [UInt8]
    /// What it says.
    public let fields: ReceiptFields
    let message: SignedMessage

    /// Reads a receipt. Throws `.malformed`.
    public init(bytes: [UInt8]) throws(ReceiptRefusal) {
        guard bytes.count <= Self.bytesMax else {
            throw ReceiptRefusal(.malformed, "\(bytes.count) bytes are too many")
        }
        do throws(SignedMessage.Failure) {
            message = try SignedMessage(ber: bytes.span)
        } catch {
            throw ReceiptRefusal(.malformed, "not a CMS SignedData of one signer with content")
        }
        self.bytes = bytes
        fields = try ReceiptFields(message.content)
    }

    /// Reads a receipt, from `Data` or any other bytes. Throws `.malformed`.
    public init(bytes: some Sequence<UInt8>) throws(ReceiptRefusal) {
        try self.init(bytes: Array(bytes))
    }
}
