import ConfigurationReading
import Histogram
import Rules
import Services
import Verification

// The summary for people.
extension Summary {
    static let percentiles: [(name: String, percent: Double)] = [
        ("p50", 50), ("p90", 90), ("p99", 99), ("p99.9", 99.9), ("p99.99", 99.99), ("max", 100),
    ]

    /// All lines, the last one with the verdict.
    package var text: String {
        let blocks = [description, table, figures, verdict]
        return blocks.map { $0.joined(separator: "\n") }.joined(separator: "\n\n") + "\n"
    }

    private static func line(_ name: String, _ text: String) -> String {
        Figures.left(name, 12) + text
    }

    private var description: [String] {
        let demands = plan.rule.demandLines.joined(separator: "; ")
        var lines = [
            Self.line("request", "\(plan.method) \(plan.target) to \(plan.host)"),
            Self.line("rule", "\(plan.rule.id): \(plan.rule.modeText); \(demands)"),
            Self.line("load", plan.loadText),
            Self.line("mix", plan.options.mix.text),
        ]
        var devices = "\(Figures.count(UInt64(plan.fleet.count)))"
        if preSigned.count > 0 {
            devices +=
                "; \(Figures.count(UInt64(preSigned.count))) assertions signed before the start in "
                + "\(Figures.latency(preSigned.nanoseconds)), \(Figures.bytes(preSigned.bytes))"
        }
        let count = measurements.signedCount
        if count > 0 {
            devices +=
                "; \(Figures.count(count)) signed on the way, "
                + "\(Figures.latency(measurements.signingNanoseconds / count)) each"
        }
        lines.append(Self.line("devices", devices))
        if wasInterrupted { lines.append(Self.line("", "interrupted: what follows is part of it")) }
        return lines
    }

    private var table: [String] {
        let names = ["request", "expected answer", "sent", "as expected"]
        let widths = [20, 26, 12, 12]
        func row(_ texts: [String], _ latencies: [String]) -> String {
            let first = zip(texts, widths).prefix(2).map { Figures.left($0, $1) }
            let counts = zip(texts, widths).dropFirst(2).map { Figures.right($0, $1) }
            return (first + counts + latencies.map { Figures.right($0, 9) }).joined()
        }
        var lines = [row(names, Self.percentiles.map(\.name))]
        for sending in Sending.allCases where measurements.rows[sending.rawValue].sent > 0 {
            let counts = measurements.rows[sending.rawValue]
            lines.append(
                row(
                    [
                        sending.title, answerText(sending), Figures.count(counts.sent),
                        Figures.count(counts.asExpected),
                    ],
                    Self.texts(latencies(sending))
                )
            )
        }
        lines.append(
            row(
                [
                    "all", "", Figures.count(measurements.sent),
                    Figures.count(measurements.asExpected),
                ],
                Self.texts(allLatencies)
            )
        )
        return lines
    }

    /// The answer that a row expects.
    func answerText(_ sending: Sending) -> String {
        let declares = plan.demand.declaresDigest
        let refusal = sending.expected(hasDeclaredDigest: declares, by: plan.options.proof)
        guard let refusal else { return "admitted" }
        return "\(LocalOutcome.refused(refusal).row.status) \(refusal.rawValue)"
    }

    private static func texts(_ latencies: Measurements.Latencies?) -> [String] {
        percentiles.map { percentile in
            guard let latencies, latencies.totalCount > 0 else { return "–" }
            return Figures.latency(latencies.valueAtPercentile(percentile.percent))
        }
    }

