package import DeviceKey
package import Signatures

/// The stored receipts, for their renewal. Used on its own queue beside the writer's, and may
/// block.
package protocol ReceiptStore: AnyObject, Sendable {
    /// Gives each active key whose receipt is due, in no order. Reads no receipts.
    ///
    /// - `now`: second of Unix time.
    func forEachDue(at now: Int64, _ body: (DueReceipt) -> Void) throws(JournalError)

    /// Gives those of them that an operator has asked for, at most ``askedReceiptsMax``. Cheap.
    func forEachAsked(_ body: (DueReceipt) -> Void) throws(JournalError)

    /// The receipt of a key, with the data for judging a newer one; `nil` when the key is revoked
    /// or has no receipt any more.
    func receipt(ofRow row: Int64) throws(JournalError) -> KeptReceipt?

    /// The state of all receipts.
    ///
    /// - `now`: second of Unix time.
    func census(at now: Int64) throws(JournalError) -> ReceiptCensus

    /// Makes the other gateways of the store read these keys, whose risk metrics are new.
    func announce(_ rows: [Int64]) throws(JournalError)
}

extension ReceiptStore {
    package func announce(_ rows: [Int64]) throws(JournalError) {}
}

/// The most receipts that are given at once among those that were asked for.
package let askedReceiptsMax = 1_000

/// A receipt that may be renewed, with the data for the order of renewals: 64 bytes. Times are
/// seconds of Unix time.
package struct DueReceipt: Hashable, Sendable {
    package var row: Int64
    /// The environment whose host of Apple's is asked.
    package var environment = KeyEnvironment.production
    package var dueAt: Int64 = 0
    /// `nil` when it is not known.
    package var expiresAt: Int64?
    /// `nil` when the key was not used yet.
    package var lastUsedAt: Int64?
    /// `nil` when its renewal was not tried yet.
    package var triedAt: Int64?
    package var isAsked = false
}

/// A stored receipt, and its key.
package struct KeptReceipt: Sendable {
    package var row: Int64
    package var keyID: KeyID
    package var publicKey: P256PublicKey
    package var appID: String
    package var environment: KeyEnvironment
    package var receipt: [UInt8]
    package var state: ReceiptState
}

/// The state of the receipts of the active keys.
package struct ReceiptCensus: Hashable, Sendable {
    /// Active keys with a receipt.
    package var receipts = 0
    /// Receipts that may be renewed now.
    package var due = 0
    /// Receipts that have expired without a renewal in time.
    package var expired = 0
    /// Receipts whose renewal was never tried.
    package var untried = 0
    /// Receipts whose metric is known.
    package var known = 0
    /// By the result of their last try.
    package var outcomes: [ReceiptState.Outcome: Int] = [:]

    package init() {}
}

/// The state of a stored receipt, known without reading it. Times are seconds of Unix time.
package struct ReceiptState: Hashable, Sendable {
    /// The result of the last try to renew a receipt. The raw value is the word in the store, in
    /// exports and in metrics; never rename one.
    package enum Outcome: String, CaseIterable, Hashable, Sendable {
        /// A newer receipt replaced it.
        case renewed
        /// 304: it was too early.
        case early
        /// 400: Apple did not accept the receipt, or this is not the key's environment.
        case rejected
        /// 404: Apple has no data of the key any more. The gateway does not ask again.
        case gone
        /// 200, but the content is not the newer receipt of this key.
        case invalid
        /// Not asked: there is no key for Apple of the key's team.
        case noCredential = "no-credential"
        /// Not asked: no host is known for the key's environment.
        case noHost = "no-host"
    }

    /// When Apple made it; `nil` when a version stored it that did not keep the time.
    package var createdAt: Int64?
    /// Field 19: Apple gives no newer one before this; `nil` for an attestation's receipt.
    package var notBefore: Int64?
    /// Field 21: Apple does not accept it after this; `nil` when that is not known.
    package var expiresAt: Int64?
    /// Field 17; `nil` when it is not known.
    package var riskMetric: UInt32?
    /// The creation of the receipt that had the metric, or should have had it; `nil` before the
    /// first renewal.
    package var metricAt: Int64?
    /// The end of the last try whose result concerns this receipt; `nil` before the first.
    package var triedAt: Int64?
    package var outcome: Outcome?
    /// The next try is not before this; 0 for at once, `nil` for never.
    package var dueAt: Int64? = 0
    /// Whether an operator wants it renewed before all others.
    package var isAsked = false

    package init() {}

    /// The state of a receipt that came with an attestation.
    package init(createdAt: Int64, expiresAt: Int64?) {
        self.createdAt = createdAt
        self.expiresAt = expiresAt
    }

    /// The part of it that the table in memory keeps.
    package var risk: KeyRisk { KeyRisk(metric: riskMetric, at: metricAt) }
}

/// The stored changes of a try to renew a key's receipt.
package struct ReceiptChange: Hashable, Sendable {
    /// The most seconds by which the outcomes of two tries may be written out of order. A stored
    /// outcome that is later than that comes from a clock that was set back since, and is replaced.
    package static let disorderMax: Int64 = 300

    /// The key, as ``KeyRow/row``.
    package let row: Int64
    package let keyID: KeyID
    /// The newer receipt; `nil` when the stored one stays. It replaces only an older one.
    package let receipt: [UInt8]?
    /// The new state. Without a newer receipt, only ``ReceiptState/triedAt``,
    /// ``ReceiptState/outcome`` and ``ReceiptState/dueAt`` count.
    package let state: ReceiptState

    package init(row: Int64, keyID: KeyID, receipt: [UInt8]?, state: ReceiptState) {
        self.row = row
        self.keyID = keyID
        self.receipt = receipt
        self.state = state
    }
}
