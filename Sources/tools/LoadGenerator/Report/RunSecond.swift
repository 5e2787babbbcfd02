import Histogram

/// One second of a run.
struct RunSecond: Equatable, Sendable {
    /// When it ends, in seconds from the start.
    let at: Double
    /// Its length in seconds.
    let length: Double
    /// The number of the stage in which it ends, from 0; `nil` without stages.
    let stage: Int?
    let sent: UInt64
    let answered: UInt64
    let deviations: UInt64
    let failures: UInt64
    let backlog: UInt64
    /// Nanoseconds of the answers as expected; 0 for none.
    let p50: UInt64
    let p99: UInt64
    let max: UInt64

    /// The most seconds of a run that are kept: a day.
    static let countMax = 86_400

    /// - Parameters:
    ///   - interval: the counts of all event loops.
    ///   - offset: nanoseconds from the start to its end.
    ///   - length: nanoseconds.
    ///   - stage: the one in which it ends.
    init(_ interval: Interval, endsAt offset: UInt64, length: UInt64, stage: Int?) {
        at = Double(offset) / 1e9
        self.length = Double(length) / 1e9
        self.stage = stage
        (sent, answered) = (interval.sent, interval.answered)
        (deviations, failures) = (interval.deviations, interval.failures)
        backlog = interval.backlog
        p50 = interval.latencies.valueAtPercentile(50)
        p99 = interval.latencies.valueAtPercentile(99)
        max = interval.latencies.valueAtPercentile(100)
    }

    /// Answers a second.
    var rate: Double { length > 0 ? Double(answered) / length : 0 }
    /// What was not as expected.
    var faults: UInt64 { deviations + failures }
    /// Whether there are latencies.
    var hasLatencies: Bool { max > 0 }
}
