package import Telemetry

/// What the writer has done, and how it stands. Totals are since the start.
package struct CommitStatistics: Sendable {
    /// Transactions that reached the disk.
    package var commits: UInt64 = 0
    /// Transactions that failed.
    package var failures: UInt64 = 0
    /// Keys whose counters were written; several changes of one key in a batch are one.
    package var counters: UInt64 = 0
    package var enrolments: UInt64 = 0
    /// Keys that were looked up in the journal, and those of them that it had.
    package var lookUps: UInt64 = 0
    package var foundLookUps: UInt64 = 0
    /// Uses, look-ups, enrolments and renewals that found no room to wait.
    package var turnedAway: UInt64 = 0
    /// Changes and enrolments in a transaction, failed ones included.
    package var sizes = Histogram()
    /// Nanoseconds of a transaction, failed ones included.
    package var durations = Histogram()
    /// Changes that are not on disk now, those of failed batches included.
    package var depth = 0
    /// Uses and look-ups that wait for the journal's next transaction now.
    package var waiting = 0
    /// Whether the last transaction failed, or values of a failed one are still to be written.
    package var isDegraded = false
    /// Why the last transaction failed; stays after recovery.
    package var lastError: JournalError?
}
