package import DeviceKey

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
