import ConfigurationReading
import Histogram
import Rules

// The summary for people.
extension Summary {
    /// All lines, the last one with the verdict.
    package var text: String {
        let end = findings + [("verdict", verdict)]
        let blocks = [
            Self.lines(description), table, stageTable, Self.lines(figures), Self.lines(end),
        ]
        return blocks.filter { !$0.isEmpty }.map { $0.joined(separator: "\n") }.joined(
            separator: "\n\n"
        ) + "\n"
    }

    /// A name and what there is to say of it.
    typealias Fact = (name: String, text: String)

    private static func lines(_ facts: [Fact]) -> [String] {
        facts.map { Figures.left($0.name, 12) + $0.text }
    }

    var description: [Fact] {
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
        let lines: [Fact] = [
            ("request", "\(request.method) \(request.url.target) to \(request.host)"),
            ("rule", "\(plan.rule.id): \(plan.rule.modeText); \(demands)"),
            ("load", plan.loadText), ("mix", plan.options.mix.text),
            ("devices", devices.joined(separator: "; ")),
        ]
        let broken: [Fact] = [("", "interrupted: what follows is part of it")]
        return lines + (wasInterrupted ? broken : [])
    }

    /// A line of a table: two texts on the left, then figures.
    private static func row(_ texts: [String], _ percentiles: [String]) -> String {
        Figures.left(texts[0], 20) + Figures.left(texts[1], 26)
            + texts[2...].map { Figures.right($0, 12) }.joined()
            + percentiles.map { Figures.right($0, 9) }.joined()
    }

    /// The percentiles as texts; dashes where nothing was measured.
    static func texts(_ latencies: Measurements.Latencies?) -> [String] {
        percentiles.map { percentile in
            guard let latencies, latencies.totalCount > 0 else { return "–" }
            return Figures.latency(latencies.valueAtPercentile(percentile.percent))
        }
    }

    private var table: [String] {
        func line(_ name: String, expects answer: String, _ row: Measurements.Row) -> String {
            let counts = [row.sent, row.asExpected].map(Figures.count)
            return Self.row([name, answer] + counts, Self.texts(latencies(row)))
        }
        let titles = ["request", "expected answer", "sent", "as expected"]
        let rows = sentRows.map { sending, row in
            line(sending.title, expects: plan.expectation(of: sending).text, row)
        }
        return [Self.row(titles, Self.percentiles.map(\.name))] + rows
            + [line("all", expects: "", measurements.total)]
    }

    /// A line for each stage; nothing for a run without stages.
    private var stageTable: [String] {
        guard !stages.isEmpty else { return [] }
        let titles = ["stage", "answers/s", "sent", "as expected"]
        return [Self.row(titles, Self.percentiles.map(\.name))]
            + stages.enumerated().map { number, stage in
                let counts = [stage.counts.sent, stage.counts.asExpected].map(Figures.count)
                let name = "\(number + 1)  \(stage.plan.text)"
                let texts = [name, Figures.fixed(stage.throughput, 1)]
                return Self.row(texts + counts, Self.texts(stage.counts.latencies))
            }
    }

    var figures: [Fact] {
        let since = isOpenLoop ? "was due" : "was sent: a closed loop"
        var lines: [Fact] = [
            ("latency", "counts from the moment at which a request \(since)"),
            ("throughput", Figures.fixed(throughput, 1) + " answers/s as expected"),
        ]
        if isOpenLoop {
            let backlog = Figures.count(measurements[.backlogMax])
            lines.append(("backlog", "\(backlog) requests at most were due and not sent"))
        }
        if measurements[.resent] > 0 {
            let count = Figures.count(measurements[.resent])
            lines.append(("resent", "\(count) whose stream the gateway refused (RFC 9113 §8.7)"))
        }
        if measurements[.replaced] > 0 {
            let count = Figures.count(measurements[.replaced])
            let text = "\(count) went as good, since nothing had been admitted before them"
            lines.append(("replaced", text))
        }
        var own =
            "\(Figures.latency(cost.cpu / max(measurements.sent, 1))) of CPU a request, "
            + "\(Figures.percent(cost.cores)) of a core"
        if isOpenLoop { own += "; sent \(Figures.latency(lag99)) after they were due (p99)" }
        lines.append(("own cost", own))
        if let saturation {
            let text = "the load generator had too little of the machine: \(saturation)"
            lines.append(("WARNING", text))
        }
        return lines
    }

    /// Failures, examples of deviations, and what the rule does not refuse, or may not.
    var findings: [Fact] {
        var lines: [Fact] = []
        func add(_ name: String, _ count: UInt64, what text: String) {
            if count > 0 { lines.append((name, "\(Figures.count(count)) \(text)")) }
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
            return ("deviation", text)
        }
        let samples = UInt64(measurements.samples.count)
        if deviationCount > samples {
            lines.append(("", "and \(Figures.count(deviationCount - samples)) more"))
        }
        if measurements[.admittedReplays] > 0 {
            add("REPLAYS", measurements[.admittedReplays], what: "replays were ADMITTED")
            let text = "unless an order or a guard lets them pass: `portcullis rollout` shows it"
            lines.append(("", text))
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

    var verdict: String {
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
