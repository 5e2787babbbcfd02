public import Signatures

/// A receipt of Apple's fraud assessment, read and not judged: a CMS message in BER.
///
/// Each attestation has one inside, which its signature does not cover. Newer ones come from
/// Apple's server.
public struct UnverifiedReceipt: Sendable {
    /// The longest receipt that is read. 3…4 KiB have been seen.
    public static let bytesMax = 32 * 1024

    /// The receipt, to be kept and sent back to Apple unchanged.
    public let bytes: [UInt8]
    /// The fields of the receipt.
    public let fields: ReceiptFields
    let message: SignedMessage

    /// Reads a receipt. Throws `.malformed`.
    public init(bytes: [UInt8]) throws(ReceiptRefusal) {
        guard bytes.count <= Self.bytesMax else {
            throw ReceiptRefusal(.malformed, "\(bytes.count) bytes are too many")
        }
        do throws(SignedMessage.Failure) {
            message = try SignedMessage(ber: ContiguousArray(bytes).span)
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

extension UnverifiedReceipt {
    /// The extension that marks the certificates of Apple's "Application Attestation Fraud Receipt
    /// Signing".
    package static let signerOID = OID("1.2.840.113635.100.12.15")

    /// The greatest age of a receipt that was just obtained.
    public struct Freshness: Sendable {
        /// The moment to compare with.
        public let now: UnixTime
        /// The most seconds between the creation of the receipt and `now`, in either direction.
        /// Apple says five minutes; the other direction allows for clocks that differ.
        public let secondsMax: Int64

        /// Allows a receipt of the last `secondsMax` seconds.
        public init(now: UnixTime, secondsMax: Int64) {
            self.now = now
            self.secondsMax = secondsMax
        }
    }

    /// Checks this receipt, in the order of Apple's "Assessing fraud risk", "Verify the receipt";
    /// the numbers below are its checks. Check 3, parsing, is done by the initialiser.
    ///
    /// - Parameters:
    ///   - appIDs: the App IDs that are accepted.
    ///   - key: the key that was attested.
    ///   - roots: the authorities that are trusted: ``AppleRoots/rootG3``, not the one of
    ///     attestations.
    ///   - freshness: check 5, or `nil` where a receipt is not new: one that was stored, or a
    ///     sample.
    /// - Returns: the proof.
    /// - Throws: the first check that fails.
    public func verified(
        appIDs: [String],
        key: P256PublicKey,
        roots: [X509Certificate],
        freshness: Freshness?
    ) throws(ReceiptRefusal) -> VerifiedReceipt {
        // Check 1: the signature, over the content itself.
        let signer: X509Certificate
        do throws(SignedMessage.Failure) {
            signer = try message.verifiedSigner()
        } catch {
            throw ReceiptRefusal(.signatureMismatch, error.reason.rawValue)
        }
        // Check 2: the chain, at the moment when the receipt was made, which the signature covers.
        // A signer's certificate lives for about 13 months. Receipts are kept for longer, so the
        // certificate may have expired since.
        do throws(X509CertificateError) {
            _ = try signer.path(
                through: message.certificates.filter { $0 !== signer },
                to: roots,
                at: fields.creationTime
            )
        } catch {
            let isTime = error.reason == .expired || error.reason == .notYetValid
            throw ReceiptRefusal(isTime ? .certificateExpired : .certificateUntrusted, error.detail)
        }
        // Not among Apple's checks: the certificate must be one for signing receipts. The same root
        // vouches for keys of other parties, such as Apple Pay merchants, which could sign any
        // text. The certificate of every receipt's signer has this extension.
        guard signer.extensionBytes(Self.signerOID) != nil else {
            throw ReceiptRefusal(.certificateUntrusted, "the signer is none for receipts")
        }
        // Check 4.
        guard appIDs.contains(fields.appID) else {
            throw ReceiptRefusal(.appMismatch, "field 2 is no accepted App ID")
        }
        // Check 5.
        if let freshness { try check(freshness) }
        // Check 6. Field 3 is a certificate; its key is compared.
        guard fields.certificate.p256PublicKey == key else {
            throw ReceiptRefusal(.keyMismatch, "field 3 is of another key")
        }
        return VerifiedReceipt(bytes: bytes, fields: fields)
    }

    private func check(_ freshness: Freshness) throws(ReceiptRefusal) {
        let created = fields.creationTime
        guard freshness.now <= created.advanced(bySeconds: freshness.secondsMax) else {
            throw ReceiptRefusal(.tooOld, "made at \(created.iso8601)")
        }
        guard created <= freshness.now.advanced(bySeconds: freshness.secondsMax) else {
            throw ReceiptRefusal(.tooOld, "made in the future, at \(created.iso8601)")
        }
    }
}

/// The proof that a receipt passed every check. Only `UnverifiedReceipt.verified(…)` makes one.
public struct VerifiedReceipt: Sendable {
    /// The receipt, to be kept and sent back to Apple unchanged.
    public let bytes: [UInt8]
    /// The fields of the receipt.
    public let fields: ReceiptFields
}

/// A proof can be written and not read: decoded bytes would prove nothing. A server stores the
/// bytes of a receipt and verifies them again. ``ReceiptFields`` can be read back.
extension VerifiedReceipt: Encodable {
    private enum CodingKeys: String, CodingKey {
        case bytes = "receipt"
        case fields
    }
}

/// Why a receipt was refused.
public typealias ReceiptRefusal = ObjectRefusal<ReceiptRefusalReason>

/// The check of a receipt that failed.
@nonexhaustive
public enum ReceiptRefusalReason: String, RefusalReason {
    /// Not a receipt: the message or its contents are malformed (check 3).
    case malformed = "receipt-malformed"
    /// Check 1: not signed by the certificate it names.
    case signatureMismatch = "receipt-signature-mismatch"
    /// Check 2: the certificates do not lead to a given root.
    case certificateUntrusted = "certificate-untrusted"
    /// Check 2: a certificate was not valid when the receipt was made.
    case certificateExpired = "certificate-expired"
    /// Check 4: for another app.
    case appMismatch = "app-mismatch"
    /// Check 5: made too long ago, or in the future.
    case tooOld = "receipt-too-old"
    /// Check 6: for another key.
    case keyMismatch = "receipt-key-mismatch"
    /// Renewed: of type ATTEST instead of RECEIPT.
    case kindMismatch = "receipt-kind-mismatch"
    /// Renewed: of the other environment, or of none.
    case environmentMismatch = "receipt-environment-mismatch"
    /// Renewed: not newer than the receipt that was sent.
    case notNewer = "receipt-not-newer"
    /// Renewed: field 19 or 21 is missing or implausible.
    case periodImplausible = "receipt-period-implausible"

    /// The operator's text about the reason.
    public var advice: RefusalAdvice {
        switch self {
        case .malformed:
            RefusalAdvice(
                "The bytes are not a receipt of App Attest.",
                "Keep and send receipts as they came, without encoding them anew."
            )
        case .signatureMismatch:
            RefusalAdvice(
                "The receipt is not signed by the certificate that it names.",
                "The receipt was changed on its way or in the store."
            )
        case .certificateUntrusted:
            RefusalAdvice(
                "The certificates of the receipt do not lead to a trusted root.",
                "Check the roots: AppleRoots.rootG3, which is not the one of attestations."
            )
        case .certificateExpired:
            RefusalAdvice(
                "A certificate was not valid when the receipt was made.",
                "Ask Apple's server for a newer receipt."
            )
        case .appMismatch:
            RefusalAdvice(
                "The receipt is for an app that is not accepted.",
                "Check the App ID: team id, full stop, bundle identifier."
            )
        case .tooOld:
            RefusalAdvice(
                "The receipt was made too long ago, or in the future.",
                "Check the server's clock, and verify a receipt when it arrives."
            )
        case .keyMismatch:
            RefusalAdvice(
                "The receipt is for another key.",
                "Check that the receipt is stored with the key it came with."
            )
        case .kindMismatch:
            RefusalAdvice(
                "The receipt is an attestation's, where a renewed one is expected.",
                "Check which receipt is looked at: Apple's server answers with type RECEIPT."
            )
        case .environmentMismatch:
            RefusalAdvice(
                "The receipt is not of the key's environment.",
                "Check the host: development keys have one of their own."
            )
        case .notNewer:
            RefusalAdvice(
                "The receipt is not newer than the one that was sent.",
                "Keep the stored receipt, and ask again later."
            )
        case .periodImplausible:
            RefusalAdvice(
                "The times at which the receipt may be renewed are missing or impossible.",
                "Keep the stored receipt. Report it when it lasts: Apple may have changed receipts."
            )
        }
    }
}
