/// How long the writer waits between batches, so that a busy gateway commits larger batches less
/// often.
///
/// A transaction costs as much CPU time for one change as for forty. While changes are few, no
/// change waits for others. Above 7,000 changes a second, when the lanes are likely to be busy, the
/// next batch begins once about 40 changes wait, or after 4 ms.
struct CommitPace {
    /// Changes a second below which the writer never waits.
    static let rateMin: UInt64 = 7_000
    /// Changes for which the writer waits.
    static let crowd: UInt64 = 40
    /// The longest time from the beginning of one batch to the next one's, nanoseconds.
    static let intervalMax: UInt64 = 4_000_000

    /// When the last batch began, monotonic nanoseconds.
    private var begun: UInt64 = 0
    /// Changes a second, smoothed over some batches.
    private var rate: UInt64 = 0

    /// Nanoseconds from `now` until the next batch should begin; 0 for at once.
    func rest(now: UInt64) -> UInt64 {
        guard rate >= Self.rateMin else { return 0 }
        let interval = min(Self.crowd * 1_000_000_000 / rate, Self.intervalMax)
        let passed = now &- begun
        return passed < interval ? interval - passed : 0
    }

    /// A batch of `count` changes begins.
    mutating func began(_ count: Int, now: UInt64) {
        let interval = max(now &- begun, 1)
        begun = now
        // A batch is bounded by what may wait, so the product is far from its type's end.
        let sample = UInt64(count) &* 1_000_000_000 / interval
        rate = (rate &* 3 &+ sample) / 4
    }
}
