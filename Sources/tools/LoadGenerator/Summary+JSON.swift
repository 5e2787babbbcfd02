import Encodings
import Histogram
import Rules

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
            Member("lanes", .number(Int64(plan.options.loops))),
            Member("devices", .number(Int64(plan.fleet.count))),
            Member("interrupted", .bool(wasInterrupted)),
            Member("as_expected", .bool(isAsExpected)),
            Member("sent", Self.number(measurements.sent)),
            Member("answered_as_expected", Self.number(measurements.asExpected)),
            Member("deviations", Self.number(deviationCount)),
            Member("admitted_replays", Self.number(measurements.admittedReplays)),
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
