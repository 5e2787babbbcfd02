package import KeyStore
package import Telemetry

/// How the store of keys stands.
package struct StoreFacts: Sendable {
    /// Keys that are known, the revoked ones included.
    package var keys: Int
    package var revokedKeys: Int
    /// Changes that are not on disk yet.
    package var pendingCommits: Int
    /// Whether changes can't be written or read at present.
    package var isDegraded: Bool
    /// Whether no rule serves anybody while it can't be used. Otherwise its outage leaves the
    /// gateway ready, for the requests that need no store.
    package var isNeeded = true
    /// Why it can't be read, or why the last transaction that failed did, which stays after
    /// recovery.
    package var lastError: String?
    /// Transactions that failed since the start.
    package var failedCommits: UInt64
    /// Keys that were deleted for not having been used for long, since the start.
    package var expiredKeys: UInt64
    /// Changes in a transaction.
    package var commitSizes: Histogram
    /// Time in a transaction, in nanoseconds.
    package var commitDurations: Histogram
    /// Whether this process has made it, since there was none.
    package var isNew = false
    /// Uses and look-ups that wait for the next transaction.
    package var waiting = 0
    /// What found no room to wait, since the start.
    package var turnedAway: UInt64 = 0
    /// Keys that were looked up in the store, and those of them that it had, since the start.
    package var lookUps: UInt64 = 0
    package var foundLookUps: UInt64 = 0
    /// The connections to the database; `nil` where the store is none.
    package var database: DatabaseStatistics?

    package init(
        keys: Int,
        revokedKeys: Int,
        pendingCommits: Int = 0,
        isDegraded: Bool = false,
        lastError: String? = nil,
        failedCommits: UInt64 = 0,
        expiredKeys: UInt64 = 0,
        commitSizes: Histogram = Histogram(),
        commitDurations: Histogram = Histogram()
    ) {
        self.keys = keys
        self.revokedKeys = revokedKeys
        self.pendingCommits = pendingCommits
        self.isDegraded = isDegraded
        self.lastError = lastError
        self.failedCommits = failedCommits
        self.expiredKeys = expiredKeys
        self.commitSizes = commitSizes
        self.commitDurations = commitDurations
    }
}