    private var figures: [String] {
        var lines = [
            Self.line(
                "latency",
                isOpenLoop
                    ? "counts from the moment at which a request was due"
                    : "counts from the moment at which a request was sent: a closed loop"
            ),
            Self.line("throughput", Figures.fixed(throughput, 1) + " answers/s as expected"),
        ]
        if isOpenLoop {
            let backlog = Figures.count(measurements.backlogMax)
            lines.append(Self.line("backlog", "\(backlog) requests at most were due and not sent"))
        }
        if measurements.replacedCount > 0 {
            let count = Figures.count(measurements.replacedCount)
            let text = "\(count) went as good, since nothing had been admitted before them"
            lines.append(Self.line("replaced", text))
        }
        let sent = max(measurements.sent, 1)
        var own =
            "\(Figures.latency(cost.cpu / sent)) of CPU a request, "
            + "\(Figures.percent(cost.cores)) of a core"
        if isOpenLoop { own += "; sent \(Figures.latency(lag99)) after they were due (p99)" }
        lines.append(Self.line("own cost", own))
        if let saturation {
            let text = "the load generator had too little of the machine: \(saturation)"
            lines.append(Self.line("WARNING", text))
        }
        return lines
    }

    private var verdict: [String] {
        var lines: [String] = []
        for (failure, count) in measurements.failures.sorted(by: { $0.key < $1.key }) {
            lines.append(Self.line("failed", "\(Figures.count(count)) \(failure.rawValue)"))
        }
        for deviation in measurements.samples {
            let number = Figures.count(deviation.number)
            let text =
                "request \(number), \(deviation.sending.title): expected \(deviation.expected), "
                + "found \(deviation.found)"
            lines.append(Self.line("deviation", text))
        }
        let more = deviationCount - min(UInt64(measurements.samples.count), deviationCount)
        if more > 0 { lines.append(Self.line("", "and \(Figures.count(more)) more")) }
        if measurements.admittedReplays > 0 {
            let count = Figures.count(measurements.admittedReplays)
            lines.append(Self.line("REPLAYS", "\(count) replays were ADMITTED"))
            let text = "unless an order or a guard lets them pass: `portcullis rollout` shows it"
            lines.append(Self.line("", text))
        }
        lines += unenforced
        lines.append(Self.line("verdict", verdictText))
        return lines
    }

    /// What the rule does not refuse, or may not.
    private var unenforced: [String] {
        var lines: [String] = []
        if measurements.unenforcedCount > 0 {
            let count = Figures.count(measurements.unenforcedCount)
            let why =
                plan.rule.mode == .observe
                ? "the rule observes" : "the rollout of \(plan.rule.rollout.text) leaves them out"
            lines.append(
                Self.line("unenforced", "\(count) with a fault were admitted as expected: \(why)")
            )
        }
        if measurements.uncertainCount > 0 {
            let count = Figures.count(measurements.uncertainCount)
            let text =
                "\(count) with a fault may be refused or admitted: the rollout counts them by an "
                + "address that only the gateway knows, or they were sent while its share grew"
            lines.append(Self.line("either", text))
        }
        return lines
    }

    private var verdictText: String {
        let sent = Figures.count(measurements.sent)
        guard !isAsExpected else {
            let replays = Sending.allCases.filter(\.isReplay)
                .reduce(0) { $0 + measurements.rows[$1.rawValue].sent }
            guard replays > 0 else { return "all \(sent) as expected" }
            let admitted = measurements.unenforcedReplays
            let text =
                admitted == 0
                ? "none of \(Figures.count(replays)) replays was admitted"
                : "\(Figures.count(admitted)) of \(Figures.count(replays)) replays were admitted, "
                    + "none where the rule is known to be enforced"
            return "all \(sent) as expected; \(text)"
        }
        return "\(Figures.count(deviationCount)) of \(sent) otherwise than expected, "
            + "\(Figures.count(unanswered)) without an answer"
    }
}

