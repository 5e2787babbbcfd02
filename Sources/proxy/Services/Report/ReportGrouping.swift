import AppAttest
import Cryptography
import Encodings
import HTTPWire
import KeyStore
import Verification

/// What the requests of a report are grouped by, over all rules. The raw value is the word of pages
/// and commands: add, do not rename.
package enum ReportGrouping: String, CaseIterable, Sendable {
    /// The system that the client claims.
    case os
    /// The build of the app.
    case build
}

extension RuleCounts {
    /// The requests of one build and environment.
    struct Group {
        let build: AppBuild
        let environment: KeyEnvironment?
        let cells: [Cell]
    }

    /// The requests by build and environment, the most frequent first.
    var groups: [Group] {
        var groups: [(build: AppBuild, environment: KeyEnvironment?, cells: [Cell])] = []
        for cell in cells {
            let build = build(of: cell)
            let place = groups.firstIndex {
                $0.build == build && $0.environment == cell.environment
            }
            if let place {
                groups[place].cells.append(cell)
            } else {
                groups.append((build, cell.environment, [cell]))
            }
        }
        return groups.map { Group(build: $0.build, environment: $0.environment, cells: $0.cells) }
            .sorted {
                ($0.cells.total, $0.build.word ?? "") > ($1.cells.total, $1.build.word ?? "")
            }
    }

    /// The requests by system, the most frequent first.
    var systemGroups: [(name: SystemCounts.Name, cells: [SystemCounts.Cell])] {
        systems.groups.sorted {
            ($0.cells.total, $0.name.text) > ($1.cells.total, $1.name.text)
        }
    }
}

/// The requests of one rule that have a system or a build in common.
private struct ReportGroupLine {
    /// The columns between the name and the reasons.
    static let classes: [VerdictClass] = [.verified, .missing, .unsupported, .invalid, .errors]
    /// The most reasons that a line names.
    private static let reasonsMax = 4

    let name: String
    let rule: String
    let counts: [UInt64]
    let refused: UInt64
    private let reasons: [(reason: String, count: UInt64)]

    init(_ name: String, rule: String, _ cells: [some CountedVerdicts]) {
        (self.name, self.rule) = (name, rule)
        counts = Self.classes.map { cells[$0] }
        refused = cells.refused
        reasons = cells.filter { $0.outcome != .refuse(.preflight) }.reasons
    }

    /// Requests that are not verified.
    var failed: UInt64 { counts.dropFirst().reduce(0, &+) }

    var cells: [String] {
        let named = reasons.prefix(Self.reasonsMax).map { "\($0.reason) \($0.count)" }
        let more = reasons.count > named.count ? ["…"] : []
        return [name, rule] + counts.map { "\($0)" }
            + ["\(refused)", (named + more).joined(separator: ", ")]
    }

    static let head =
        ["rule"] + classes.map(\.rawValue) + ["refused", "reasons"]
}

extension Report {
    /// A line for each group and rule in the first window, of which the first are refused the
    /// most.
    package func text(by grouping: ReportGrouping) -> String {
        let all = entries.flatMap { groups(of: $0, by: grouping) }.filter {
            $0.failed > 0 || $0.counts[0] > 0
        }
        let sorted = all.sorted {
            ($1.refused, $1.failed, $1.counts[0], $0.name, $0.rule)
                < ($0.refused, $0.failed, $0.counts[0], $1.name, $1.rule)
        }
        let window = entries.first?.parts.first.map { " · \($0.window.text)" } ?? ""
        let kind = grouping == .os ? " · systems are what clients claim" : ""
        var lines = ["counted since \(UnixTime(seconds: startedAt).iso8601)\(window)\(kind)"]
        lines += gateways?.remarks ?? []
        if omitted > 0 { lines.append("\(omitted) rules are left out: there are too many") }
        guard !sorted.isEmpty else { return (lines + ["no requests were judged"]).text }
        let title = grouping == .os ? "system" : "build"
        lines += ([[title] + ReportGroupLine.head] + sorted.map { $0.cells }).tableLines(texts: 2)
        return lines.text
    }

