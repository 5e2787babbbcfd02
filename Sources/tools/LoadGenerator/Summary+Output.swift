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
            out.objects("rows", sentRows) { out, sent in
                out.member("kind", sent.sending.kind.rawValue)
                out.member("request", sent.sending.title)
                out.member("expected", plan.expectation(of: sent.sending).text)
                out.member("sent", sent.row.sent)
                out.member("as_expected", sent.row.asExpected)
                Self.percentiles("latency_from_due_ns", sent.row.fromDue, in: &out)
                Self.percentiles("latency_from_sent_ns", sent.row.fromSent, in: &out)
            }
            out.objects("samples", measurements.samples) { out, deviation in
                out.member("number", deviation.number)
                out.member("request", deviation.sending.title)
                out.member("expected", deviation.expected)
                out.member("found", deviation.found)
            }
            out.objects("seconds", seconds) { out, second in
                let interval = second.interval
                out.member("at_ms", Int64(second.at * 1000))
                out.member("sent", interval.sent)
                out.member("answered", interval.answered)
                out.member("deviations", interval.deviations)
                out.member("failures", interval.failures)
                out.member("backlog", interval.backlog)
                out.member("p50_ns", interval.latencies.valueAtPercentile(50))
                out.member("p99_ns", interval.latencies.valueAtPercentile(99))
                out.member("max_ns", interval.latencies.valueAtPercentile(100))
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

// The summary for people.
extension Summary {
    /// All lines, the last one with the verdict.
    package var text: String {
        let blocks = [description, table, figures, findings + [Self.line("verdict", verdict)]]
        return blocks.map { $0.joined(separator: "\n") }.joined(separator: "\n\n") + "\n"
    }

    private static func line(_ name: String, _ text: String) -> String {
        Figures.left(name, 12) + text
    }

    private var description: [String] {
        let demands = plan.rule.demandLines.joined(separator: "; ")
        var devices = [Figures.count(UInt64(plan.fleet.count))]
        if preSigned.count > 0 {
            devices.append(
                "\(Figures.count(UInt64(preSigned.count))) assertions signed before the start in "
                    + "\(Figures.latency(preSigned.nanoseconds)), \(Figures.bytes(preSigned.bytes))"
            )
        }
        let count = measurements[.signed]
        if count > 0 {
            let each = Figures.latency(measurements[.signingNanoseconds] / count)
            devices.append("\(Figures.count(count)) signed on the way, \(each) each")
        }
        let request = plan.request
        let lines = [
            Self.line("request", "\(request.method) \(request.url.target) to \(request.host)"),
            Self.line("rule", "\(plan.rule.id): \(plan.rule.modeText); \(demands)"),
            Self.line("load", plan.loadText), Self.line("mix", plan.options.mix.text),
            Self.line("devices", devices.joined(separator: "; ")),
        ]
        let broken = [Self.line("", "interrupted: what follows is part of it")]
        return lines + (wasInterrupted ? broken : [])
    }

    private var table: [String] {
        func line(_ texts: [String], _ percentiles: [String]) -> String {
            Figures.left(texts[0], 20) + Figures.left(texts[1], 26)
                + texts[2...].map { Figures.right($0, 12) }.joined()
                + percentiles.map { Figures.right($0, 9) }.joined()
        }
        func line(_ name: String, expects answer: String, _ row: Measurements.Row) -> String {
            let found = latencies(row)
            let percentiles = Self.percentiles.map { percentile in
                guard let found, found.totalCount > 0 else { return "–" }
                return Figures.latency(found.valueAtPercentile(percentile.percent))
            }
            let counts = [row.sent, row.asExpected].map(Figures.count)
            return line([name, answer] + counts, percentiles)
        }
        let titles = ["request", "expected answer", "sent", "as expected"]
        let rows = sentRows.map { sending, row in
            line(sending.title, expects: plan.expectation(of: sending).text, row)
        }
        return [line(titles, Self.percentiles.map(\.name))] + rows
            + [line("all", expects: "", measurements.total)]
    }

    private var figures: [String] {
        let since = isOpenLoop ? "was due" : "was sent: a closed loop"
        var lines = [
            Self.line("latency", "counts from the moment at which a request \(since)"),
            Self.line("throughput", Figures.fixed(throughput, 1) + " answers/s as expected"),
        ]
        if isOpenLoop {
            let backlog = Figures.count(measurements[.backlogMax])
            lines.append(Self.line("backlog", "\(backlog) requests at most were due and not sent"))
        }
        if measurements[.replaced] > 0 {
            let count = Figures.count(measurements[.replaced])
            let text = "\(count) went as good, since nothing had been admitted before them"
            lines.append(Self.line("replaced", text))
        }
        var own =
            "\(Figures.latency(cost.cpu / max(measurements.sent, 1))) of CPU a request, "
            + "\(Figures.percent(cost.cores)) of a core"
        if isOpenLoop { own += "; sent \(Figures.latency(lag99)) after they were due (p99)" }
        lines.append(Self.line("own cost", own))
        if let saturation {
            let text = "the load generator had too little of the machine: \(saturation)"
            lines.append(Self.line("WARNING", text))
        }
        return lines
    }

    /// Failures, examples of deviations, and what the rule does not refuse, or may not.
    private var findings: [String] {
        var lines: [String] = []
        func add(_ name: String, _ count: UInt64, what text: String) {
            if count > 0 { lines.append(Self.line(name, "\(Figures.count(count)) \(text)")) }
        }
        let failures = measurements.failures.map { (name: $0.key.rawValue, count: $0.value) }
        for failure in failures.sorted(by: { $0.name < $1.name }) {
            add("failed", failure.count, what: failure.name)
        }
        lines += measurements.samples.map { deviation in
            let number = Figures.count(deviation.number)
            let text =
                "request \(number), \(deviation.sending.title): expected \(deviation.expected), "
                + "found \(deviation.found)"
            return Self.line("deviation", text)
        }
        let samples = UInt64(measurements.samples.count)
        if deviationCount > samples {
            lines.append(Self.line("", "and \(Figures.count(deviationCount - samples)) more"))
        }
        if measurements[.admittedReplays] > 0 {
            add("REPLAYS", measurements[.admittedReplays], what: "replays were ADMITTED")
            let text = "unless an order or a guard lets them pass: `portcullis rollout` shows it"
            lines.append(Self.line("", text))
        }
        let isObserving = plan.rule.mode == .observe
        let leaving = "the rollout of \(plan.rule.rollout.text) leaves them out"
        let why = isObserving ? "the rule observes" : leaving
        let unenforced = measurements[.unenforced]
        add("unenforced", unenforced, what: "with a fault were admitted as expected: \(why)")
        add(
            "either",
            measurements[.uncertain],
            what: "with a fault may be refused or admitted: the rollout counts them by an "
                + "address that only the gateway knows, or they were sent while its share grew"
        )
        return lines
    }

    private var verdict: String {
        let sent = Figures.count(measurements.sent)
        guard isAsExpected else {
            return "\(Figures.count(deviationCount)) of \(sent) otherwise than expected, "
                + "\(Figures.count(unanswered)) without an answer"
        }
        let count = sentRows.reduce(0) { $0 + ($1.sending.isReplay ? $1.row.sent : 0) }
        guard count > 0 else { return "all \(sent) as expected" }
        let replays = Figures.count(count)
        let admitted = measurements[.unenforcedReplays]
        let text =
            admitted == 0
            ? "none of \(replays) replays was admitted"
            : "\(Figures.count(admitted)) of \(replays) replays were admitted, "
                + "none where the rule is known to be enforced"
        return "all \(sent) as expected; \(text)"
    }
}
