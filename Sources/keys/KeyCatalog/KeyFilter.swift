package import KeyStore

/// Which keys a command is about; what is `nil` does not matter.
package struct KeyFilter: Sendable {
    /// What becomes of keys that were deleted.
    package enum Deleted: Sendable {
        case excluded
        /// A copy keeps them from being enrolled anew, too.
        case included
    }

    package var deleted = Deleted.excluded
    package var appID: String?
    package var environment: KeyEnvironment?
    package var isRevoked: Bool?
    package var source: KeyRecord.Source?
    /// Not used since this second of Unix time, or never.
    package var unusedSince: Int64?
    /// Whose risk metric is known and not below.
    package var riskMin: UInt32?

    package init() {}

    /// Whether it admits a key.
    package func admits(_ record: KeyRecord) -> Bool {
        if record.status.standing == .deleted, deleted == .excluded { return false }
        if let appID, record.appID != appID { return false }
        if let environment, record.environment != environment { return false }
        if let isRevoked, (record.status != .active) != isRevoked { return false }
        if let source, record.source != source { return false }
        if let riskMin {
            guard let metric = record.receiptState.riskMetric, metric >= riskMin else {
                return false
            }
        }
        return unusedSince.map { record.lastUsedAt ?? 0 < $0 } ?? true
    }
}
