import Histogram

/// What came of a run.
package struct Summary: Sendable {
    /// A second of it.
    struct Second: Sendable {
        /// Seconds since the start.
        let at: Double
        /// How long it was, in seconds.
        let length: Double
        let interval: Interval
    }

    let plan: LoadPlan
    let measurements: Measurements
    let seconds: [Second]
    /// From the first request to the last answer, warm-up included.
    let cost: Cost
    let preSigned: Preparation
    package let wasInterrupted: Bool
    /// Above all counters that were used.
    package let endCounter: UInt32

    /// What was signed before the start.
    struct Preparation: Sendable {
        var count = 0
        var nanoseconds: UInt64 = 0
        var octets = 0
    }

    /// Whether every request was answered, and as expected.
    package var isAsExpected: Bool {
        measurements.asExpected == measurements.sent && measurements.failureCount == 0
    }

    /// Requests that were answered otherwise.
    var deviationCount: UInt64 {
        let judged = measurements.sent - min(unanswered, measurements.sent)
        return judged - min(measurements.asExpected, judged)
    }

    /// Requests without an answer that could be judged.
    var unanswered: UInt64 {
        [ExchangeFailure.responseTimeout, .connectionBroken, .responseMalformed]
            .reduce(0) { $0 + (measurements.failures[$1] ?? 0) }
    }

    /// Answers as expected a second, after the warm-up.
    var throughput: Double {
        guard measurements.endedAt > measurements.startedAt else { return 0 }
        let seconds = Double(measurements.endedAt - measurements.startedAt) / 1e9
        return Double(measurements.measuredCount) / seconds
    }

    var isOpenLoop: Bool { plan.options.pacing.rate != nil }

    /// The latencies that count: from the moment at which a request was due, or in a closed loop
    /// from the moment at which it was sent.
    func latencies(_ sending: Sending) -> Measurements.Latencies? {
        let row = measurements.rows[sending.rawValue]
        return isOpenLoop ? row.fromDue : row.fromSent
    }

    /// Those of all rows together.
    var allLatencies: Measurements.Latencies {
        var all = Measurements.latencies()
        for sending in Sending.allCases {
            if let latencies = latencies(sending) { all.add(latencies) }
        }
        return all
    }

    /// The 99th percentile of what requests were late for no other reason than this program.
    var lag99: UInt64 { measurements.lag.valueAtPercentile(99) }

    /// Later than this and the program says that it was too slow itself.
    private static let lagMax: UInt64 = 2_000_000
    /// A lane that is so busy can't keep time.
    private static let busyMax = 0.9

    /// Why the figures may be those of this program and not of the gateway; `nil` when they are
    /// not.
    var saturation: String? {
        if isOpenLoop, lag99 > Self.lagMax {
            return
                "requests left \(Figures.latency(lag99)) late (p99), with nothing to hold them up"
        }
        let share = cost.cores / Double(plan.options.lanes)
        guard share > Self.busyMax else { return nil }
        return "its lanes were busy for \(Figures.percent(share)) of the time"
    }
}
