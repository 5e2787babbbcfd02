import EventLoops
import Glibc
import Histogram

/// The result of a run.
package struct Summary: Sendable {
    /// The signatures that were made before the start.
    struct Preparation: Sendable {
        var count = 0
        var nanoseconds: UInt64 = 0
        var bytes = 0
    }

    let plan: LoadPlan
    let measurements: Measurements
    /// The end of the warm-up, on the monotonic clock.
    let startedAt: UInt64
    let seconds: [RunSecond]
    /// From the first request to the last answer, warm-up included.
    let cost: Cost
    let preSigned: Preparation
    let wasInterrupted: Bool
    /// A counter above all used ones.
    package let endCounter: UInt32

    /// One stage of the run.
    struct StageResult {
        let plan: LoadStage
        let counts: Measurements.Stage

        /// Answers as expected a second.
        var throughput: Double {
            Double(counts.asExpected) / (Double(plan.length.nanoseconds) / 1e9)
        }
    }

    static let percentiles: [(name: String, percent: Double)] = [
        ("p50", 50), ("p90", 90), ("p99", 99), ("p99.9", 99.9), ("p99.99", 99.99), ("max", 100),
    ]

    /// Whether every request got the expected answer.
    package var isAsExpected: Bool {
        measurements.asExpected == measurements.sent && measurements.failureCount == 0
    }

    /// Requests that got another answer.
    var deviationCount: UInt64 {
        let judged = measurements.sent - min(unanswered, measurements.sent)
        return judged - min(measurements.asExpected, judged)
    }

    /// Requests without an answer that could be judged.
    var unanswered: UInt64 {
        measurements.failures.reduce(0) { $0 + ($1.key.isOfConnect ? 0 : $1.value) }
    }

    /// Answers as expected a second, after the warm-up.
    var throughput: Double {
        guard measurements.endedAt > startedAt else { return 0 }
        return Double(measurements[.measured]) / (Double(measurements.endedAt - startedAt) / 1e9)
    }

    var isOpenLoop: Bool { plan.options.pacing.schedule != nil }

    /// The rows that requests were sent of.
    var sentRows: [(sending: Sending, row: Measurements.Row)] {
        zip(Sending.allCases, measurements.rows).filter { $0.1.sent > 0 }
            .map { (sending: $0.0, row: $0.1) }
    }

    /// The stages, and what was measured in each.
    var stages: [StageResult] {
        zip(plan.options.pacing.stages, measurements.stages).map {
            StageResult(plan: $0, counts: $1)
        }
    }

    /// The latencies that count: from the moment when a request was due, or in a closed loop from
    /// the moment when it was sent.
    func latencies(_ row: Measurements.Row) -> Measurements.Latencies? {
        isOpenLoop ? row.fromDue : row.fromSent
    }

    /// The latencies of all rows together.
    var allLatencies: Measurements.Latencies {
        latencies(measurements.total) ?? Measurements.latencies()
    }

    /// The latencies of all requests in milliseconds, in the text format of HdrHistogram, which its
    /// plotters read.
    package var percentileDistribution: String {
        var text = ""
        allLatencies.outputPercentileDistribution(to: &text, outputValueUnitScalingRatio: 1e6)
        return text
    }

    /// The 99th percentile of the delays that this program itself caused.
    var lag99: UInt64 { measurements.lag.valueAtPercentile(99) }

    /// Above this delay, the program reports that it was too slow itself.
    private static let lagMax: UInt64 = 2_000_000
    /// An event loop with this load can't keep time.
    private static let busyMax = 0.9

    /// Why the figures may be those of this program and not of the gateway; `nil` when they are the
    /// gateway's.
    var saturation: String? {
        if isOpenLoop, lag99 > Self.lagMax {
            return
                "requests left \(Figures.latency(lag99)) late (p99), with nothing to hold them up"
        }
        let share = cost.cores / Double(plan.options.loops)
        guard share > Self.busyMax else { return nil }
        return "its event loops were busy for \(Figures.percent(share)) of the time"
    }
}

/// This process's use of the machine.
package struct Cost: Sendable {
    /// User and system time of all threads, nanoseconds.
    let cpu: UInt64
    /// On the monotonic clock, nanoseconds.
    let elapsed: UInt64

    /// The use since the process began; `elapsed` counts from an earlier moment.
    static var now: Cost {
        var usage = rusage()
        let who = __rusage_who_t(RUSAGE_SELF.rawValue)
        guard getrusage(who, &usage) == 0 else {
            return Cost(cpu: 0, elapsed: MonotonicClock.nanoseconds)
        }
        let times = [usage.ru_utime, usage.ru_stime]
        let micros = times.reduce(0) { $0 + $1.tv_sec * 1_000_000 + Int($1.tv_usec) }
        return Cost(cpu: UInt64(micros) * 1_000, elapsed: MonotonicClock.nanoseconds)
    }

    static func - (later: Cost, earlier: Cost) -> Cost {
        Cost(cpu: later.cpu - earlier.cpu, elapsed: later.elapsed - earlier.elapsed)
    }

    /// Cores that were busy.
    var cores: Double { elapsed == 0 ? 0 : Double(cpu) / Double(elapsed) }

    /// The machine's memory in bytes.
    static var physicalMemory: Int {
        max(sysconf(Int32(_SC_PHYS_PAGES)), 0) * max(sysconf(Int32(_SC_PAGESIZE)), 0)
    }

    /// Raises the limit of open files to the system's limit for this process: each connection needs
    /// one.
    package static func raiseFileLimit() {
        var limit = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        guard getrlimit(resource, &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        _ = setrlimit(resource, &limit)
    }
}
