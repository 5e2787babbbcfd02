import AppAttest
import Cryptography
import KeyStore
import Telemetry
import Verification

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
            + [took] + Self.table(steps) + Self.table(versions)
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
                let version = group.build.word ?? "not known"
                let isClaimed = group.build.source == .claimed
                let environment = group.environment?.rawValue ?? "none"
                return [isClaimed ? version + " (claimed)" : version, environment]
                    + classes.map { "\(group[$0])" }
            }
    }

    /// Columns, the first aligned to the left and all others to the right.
    private static func table(_ rows: [[String]]) -> [String] {
        guard let first = rows.first else { return [] }
        let widths = first.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { row in
            let cells = row.indices.map { column in
                let space = String(repeating: " ", count: widths[column] - row[column].count)
                return column == 0 ? row[column] + space : space + row[column]
            }
            return "    " + cells.joined(separator: "  ")
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
