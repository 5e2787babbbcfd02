import Histogram

/// Counts and latencies of one event loop, or of all together.
struct Measurements: Sendable {
    typealias Latencies = Histogram<UInt64>

    /// One row of the summary.
    struct Row: Sendable {
        var sent: UInt64 = 0
        var asExpected: UInt64 = 0
        /// From the moment when the request was due, and from the moment when it was sent.
        var fromDue: Latencies?
        var fromSent: Latencies?

        mutating func add(_ other: Row) {
            sent += other.sent
            asExpected += other.asExpected
            Self.merge(other.fromDue, into: &fromDue)
            Self.merge(other.fromSent, into: &fromSent)
        }

        fileprivate static func merge(_ other: Latencies?, into own: inout Latencies?) {
            guard let other else { return }
            if own == nil { own = other } else { own?.add(other) }
        }
    }

    /// The counts of one stage.
    struct Stage: Sendable {
        var sent: UInt64 = 0
        var asExpected: UInt64 = 0
        var wrong: UInt64 = 0
        var failed: UInt64 = 0
        var admittedReplays: UInt64 = 0
        var backlogMax: UInt64 = 0
        /// From the moment when a request was due.
        private(set) var latencies: Latencies?

        /// Counts an answer as expected.
        mutating func record(_ latency: UInt64) {
            asExpected += 1
            Measurements.record(min(latency, Measurements.latencyMax), &latencies)
        }

        mutating func add(_ other: Stage) {
            sent += other.sent
            asExpected += other.asExpected
            wrong += other.wrong
            failed += other.failed
            admittedReplays += other.admittedReplays
            // Each event loop has its own backlog.
            backlogMax += other.backlogMax
            Row.merge(other.latencies, into: &latencies)
        }
    }

    /// The counts that are added up over the event loops.
    enum Tally: Int, CaseIterable {
        /// Replays that were admitted although the rule enforces for their keys.
        case admittedReplays
        /// Requests with a fault that were admitted, as expected: the rule observes, or its rollout
        /// leaves their keys out.
        case unenforced
        /// Requests with a fault that may be refused or admitted: the rollout counts them by an
        /// address that only the gateway knows.
        case uncertain
        /// Replays among both that were admitted.
        case unenforcedReplays
        /// Requests that should have been replayed or stale, but went as good ones because none was
        /// admitted yet.
        case replaced
        /// Requests that were sent again on another stream, since the gateway had refused theirs.
        case resent
        case signed
        case signingNanoseconds
        /// Answers as expected after the warm-up.
        case measured
        case backlogMax
    }

    var rows = [Row](repeating: Row(), count: Sending.allCases.count)
    var failures: [ExchangeFailure: UInt64] = [:]
    var outcomes = OutcomeCounts()
    /// In the order of the plan's stages.
    private(set) var stages: [Stage]
    private(set) var samples: [Deviation] = []
    private var tallies = [UInt64](repeating: 0, count: Tally.allCases.count)
    /// How late a request was sent although all its parts were free: the delay of this program
    /// itself.
    var lag = Self.latencies()
    /// The last answer.
    var endedAt: UInt64 = 0

    /// The number of deviations that are kept as examples.
    private static let samplesMax = 10
    /// The longest latency that is distinguished from longer ones.
    fileprivate static let latencyMax: UInt64 = 3_600_000_000_000

    init(stageCount: Int = 0) { stages = Array(repeating: Stage(), count: stageCount) }

    static func latencies() -> Latencies {
        Latencies(
            lowestDiscernibleValue: 1,
            highestTrackableValue: latencyMax,
            numberOfSignificantValueDigits: .three
        )
    }

    subscript(_ tally: Tally) -> UInt64 {
        get { tallies[tally.rawValue] }
        set { tallies[tally.rawValue] = newValue }
    }

    mutating func recordAsExpected(_ sending: Sending, fromDue: UInt64, fromSent: UInt64) {
        Self.record(min(fromDue, Self.latencyMax), &rows[sending.rawValue].fromDue)
        Self.record(min(fromSent, Self.latencyMax), &rows[sending.rawValue].fromSent)
    }

    /// Static, since it would otherwise copy `self` with a histogram.
    fileprivate static func record(_ latency: UInt64, _ histogram: inout Latencies?) {
        if histogram == nil { histogram = Self.latencies() }
        histogram?.record(latency)
    }

    /// Counts something in a stage, where there is one.
    mutating func count(in stage: Int?, _ change: (inout Stage) -> Void) {
        guard let stage, stages.indices.contains(stage) else { return }
        change(&stages[stage])
    }

    mutating func note(_ deviation: Deviation) {
        if samples.count < Self.samplesMax { samples.append(deviation) }
    }

    /// All rows together.
    var total: Row { rows.reduce(into: Row()) { $0.add($1) } }
    var sent: UInt64 { rows.reduce(0) { $0 + $1.sent } }
    var asExpected: UInt64 { rows.reduce(0) { $0 + $1.asExpected } }
    var failureCount: UInt64 { failures.values.reduce(0, +) }

    mutating func add(_ other: Measurements) {
        for index in rows.indices { rows[index].add(other.rows[index]) }
        failures.merge(other.failures, uniquingKeysWith: +)
        for (index, stage) in other.stages.enumerated() { count(in: index) { $0.add(stage) } }
        outcomes.add(other.outcomes)
        samples = Array((samples + other.samples).prefix(Self.samplesMax))
        tallies = zip(tallies, other.tallies).map(+)
        lag.add(other.lag)
        endedAt = max(endedAt, other.endedAt)
    }
}

/// Why a request got no answer that could be judged. The raw value is for people and JSON.
enum ExchangeFailure: String, CaseIterable, Sendable {
    case connectFailed = "connect-failed"
    case connectTimeout = "connect-timeout"
    case responseTimeout = "response-timeout"
    /// The connection ended or broke before the response was complete.
    case connectionBroken = "connection-broken"
    /// The response is no valid HTTP.
    case responseMalformed = "response-malformed"
    /// The gateway takes connections, and speaks no HTTP/2 on them.
    case noHTTP2 = "no-http2"
    /// The gateway has ended a stream of HTTP/2 before the response was complete.
    case streamReset = "stream-reset"
    /// The gateway has refused a stream, each time that the request was sent.
    case streamRefused = "stream-refused"

    /// No request was sent.
    var isOfConnect: Bool {
        switch self {
        case .connectFailed, .connectTimeout, .noHTTP2: true
        case .responseTimeout, .connectionBroken, .responseMalformed: false
        case .streamReset, .streamRefused: false
        }
    }
}

/// An answer that is not the expected one.
struct Deviation: Sendable {
    /// The request's place in the run.
    let number: UInt64
    let sending: Sending
    let expected: String
    let found: String
}

/// The counts of an event loop since the last beat.
struct Interval: Sendable {
    var latencies = Measurements.latencies()
    var sent: UInt64 = 0
    var answered: UInt64 = 0
    var deviations: UInt64 = 0
    var failures: UInt64 = 0
    var backlog: UInt64 = 0

    mutating func add(_ other: Interval) {
        latencies.add(other.latencies)
        sent += other.sent
        answered += other.answered
        deviations += other.deviations
        failures += other.failures
        backlog += other.backlog
    }
}
