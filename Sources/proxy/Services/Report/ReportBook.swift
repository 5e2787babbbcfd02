/// What all lanes have counted for reports, for as long as a window looks back.
///
/// A machine without a clock: the gateway collects what the lanes have counted every ten seconds,
/// and when somebody asks, and says when. What is added lately counts as of the moment at which it
/// is added. A reload changes nothing here; counts of a rule that it has removed stay until they
/// are out of all windows.
package struct ReportBook: Sendable {
    /// Rules that were removed, of which counts are kept.
    package static let removedMax = 64

    /// The rings of a rule: less than 0.7 MiB, when all that clients can make them hold is there.
    private struct RuleRings: Sendable {
        var counts = ReportWindow.allCases.map(\.ring)
        var series = ReportWindow.allCases.map(\.series)
        /// When something was added last.
        var touchedAt: Int64 = 0
    }

    /// When counting began, in seconds of the caller's clock.
    private let startedAt: Int64
    private var rules: [String: RuleRings] = [:]

    package init(startedAt: Int64) { self.startedAt = startedAt }

    package mutating func add(_ entries: [ReportCounts.Entry], at now: Int64) {
        for entry in entries {
            let point = SeriesPoint(entry.counts)
            // Changed in place: the rings are not copied.
            var rings = rules.removeValue(forKey: entry.rule) ?? RuleRings()
            for place in rings.counts.indices { rings.counts[place].add(entry.counts, at: now) }
            for place in rings.series.indices { rings.series[place].add(point, at: now) }
            rings.touchedAt = now
            rules[entry.rule] = rings
        }
    }

    /// Lets go of what no window shows any more, and of all but the latest rules that were removed.
    package mutating func tidy(serving ids: Set<String>, at now: Int64) {
        rules = rules.filter { !$0.value.counts.allSatisfy { $0.slots(at: now).isEmpty } }
        let removed = rules.filter { !ids.contains($0.key) }
            .sorted { ($0.value.touchedAt, $0.key) > ($1.value.touchedAt, $1.key) }
        for entry in removed.dropFirst(Self.removedMax) { rules[entry.key] = nil }
    }

    /// The rules that have counts and are not among these, in the order of their ids.
    package func others(than ids: Set<String>) -> [String] {
        rules.keys.filter { !ids.contains($0) }.sorted()
    }

    package func counts(of rule: String, _ window: ReportWindow, at now: Int64) -> RuleCounts {
        rules[rule]?.counts[window.place].sum(at: now) ?? RuleCounts()
    }

    package func coverage(_ window: ReportWindow, at now: Int64) -> Int64 {
        window.ring.coverage(at: now, since: startedAt)
    }

    /// The slots of a rule that have counts, by the second at which each begins, the oldest first.
    package func series(
        of rule: String,
        _ window: ReportWindow,
        at now: Int64
    ) -> [(beganAt: Int64, point: SeriesPoint)] {
        guard let ring = rules[rule]?.series[window.place] else { return [] }
        return ring.slots(at: now).map { ($0.number * ring.slotSeconds, $0.content) }
    }
}

extension ReportWindow {
    /// The place of its rings.
    fileprivate var place: Int {
        switch self {
        case .fiveMinutes: 0
        case .hour: 1
        case .day: 2
        }
    }
}
