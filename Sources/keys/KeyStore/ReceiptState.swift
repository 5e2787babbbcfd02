package import DeviceKey

/// What is known of a stored receipt without reading it. Times are seconds of Unix time.
package struct ReceiptState: Hashable, Sendable {
    /// How the last try to renew a receipt ended. The raw value is the word in the store, in
    /// exports and in metrics; never rename one.
    package enum Outcome: String, CaseIterable, Hashable, Sendable {
        /// A newer receipt took its place.
        case renewed
        /// 304: it was too early.
        case early
        /// 400: Apple did not take the receipt, or this is not the key's environment.
        case rejected
        /// 404: Apple has no data of the key any more. It is not asked again.
        case gone
        /// 200, with something that is not the newer receipt of this key.
        case invalid
        /// Not asked: the key's team has no key for Apple here.
        case noCredential = "no-credential"
        /// Not asked: no host is known for the key's environment.
        case noHost = "no-host"
    }

    /// When Apple made it; `nil` when it was stored by a version that did not keep that.
    package var createdAt: Int64?
    /// Field 19: Apple gives no newer one before this; `nil` for an attestation's receipt.
    package var notBefore: Int64?
    /// Field 21: Apple takes it no more after this; `nil` when that is not known.
    package var expiresAt: Int64?
    /// Field 17; `nil` when it is not known.
    package var riskMetric: UInt32?
    /// When the receipt was made that had the metric, or should have had it; `nil` before the first
    /// renewal.
    package var metricAt: Int64?
    /// When the last try ended that says something about this receipt; `nil` before the first.
    package var triedAt: Int64?
    package var outcome: Outcome?
    /// Before this it is not asked again; 0 for at once, `nil` for never.
    package var dueAt: Int64? = 0
    /// Whether an operator wants it renewed before all others.
    package var isAsked = false

    package init() {}

    /// Of a receipt that came with an attestation.
    package init(createdAt: Int64, expiresAt: Int64?) {
        self.createdAt = createdAt
        self.expiresAt = expiresAt
    }

    /// What the table in memory keeps of it.
    package var risk: KeyRisk { KeyRisk(metric: riskMetric, at: metricAt) }
}

/// How a try to renew a key's receipt has changed what is stored.
package struct ReceiptChange: Hashable, Sendable {
    /// Seconds by which the outcomes of two tries may be written out of order. A stored outcome
    /// that is later than that is of a clock that was set back since, and gives way.
    package static let disorderMax: Int64 = 300

    /// The key, as ``KeyRow/row``.
    package let row: Int64
    package let keyID: KeyID
    /// The newer receipt; `nil` when the stored one stays. It takes the place of an older one only.
    package let receipt: [UInt8]?
    /// What is known now. Without a newer receipt, only ``ReceiptState/triedAt``,
    /// ``ReceiptState/outcome`` and ``ReceiptState/dueAt`` count.
    package let state: ReceiptState

    package init(row: Int64, keyID: KeyID, receipt: [UInt8]?, state: ReceiptState) {
        self.row = row
        self.keyID = keyID
        self.receipt = receipt
        self.state = state
    }
}
