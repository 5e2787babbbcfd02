/// How long to leave something alone that has failed: twice as long with each failure, at random
/// within the upper half, so that many that failed together do not come back together.
package struct BackOff: Hashable, Sendable {
    /// The longest pause after the first failure.
    package let first: Duration
    /// The longest pause of all.
    package let most: Duration

    package init(first: Duration, most: Duration) {
        self.first = first
        self.most = most
    }

    /// The pause after so many failures in a row. `random` is any number, fresh for each pause.
    package func pause(after failures: Int, random: UInt64) -> Duration {
        let whole = min(first.nanosecondCount, most.nanosecondCount)
        let doublings = UInt64(min(max(failures, 1) - 1, 40))
        let (grown, overflow) = whole.multipliedReportingOverflow(by: 1 << doublings)
        let longest = overflow ? most.nanosecondCount : min(grown, most.nanosecondCount)
        let half = longest / 2
        return .nanoseconds(Int64(clamping: half + random % (longest - half + 1)))
    }
}

extension Duration {
    /// Whole nanoseconds; 0 for what is negative, at most a hundred years.
    var nanosecondCount: UInt64 {
        let seconds = UInt64(min(max(components.seconds, 0), 3_155_760_000))
        return seconds * 1_000_000_000 + UInt64(max(components.attoseconds, 0) / 1_000_000_000)
    }
}
