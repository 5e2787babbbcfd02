import ConfigurationReading
import Encodings
import Histogram
import Rules

// The summary for programs. Times are nanoseconds.
extension Summary {
    /// An object, on lines of its own for each member.
    package var json: String {
        var out = JSONWriter(.indented)
        out.object { out in
            describe(in: &out)
            count(in: &out)
            out.objects("rows", of: sentRows) { out, sent in
                out.member("kind", sent.sending.kind.rawValue)
                out.member("request", sent.sending.title)
                out.member("expected", plan.expectation(of: sent.sending).text)
                out.member("sent", sent.row.sent)
                out.member("as_expected", sent.row.asExpected)
                Self.percentiles("latency_from_due_ns", sent.row.fromDue, in: &out)
                Self.percentiles("latency_from_sent_ns", sent.row.fromSent, in: &out)
            }
            out.objects("outcomes", of: measurements.outcomes.sorted) { out, found in
                out.member("request", found.outcome.sending.title)
                out.member("status", found.outcome.status)
                out.member("reason", found.outcome.reason)
                out.member("as_expected", found.outcome.isAsExpected)
                out.member("count", found.count)
            }
            out.objects("stages", of: stages) { out, stage in
                out.member("stage", stage.plan.text)
                out.member("sent", stage.counts.sent)
                out.member("as_expected", stage.counts.asExpected)
                out.member("wrong", stage.counts.wrong)
                out.member("failed", stage.counts.failed)
                out.member("admitted_replays", stage.counts.admittedReplays)
                out.member("backlog_max", stage.counts.backlogMax)
                out.member("throughput_milli_per_second", Int64(stage.throughput * 1000))
                Self.percentiles("latency_from_due_ns", stage.counts.latencies, in: &out)
            }
            out.objects("samples", of: measurements.samples) { out, deviation in
                out.member("number", deviation.number)
                out.member("request", deviation.sending.title)
                out.member("expected", deviation.expected)
                out.member("found", deviation.found)
            }
            out.objects("seconds", of: seconds) { out, second in
                out.member("at_ms", Int64(second.at * 1000))
                if let stage = second.stage { out.member("stage", stage + 1) }
                out.member("sent", second.sent)
                out.member("answered", second.answered)
                out.member("deviations", second.deviations)
                out.member("failures", second.failures)
                out.member("backlog", second.backlog)
                out.member("p50_ns", second.p50)
                out.member("p99_ns", second.p99)
                out.member("max_ns", second.max)
            }
        }
        out.endLine()
        return out.text
    }

    private func describe(in out: inout JSONWriter) {
        out.member("request", "\(plan.request.method) \(plan.request.url.target)")
        out.member("host", plan.request.host)
        out.member("rule", plan.rule.id)
        out.member("loop", isOpenLoop ? "open" : "closed")
        out.member("rate_per_second", plan.options.pacing.rate.map { Figures.fixed($0, 3) })
        out.member("connections", plan.options.connections)
        out.member("http_version", plan.server.version == .http1 ? "1.1" : "2")
        out.member("streams_per_connection", plan.server.version.streams)
        out.member("event_loops", plan.options.loops)
        out.member("devices", plan.fleet.count)
        out.member("interrupted", wasInterrupted)
        out.member("as_expected", isAsExpected)
    }

    private func count(in out: inout JSONWriter) {
        out.member("sent", measurements.sent)
        out.member("answered_as_expected", measurements.asExpected)
        out.member("deviations", deviationCount)
        out.member("admitted_replays", measurements[.admittedReplays])
        out.member("admitted_unenforced", measurements[.unenforced])
        out.member("admitted_or_refused", measurements[.uncertain])
        out.object("failures") { out in
            for failure in ExchangeFailure.allCases {
                out.member(failure.rawValue, measurements.failures[failure] ?? 0)
            }
        }
        out.member("throughput_milli_per_second", Int64(throughput * 1000))
        out.member("backlog_max", measurements[.backlogMax])
        out.member("resent", measurements[.resent])
        Self.percentiles("lag_ns", measurements.lag, in: &out)
        out.member("cpu_ns_per_request", cost.cpu / max(measurements.sent, 1))
        out.member("cpu_milli_cores", Int64(cost.cores * 1000))
        out.member("is_saturated", saturation != nil)
        out.member("signed_before", preSigned.count)
        out.member("signed_on_the_way", measurements[.signed])
        out.member("signing_ns", measurements[.signingNanoseconds])
    }

    private static func percentiles(
        _ name: String,
        _ latencies: Measurements.Latencies?,
        in out: inout JSONWriter
    ) {
        guard let latencies else { return out.member(name, String?.none) }
        out.object(name) { out in
            for (name, percent) in percentiles {
                out.member(name, latencies.valueAtPercentile(percent))
            }
            out.member("mean", Int64(latencies.mean.isFinite ? latencies.mean : 0))
            out.member("count", latencies.totalCount)
        }
    }
}
