package import Rules
package import Telemetry

/// The counts of an event loop for reports since the last query.
///
/// A request that began before a reload ends with the rule that it began with. By then another rule
/// may have that rule's number. So rules are identified by their ids.
package struct ReportCounts: Sendable {
    /// The counts of one rule.
    package struct Entry: Sendable {
        package let rule: String
        package var counts: RuleCounts
    }

    private var ids: [String] = []
    /// By the rule's number; `nil` where nothing was counted.
    private var current: [RuleCounts?] = []
    /// The counts of rules that are no longer served: the rules that reloads have removed since the
    /// last ``take()``.
    private var former: [Entry] = []
    /// The hash of installs and addresses. A change does not hash again what was counted before.
    package var hash = InstallHash.ofProcess

    package init(_ rules: RuleSet) { serve(rules) }

    /// Sets the rules that requests have from now on.
    package mutating func serve(_ rules: RuleSet) {
        former = take()
        ids = rules.rules.map(\.id)
        current = Array(repeating: nil, count: ids.count)
    }

    /// Counts a request that has ended, and its verdict where it has one.
    package mutating func add(_ request: ReportedRequest?, nanoseconds: UInt64, of rule: Rule) {
        guard ids.indices.contains(rule.index), ids[rule.index] == rule.id else {
            return addFormer(request, nanoseconds, rule.id)
        }
        if current[rule.index] == nil { current[rule.index] = RuleCounts() }
        current[rule.index]?.add(nanoseconds: nanoseconds)
        if let request { current[rule.index]?.add(request, by: hash) }
    }

    private mutating func addFormer(
        _ request: ReportedRequest?,
        _ nanoseconds: UInt64,
        _ id: String
    ) {
        var counts = RuleCounts()
        counts.add(nanoseconds: nanoseconds)
        if let request { counts.add(request, by: hash) }
        Self.add(Entry(rule: id, counts: counts), to: &former)
    }

    private static func add(_ entry: Entry, to entries: inout [Entry]) {
        if let place = entries.firstIndex(where: { $0.rule == entry.rule }) {
            entries[place].counts.merge(entry.counts)
        } else {
            entries.append(entry)
        }
    }

    /// Hands over the counts, and resets them.
    package mutating func take() -> [Entry] {
        var taken = former
        former = []
        for place in current.indices {
            guard let counts = current[place] else { continue }
            Self.add(Entry(rule: ids[place], counts: counts), to: &taken)
            current[place] = nil
        }
        return taken
    }
}
