import AppAttest
import Cryptography
import KeyStore
import Telemetry
import Verification

/// The counts of each rule, with the requests that `enforce` would have refused.
package struct Report: Sendable {
    /// One rule in one window.
    package struct Part: Sendable {
        let window: ReportWindow
        /// The time that the window really covers.
        let seconds: Int64
        let counts: RuleCounts
    }

    /// An event that may explain a step in a chart. It names no person.
    package struct Mark: Equatable, Sendable {
        /// The raw value is API.
        package enum Kind: String, Sendable {
            case order
            /// A guard has fallen.
            case fall = "guard"
            case reload
        }

        /// Marks that are kept, the latest.
        package static let countMax = 100

        /// Seconds since 1970.
        let at: Int64
        let kind: Kind
        /// What has changed, in words.
        let text: String

        package init(_ kind: Kind, at: Int64, _ text: String) {
            (self.kind, self.at, self.text) = (kind, at, text)
        }
    }

    package struct Series: Sendable {
        let slotSeconds: Int64
        /// By Unix time.
        let points: [(at: Int64, point: SeriesPoint)]
    }

    package struct Entry: Sendable {
        let id: String
        /// The rule as it is served; `nil` when a reload has removed it.
        let facts: RuleFacts?
        let parts: [Part]
        let series: [Series]
    }

    /// The series of all rules together, one for each length of a slot.
    var allSeries: [Series] {
        let lengths = Set(entries.flatMap { $0.series.map(\.slotSeconds) }).sorted()
        return lengths.map { length in
            var points: [Int64: SeriesPoint] = [:]
            for series in entries.flatMap(\.series) where series.slotSeconds == length {
                for (at, point) in series.points { points[at, default: SeriesPoint()].merge(point) }
            }
            return Series(
                slotSeconds: length,
                points: points.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
            )
        }
    }

    /// Seconds since 1970.
    let startedAt: Int64
    let now: Int64
    let entries: [Entry]
    /// The oldest first.
    let marks: [Mark]
    /// The gateways that have counted; `nil` without a fleet.
    package var gateways: ToldGateways?
    /// Rules that are left out, since a gateway had too much to tell.
    var omitted = 0

    init(startedAt: Int64, now: Int64, entries: [Entry], marks: [Mark]) {
        (self.startedAt, self.now) = (startedAt, now)
        (self.entries, self.marks) = (entries, marks)
    }

    /// - rules: the served rules, in their order.
    /// - now: when the process started and now, in seconds since 1970, and by the ledger's clock.
    package init(
        _ ledger: ReportLedger,
        of rules: [RuleFacts],
        _ scope: ReportScope,
        marks: [Mark] = [],
        at now: (startedAt: Int64, wall: Int64, tick: Int64)
    ) {
        self.marks = marks
        startedAt = now.startedAt
        self.now = now.wall
        let served = rules.map { (id: $0.id, facts: RuleFacts?.some($0)) }
        let others = ledger.others(than: Set(rules.map(\.id))).map { id in
            (id: id, facts: RuleFacts?.none)
        }
        let all = served + others
        entries = all.filter { scope.rule == nil || scope.rule == $0.id }.map { rule in
            Entry(
                id: rule.id,
                facts: rule.facts,
                parts: scope.windows.map { window in
                    Part(
                        window: window,
                        seconds: ledger.coverage(window, at: now.tick),
                        counts: ledger.counts(of: rule.id, window, at: now.tick)
                    )
                },
                series: scope.windows.map { window in
                    Series(
                        slotSeconds: window.series.slotSeconds,
                        points: ledger.series(of: rule.id, window, at: now.tick).map { slot in
                            (now.wall - now.tick + slot.beganAt, slot.point)
                        }
                    )
                }
            )
        }
    }
}

extension Report {
    /// The counts as tables, for people.
    package var text: String {
        var lines = [
            "counted since \(UnixTime(seconds: startedAt).iso8601); installs and addresses are "
                + "estimates, with an error of about 5 %"
        ]
        if let gateways {
            lines.append("gateways: " + gateways.entries.map(\.name).joined(separator: ", "))
            lines += gateways.remarks
        }
        if omitted > 0 { lines.append("\(omitted) rules are left out: there are too many") }
        let gone = gateways == nil ? "removed by a reload" : "no rule of this gateway"
        for entry in entries {
            lines.append("")
            lines.append("\(entry.id): \(entry.facts?.standing ?? gone)")
            for part in entry.parts { lines += part.lines }
        }
        return lines.joined(separator: "\n") + "\n"
    }
}

extension Report.Part {
    fileprivate var lines: [String] {
        let title = "  \(window.text) (\(Self.time(seconds)))"
        guard counts.times.count > 0 else { return [title + ": no requests"] }
        guard counts.requests > 0 else {
            return [title + ": \(counts.times.count) requests, none of which was judged", took]
        }
        let totals = VerdictClass.allCases.map { "\($0.rawValue) \(counts[$0])" }
        let proofs = counts.proofs.map { "\($0.name) \($0.count)" }
        let reasons = counts.cells.reasons.map { "\($0.reason) \($0.count)" }
        return [
            title + ": \(counts.requests) judged requests, \(counts.installCount) installs, "
                + "\(counts.refused) refused",
            "    " + totals.joined(separator: ", "),
        ] + (proofs.isEmpty ? [] : ["    verified by: " + proofs.joined(separator: ", ")])
            + integrity
            + (reasons.isEmpty ? [] : ["    reasons: " + reasons.joined(separator: ", ")])
            + [took] + steps.tableLines() + versions.tableLines()
    }

    private var integrity: [String] {
        let (met, unmet) = counts.integrity
        return met + unmet == 0 ? [] : ["    Play Integrity: met \(met), unmet \(unmet)"]
    }

    private var took: String {
        let (half, most) = (counts.times.quantile(0.5), counts.times.quantile(0.99))
        return "    half took at most \(Self.duration(half)), 99 % at most \(Self.duration(most))"
    }

    private var steps: [[String]] {
        let title = ["enforce at", "would refuse", "of requests", "installs", "addresses"]
        return [title]
            + zip(counts.steps, RuleCounts.shares).map { step, share in
                [
                    "\(share.percent)%", "\(step.requests)",
                    Self.percent(step.requests, of: counts.requests), "\(step.installCount)",
                    "\(step.addressCount)",
                ]
            }
    }

    private var versions: [[String]] {
        let classes = VerdictClass.allCases
        return [["version", "environment"] + classes.map(\.rawValue)]
            + counts.groups.map { group in
                [group.build.text, group.environment?.rawValue ?? "none"]
                    + classes.map { "\(group.cells[$0])" }
            }
    }

    /// In hundredths of a percent, rounded down.
    static func percent(_ count: UInt64, of all: UInt64) -> String {
        guard all > 0 else { return "0%" }
        let hundredths = Int(Double(count) / Double(all) * 10_000)
        let rest = hundredths % 100
        return "\(hundredths / 100).\(rest < 10 ? "0" : "")\(rest)%"
    }

    static func time(_ seconds: Int64) -> String {
        switch seconds {
        case ..<120: "\(seconds) s"
        case ..<7200: "\(seconds / 60) min"
        default: "\(seconds / 3600) h"
        }
    }

    private static func duration(_ nanoseconds: UInt64) -> String {
        switch nanoseconds {
        case ..<1_000_000: "\(nanoseconds / 1000) µs"
        case ..<10_000_000_000: "\(nanoseconds / 1_000_000) ms"
        default: "\(nanoseconds / 1_000_000_000) s"
        }
    }
}
