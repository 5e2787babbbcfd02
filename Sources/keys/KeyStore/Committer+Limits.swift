extension Committer {
    /// The bounds of what may wait.
    package struct Limits: Sendable {
        /// Changes of counters that are not on disk. With more, `consume` answers `unavailable`.
        ///
        /// Default 262,144: 10 MiB, and some ten seconds of a disk that stands still.
        package var changesMax = 262_144
        /// Enrolments that wait; each may hold some kilobytes of receipt. Default 4,096.
        package var enrolmentsMax = 4_096
        /// Renewed receipts that wait; each may hold some kilobytes. Default 1,024.
        package var renewalsMax = 1_024
        /// Uses that wait until the journal decides them. Default 8,192: one transaction decides
        /// all that wait, and has to end in time.
        package var usesMax = 8_192
        /// Keys that wait to be looked up. Default 8,192.
        package var lookUpsMax = 8_192
        /// Maximum write-behind delay, for changes that no request waits for. Default 100 ms; after
        /// 4,096 changes the writer starts earlier. A longer delay makes larger transactions.
        package var behindDelay = Duration.milliseconds(100)
        package var behindCount = 4_096
        /// After a failure, how long until the next try; doubled four times at most.
        package var retryDelay = Duration.milliseconds(100)
        /// Values of failed batches that one transaction takes.
        package var retriesMax = 16_384
        /// Failures in a row after which the writer pauses. What comes in a pause is answered at
        /// once as after a failed commit, and nothing is tried for it: on a full disk a commit for
        /// each request would only take time from the others. Default 8.
        package var failuresMax = 8
        /// The first pause, which doubles with each further failure, and the longest one. Defaults
        /// 20 ms and 1 s.
        package var pauseMin = Duration.milliseconds(20)
        package var pauseMax = Duration.seconds(1)

        /// How long a use or look-up waits for its answer; `nil` for the journal's own time.
        package var answerTime: Duration?

        package init() {}

        /// How long the writer pauses after so many failures in a row.
        func pause(after failures: Int) -> Duration {
            guard failures >= failuresMax else { return .zero }
            return min(pauseMin * (1 << min(failures - failuresMax, 16)), pauseMax)
        }
    }
}
