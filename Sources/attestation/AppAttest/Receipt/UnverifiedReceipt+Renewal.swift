public import Signatures

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
