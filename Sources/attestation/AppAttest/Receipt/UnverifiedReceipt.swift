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

extension UnverifiedReceipt {
    /// The conditions for a receipt that Apple's server gave in exchange for an older one, besides
    /// those for every receipt.
    public struct Exchange: Sendable {
        /// The environment of the key, which field 7 must name; `nil` for a key of a test
        /// authority, whose receipts may name either.
        public let environment: AttestationEnvironment?
        /// When the older receipt was made; `nil` when that is unknown.
        public let previousCreation: UnixTime?
        /// Check 5, or `nil` where the receipt is not new: one that was stored, or a sample.
        public let freshness: Freshness?

        /// An exchange of a receipt that was made at `previousCreation`.
        public init(
            environment: AttestationEnvironment?,
            previousCreation: UnixTime?,
            freshness: Freshness?
        ) {
            self.environment = environment
            self.previousCreation = previousCreation
            self.freshness = freshness
        }
    }

    /// The most seconds from creation to field 19. Apple's receipts have a day.
    public static let notBeforeSecondsMax: Int64 = 30 * 86_400
    /// The fewest seconds from creation to field 21.
    public static let lifetimeSecondsMin: Int64 = 86_400
    /// The most seconds from creation to field 21. Apple's receipts have 90 days.
    public static let lifetimeSecondsMax: Int64 = 400 * 86_400
    /// The highest accepted risk metric: more than twenty keys a minute for 30 days. Apple's limits
    /// keep a device far below it. 1…15 have been seen.
    public static let riskMetricMax: UInt32 = 1_000_000

    /// Checks a receipt that came in exchange for an older one. It runs Apple's six checks first.
    /// Then the receipt must be, in this order, of type RECEIPT, of the key's environment, and
    /// newer than the older one, and fields 19 and 21 must be present and plausible.
    ///
    /// Apple's list has only the six. Without the others, a client could put another receipt in the
    /// place of a new one: an attestation's receipt, which has no metric, or an earlier one with a
    /// lower metric.
    ///
    /// - Parameters:
    ///   - appIDs: the App IDs that are accepted.
    ///   - key: the key that was attested.
    ///   - roots: the authorities that are trusted: ``AppleRoots/rootG3``.
    ///   - exchange: what was exchanged.
    /// - Returns: the proof, and what is to be stored beside the receipt.
    /// - Throws: the first check that fails.
    public func renewed(
        appIDs: [String],
        key: P256PublicKey,
        roots: [X509Certificate],
        exchange: Exchange
    ) throws(ReceiptRefusal) -> RenewedReceipt {
        let receipt = try verified(
            appIDs: appIDs,
            key: key,
            roots: roots,
            freshness: exchange.freshness
        )
        guard fields.kind == .receipt else {
            throw ReceiptRefusal(.kindMismatch, "field 6 is \(fields.kind.rawValue)")
        }
        if let environment = exchange.environment { try check(environment) }
        if let previous = exchange.previousCreation, fields.creationTime <= previous {
            let (mine, theirs) = (fields.creationTime.iso8601, previous.iso8601)
            throw ReceiptRefusal(.notNewer, "made at \(mine), in exchange for one of \(theirs)")
        }
        let (notBefore, expiration) = try period(at: exchange.freshness?.now)
        return RenewedReceipt(
            receipt: receipt,
            notBefore: notBefore,
            expirationTime: expiration,
            riskMetric: fields.riskMetric.flatMap { $0 <= Self.riskMetricMax ? $0 : nil }
        )
    }

    /// Field 7. Apple does not document it, but every receipt that has been seen has it.
    private func check(_ environment: AttestationEnvironment) throws(ReceiptRefusal) {
        let expected =
            switch environment {
            case .production: "production"
            case .development: "sandbox"
            }
        guard fields.environment == expected else {
            let found = fields.environment == nil ? "missing" : "another word"
            throw ReceiptRefusal(.environmentMismatch, "field 7 is \(found), not \(expected)")
        }
    }

    /// Fields 19 and 21.
    ///
    /// - now: when the receipt came; `nil` where it is not new.
    private func period(
        at now: UnixTime?
    ) throws(ReceiptRefusal) -> (notBefore: UnixTime, expiration: UnixTime) {
        guard let notBefore = fields.notBefore, let expiration = fields.expirationTime else {
            let field = fields.notBefore == nil ? 19 : 21
            throw ReceiptRefusal(.periodImplausible, "field \(field) is missing")
        }
        let created = fields.creationTime
        let latestBegin = created.advanced(bySeconds: Self.notBeforeSecondsMax)
        guard created <= notBefore, notBefore <= latestBegin else {
            throw ReceiptRefusal(.periodImplausible, "field 19 is \(notBefore.iso8601)")
        }
        let earliest = created.advanced(bySeconds: Self.lifetimeSecondsMin)
        let ends = earliest...created.advanced(bySeconds: Self.lifetimeSecondsMax)
        guard ends.contains(expiration), notBefore < expiration,
            now.map({ $0 < expiration }) ?? true
        else { throw ReceiptRefusal(.periodImplausible, "field 21 is \(expiration.iso8601)") }
        return (notBefore, expiration)
    }
}

/// The proof that a receipt came in exchange for an older one and passed every check. Only
/// `UnverifiedReceipt.renewed(…)` makes one.
public struct RenewedReceipt: Sendable {
    /// The receipt, to be kept in the place of the older one.
    public let receipt: VerifiedReceipt
    /// Field 19: before this time, Apple gives no newer receipt.
    public let notBefore: UnixTime
    /// Field 21: after this time, Apple no longer accepts the receipt.
    public let expirationTime: UnixTime
    /// Field 17: about how many keys of the app the device has had attested within 30 days. `nil`
    /// when it is unknown: the field is missing, no number, or absurd.
    public let riskMetric: UInt32?
}