    private func groups(of entry: Entry, by grouping: ReportGrouping) -> [ReportGroupLine] {
        guard let counts = entry.parts.first?.counts else { return [] }
        switch grouping {
        case .os:
            return counts.systemGroups.map {
                ReportGroupLine($0.name.text, rule: entry.id, $0.cells)
            }
        case .build:
            var builds: [(name: String, cells: [RuleCounts.Cell])] = []
            for group in counts.groups {
                let name = group.build.text
                if let place = builds.firstIndex(where: { $0.name == name }) {
                    builds[place].cells += group.cells
                } else {
                    builds.append((name, group.cells))
                }
            }
            return builds.map { ReportGroupLine($0.name, rule: entry.id, $0.cells) }
        }
    }
}

extension [String] {
    fileprivate var text: String { joined(separator: "\n") + "\n" }
}

extension AppBuild {
    /// The version as reports show it; `nil` where it is unknown.
    var word: String? {
        switch (source, version) {
        case (.none, _): nil
        case (_, let version?): version.text
        case (_, nil): "other"
        }
    }

    /// For people, with the word of a client marked.
    var text: String {
        let version = word ?? "not known"
        return source == .claimed ? version + " (claimed)" : version
    }
}

extension [[String]] {
    /// The rows as lines: columns with two spaces between them, below a margin.
    ///
    /// - texts: the first columns, which are aligned to the left. All others are aligned to the
    ///   right. With more than one of them, the last column holds words, too.
    package func tableLines(texts: Int = 1) -> [String] {
        guard let first else { return [] }
        let widths = first.indices.map { column in map { $0[column].count }.max() ?? 0 }
        return map { row in
            let cells = row.indices.map { column in
                if texts > 1, column == row.count - 1 { return row[column] }
                let space = String(repeating: " ", count: widths[column] - row[column].count)
                return column < texts ? row[column] + space : space + row[column]
            }
            return ReportGroupFilter.margin + cells.joined(separator: "  ")
        }
    }
}

/// The lines of a grouped report or list that a command shows: `iOS 26.1`, or `1042`.
package struct ReportGroupFilter {
    fileprivate static let margin = "    "

    private let text: String
    private let words: [Substring]

    package init(_ text: String) {
        self.text = text
        words = text.lowercased().split(separator: " ")
    }

    /// The lines of a table whose first column has all words, with its title and all lines above.
    package func filtered(_ page: String) -> String {
        var shown: [Substring] = []
        var hasTitle = false
        var count = 0
        for line in page.split(separator: "\n") {
            guard line.hasPrefix(Self.margin) else {
                shown.append(line)
                continue
            }
            if hasTitle, !names(line.dropFirst(Self.margin.count)) { continue }
            if hasTitle { count += 1 }
            hasTitle = true
            shown.append(line)
        }
        if count == 0 { shown.append("nothing of \(text)") }
        return shown.joined(separator: "\n") + "\n"
    }

    private func names(_ row: Substring) -> Bool {
        let end = row.firstRange(of: "  ")?.lowerBound ?? row.endIndex
        let cells = row[..<end].lowercased().split(separator: " ")
        return words.allSatisfy { word in cells.contains { Self.names(word, $0) } }
    }

    /// Where a User-Agent has only the number of Apple's kernel, each of Apple's systems may be
    /// meant. `26` means `26.1`, too.
    private static func names(_ word: Substring, _ cell: Substring) -> Bool {
        if cell == word || cell.hasPrefix(word + ".") { return true }
        switch word {
        case "ipados": return cell == "ios" || cell == "apple"
        case "ios", "macos", "tvos", "watchos", "visionos": return cell == "apple"
        default: return false
        }
    }
}