/// Prints the progress of a run.
package struct Progress: Sendable {
    private let write: @Sendable (String) -> Void
    private let isTerminal: Bool

    /// - Parameters:
    ///   - isTerminal: each beat replaces the previous line; otherwise every fifth beat is a line.
    ///   - write: takes a text with all its control characters, at once.
    package init(isTerminal: Bool, write: @escaping @Sendable (String) -> Void) {
        self.isTerminal = isTerminal
        self.write = write
    }

    /// The number of beats for each line where standard error is no terminal.
    private static let beatsPerLine = 5

    /// Prints a line.
    package func say(_ text: String) { write(text + "\n") }

    /// Ends the progress: the last line stays.
    package func end() { if isTerminal { write("\n") } }

    /// - `number`: of the beat, from 1.
    func beat(_ second: Summary.Second, number: Int) {
        guard isTerminal || number % Self.beatsPerLine == 1 else { return }
        let text = Self.text(second)
        // Carriage return, and the rest of the line cleared (ECMA-48 EL).
        write(isTerminal ? "\r\u{1B}[K\(text)" : text + "\n")
    }

    static func text(_ second: Summary.Second) -> String {
        let interval = second.interval
        let rate = second.length > 0 ? Double(interval.answered) / second.length : 0
        var text = "\(Figures.right(Figures.fixed(second.at, 0), 4)) s  "
        text += "\(Figures.right(Figures.count(UInt64(rate)), 8)) answers/s  "
        for (name, percent) in [("p50", 50.0), ("p99", 99.0), ("max", 100)] {
            let value = interval.latencies.valueAtPercentile(percent)
            text += "\(name) \(Figures.left(Figures.latency(value), 8))  "
        }
        if interval.backlog > 0 { text += "backlog \(Figures.count(interval.backlog))  " }
        if interval.failures > 0 { text += "failed \(Figures.count(interval.failures))  " }
        return text + "deviations \(Figures.count(interval.deviations))"
    }
}

/// Numbers as people read them.
enum Figures {
    /// Three significant digits and a unit: `612 µs`, `1.24 ms`, `12.4 s`.
    static func latency(_ nanoseconds: UInt64) -> String {
        let value = Double(nanoseconds)
        // 999.5 of a unit would be written as 1000.
        if value < 999_500 { return significant(value / 1e3) + " µs" }
        if value < 999_500_000 { return significant(value / 1e6) + " ms" }
        return significant(value / 1e9) + " s"
    }

    /// `1,234,567`.
    static func count(_ number: UInt64) -> String {
        var text = ""
        let digits = String(number)
        for (place, digit) in digits.enumerated() {
            if place > 0, (digits.count - place) % 3 == 0 { text.append(",") }
            text.append(digit)
        }
        return text
    }

    /// `94.2 %`.
    static func percent(_ share: Double) -> String {
        fixed(share * 100, share < 0.1 ? 2 : 1) + " %"
    }

    /// `1.4 GiB`.
    static func bytes(_ count: Int) -> String {
        let units = ["B", "KiB", "MiB", "GiB", "TiB"]
        var value = Double(count)
        var unit = 0
        while value >= 1024, unit < units.count - 1 {
            value /= 1024
            unit += 1
        }
        return (unit == 0 ? String(count) : significant(value)) + " " + units[unit]
    }

    /// A number with this number of decimals.
    static func fixed(_ value: Double, _ places: Int) -> String {
        guard value.isFinite, abs(value) < 1e15 else { return "–" }
        var scale: Int64 = 1
        for _ in 0..<places { scale *= 10 }
        let scaled = Int64((abs(value) * Double(scale)).rounded())
        let sign = value < 0 && scaled > 0 ? "-" : ""
        guard places > 0 else { return sign + String(scaled) }
        let rest = String(scaled % scale)
        let zeros = String(repeating: "0", count: places - rest.count)
        return "\(sign)\(scaled / scale).\(zeros)\(rest)"
    }

    /// Three digits, with as many decimals as they leave.
    static func significant(_ value: Double) -> String {
        fixed(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0)
    }

    /// `text` with spaces before it.
    static func right(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(width - text.count, 0)) + text
    }

    /// `text` with spaces after it.
    static func left(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(width - text.count, 0))
    }
}
