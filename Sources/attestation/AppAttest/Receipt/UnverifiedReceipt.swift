internal import Cryptography

/// A receipt of Apple's fraud assessment as it came, read and not judged: a CMS message in BER.
///
/// One is inside each attestation, which does not cover it; refreshed ones come from Apple's
/// server.
public struct UnverifiedReceipt: Sendable {
    /// The longest receipt that is read. 3…4 KiB have been seen.
    public static let octetsMax = 32 * 1024

    /// The receipt, to be kept and sent back to Apple as it is.
    public let octets: [UInt8]
    /// What it says.
    public let fields: ReceiptFields
    let message: SignedMessage

    /// Reads a receipt. Throws `.malformed`.
    public init(octets: [UInt8]) throws(ReceiptRefusal) {
        guard octets.count <= Self.octetsMax else {
            throw ReceiptRefusal(.malformed, "\(octets.count) octets are too many")
        }
        do throws(SignedMessage.Failure) {
            message = try SignedMessage(ber: octets.span)
        } catch {
            throw ReceiptRefusal(.malformed, "not a CMS SignedData of one signer with content")
        }
        self.octets = octets
        fields = try ReceiptFields(message.content)
    }
}
