import Encodings
import EventLoops
import Glibc
import Histogram
import Rules

/// The result of a run.
package struct Summary: Sendable {
    /// One second of the run.
    struct Second: Sendable {
        /// Seconds since the start.
        let at: Double
        /// Its length in seconds.
        let length: Double
        let interval: Interval
    }

    let plan: LoadPlan
    let measurements: Measurements
    let seconds: [Second]
    /// From the first request to the last answer, warm-up included.
    let cost: Cost
    let preSigned: Preparation
    let wasInterrupted: Bool
    /// A counter above all used ones.
    package let endCounter: UInt32

    /// The signatures that were made before the start.
    struct Preparation: Sendable {
        var count = 0
        var nanoseconds: UInt64 = 0
        var bytes = 0
    }

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

    /// The latencies that count: from the moment when a request was due, or in a closed loop from
    /// the moment when it was sent.
    func latencies(_ sending: Sending) -> Measurements.Latencies? {
        let row = measurements.rows[sending.rawValue]
        return isOpenLoop ? row.fromDue : row.fromSent
    }

    /// The latencies of all rows together.
    var allLatencies: Measurements.Latencies {
        var all = Measurements.latencies()
        for sending in Sending.allCases {
            if let latencies = latencies(sending) { all.add(latencies) }
        }
        return all
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
    var cpu: UInt64
    /// On the monotonic clock, nanoseconds.
    var elapsed: UInt64

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

// The summary for programs. Times are nanoseconds.
extension Summary {
    private typealias Member = JSONValue.Member

    /// An object, on lines of its own for each member.
    package var json: String {
        let pacing = plan.options.pacing
        let members: [Member] = [
            Member("request", .string("\(plan.method) \(plan.target)")),
            Member("host", .string(plan.host)),
            Member("rule", .string(plan.rule.id)),
            Member("loop", .string(isOpenLoop ? "open" : "closed")),
            Member("rate_per_second", .text(pacing.rate.map { Figures.fixed($0, 3) })),
            Member("connections", .number(Int64(plan.options.connections))),
            Member("event_loops", .number(Int64(plan.options.loops))),
            Member("devices", .number(Int64(plan.fleet.count))),
            Member("interrupted", .bool(wasInterrupted)),
            Member("as_expected", .bool(isAsExpected)),
            Member("sent", Self.number(measurements.sent)),
            Member("answered_as_expected", Self.number(measurements.asExpected)),
            Member("deviations", Self.number(deviationCount)),
            Member("admitted_replays", Self.number(measurements.admittedReplays)),
            Member("admitted_unenforced", Self.number(measurements.unenforcedCount)),
            Member("admitted_or_refused", Self.number(measurements.uncertainCount)),
            Member("failures", failures),
            Member("throughput_milli_per_second", .number(Int64(throughput * 1000))),
            Member("backlog_max", Self.number(measurements.backlogMax)),
            Member("lag_ns", Self.percentiles(of: measurements.lag)),
            Member("cpu_ns_per_request", Self.number(cost.cpu / max(measurements.sent, 1))),
            Member("cpu_milli_cores", .number(Int64(cost.cores * 1000))),
            Member("is_saturated", .bool(saturation != nil)),
            Member("signed_before", .number(Int64(preSigned.count))),
            Member("signed_on_the_way", Self.number(measurements.signedCount)),
            Member("signing_ns", Self.number(measurements.signingNanoseconds)),
            Member("rows", .array(Sending.allCases.compactMap(row))),
            Member("samples", .array(measurements.samples.map(Self.sample))),
            Member("seconds", .array(seconds.map(Self.second))),
        ]
        return JSONValue.object(members).pretty + "\n"
    }

    private static func number(_ count: UInt64) -> JSONValue { .number(Int64(clamping: count)) }

    private var failures: JSONValue {
        .object(
            ExchangeFailure.allCases.map { failure in
                Member(failure.rawValue, Self.number(measurements.failures[failure] ?? 0))
            }
        )
    }

    private func row(_ sending: Sending) -> JSONValue? {
        let row = measurements.rows[sending.rawValue]
        guard row.sent > 0 else { return nil }
        return .object([
            Member("kind", .string(sending.kind.rawValue)),
            Member("request", .string(sending.title)),
            Member("expected", .string(answerText(sending))),
            Member("sent", Self.number(row.sent)),
            Member("as_expected", Self.number(row.asExpected)),
            Member("latency_from_due_ns", row.fromDue.map(Self.percentiles) ?? .null),
            Member("latency_from_sent_ns", row.fromSent.map(Self.percentiles) ?? .null),
        ])
    }

    private static func percentiles(of latencies: Measurements.Latencies) -> JSONValue {
        var members = percentiles.map { percentile in
            Member(percentile.name, number(latencies.valueAtPercentile(percentile.percent)))
        }
        members.append(Member("mean", .number(Int64(latencies.mean.isFinite ? latencies.mean : 0))))
        members.append(Member("count", number(latencies.totalCount)))
        return .object(members)
    }

    private static func sample(_ deviation: Deviation) -> JSONValue {
        .object([
            Member("number", number(deviation.number)),
            Member("request", .string(deviation.sending.title)),
            Member("expected", .string(deviation.expected)),
            Member("found", .string(deviation.found)),
        ])
    }

    private static func second(_ second: Second) -> JSONValue {
        let interval = second.interval
        return .object([
            Member("at_ms", .number(Int64(second.at * 1000))),
            Member("sent", number(interval.sent)),
            Member("answered", number(interval.answered)),
            Member("deviations", number(interval.deviations)),
            Member("failures", number(interval.failures)),
            Member("backlog", number(interval.backlog)),
            Member("p50_ns", number(interval.latencies.valueAtPercentile(50))),
            Member("p99_ns", number(interval.latencies.valueAtPercentile(99))),
            Member("max_ns", number(interval.latencies.valueAtPercentile(100))),
        ])
    }
}
