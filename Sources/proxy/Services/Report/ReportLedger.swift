import Encodings
import Telemetry

/// The counts of all event loops for reports, for as long as a window looks back.
///
/// A machine without a clock: the gateway collects the counts of the event loops every ten seconds
/// and for each report, and gives the time. Counts belong to the moment at which they are added. A
/// reload changes nothing here; counts of a removed rule stay until they are out of all windows.
package struct ReportLedger: Sendable {
    /// The most removed rules whose counts are kept.
    package static let removedMax = 64

    /// The rings of a rule: less than 0.7 MiB, even with all that clients can make them hold.
    private struct RuleRings: Sendable {
        var counts = ReportWindow.allCases.map(\.ring)
        var series = ReportWindow.allCases.map(\.series)
        /// When counts were last added.
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

    /// Removes counts that no window shows any more, and all but the latest removed rules.
    package mutating func tidy(serving ids: Set<String>, at now: Int64) {
        rules = rules.filter { !$0.value.counts.allSatisfy { $0.slots(at: now).isEmpty } }
        let removed = rules.filter { !ids.contains($0.key) }
            .sorted { ($0.value.touchedAt, $0.key) > ($1.value.touchedAt, $1.key) }
        for entry in removed.dropFirst(Self.removedMax) { rules[entry.key] = nil }
    }

    /// The rules with counts that are not among these, in the order of their ids.
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

/// The part of a report that is asked for.
package struct ReportScope: Sendable {
    /// `nil` for all rules.
    package var rule: String?
    package var windows: [ReportWindow]
    /// The gateway that is asked about; `nil` for all of the fleet.
    package var gateway: String?

    package init(
        rule: String? = nil,
        windows: [ReportWindow] = ReportWindow.allCases,
        gateway: String? = nil
    ) {
        (self.rule, self.windows, self.gateway) = (rule, windows, gateway)
    }
}

/// The span of a report. The raw value is its name: add, do not rename.
package enum ReportWindow: String, CaseIterable, Sendable {
    case fiveMinutes = "5m"
    case hour = "1h"
    case day = "1d"

    /// A ring of slots. Each slot has the sketches of its installs, so short slots would cost
    /// memory.
    var ring: SlotRing<RuleCounts> {
        switch self {
        case .fiveMinutes: SlotRing(slotSeconds: 60, slotsMax: 5)
        case .hour: SlotRing(slotSeconds: 600, slotsMax: 6)
        case .day: SlotRing(slotSeconds: 7200, slotsMax: 12)
        }
    }

    /// The ring for a chart of the same span.
    var series: SlotRing<SeriesPoint> {
        switch self {
        case .fiveMinutes: SlotRing(slotSeconds: 10, slotsMax: 30)
        case .hour: SlotRing(slotSeconds: 60, slotsMax: 60)
        case .day: SlotRing(slotSeconds: 900, slotsMax: 96)
        }
    }

    /// Its length, without the slot of the moment.
    var seconds: Int64 { ring.slotSeconds * ring.slotsMax }

    /// The span in the words of a table.
    package var text: String {
        switch self {
        case .fiveMinutes: "last 5 minutes"
        case .hour: "last hour"
        case .day: "last day"
        }
    }
}

/// The main figures of a slot, for a chart.
package struct SeriesPoint: Mergeable {
    private var classes: [UInt64] = []
    package private(set) var refused: UInt64 = 0
    /// How long requests took, also those without a verdict.
    private var times = Histogram()

    package init() {}

    package init(_ counts: RuleCounts) {
        classes = VerdictClass.allCases.map { counts[$0] }
        refused = counts.refused
        times = counts.times
    }

    /// One count for each ``VerdictClass``, in their order.
    package var counts: [UInt64] {
        classes.isEmpty ? VerdictClass.allCases.map { _ in 0 } : classes
    }

    /// The mean of the requests' seconds; 0 without requests.
    package var mean: Double {
        times.count == 0 ? 0 : Double(times.sum) / Double(times.count) * 1e-9
    }

    /// Shares of the requests, and the names of the most seconds that they took.
    package static let percentiles = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)]

    /// The most seconds that this share of the requests took; 0 without requests.
    package func seconds(of share: Double) -> Double { Double(times.quantile(share)) * 1e-9 }

    package mutating func merge(_ other: SeriesPoint) {
        classes = zip(counts, other.counts).map { $0 &+ $1 }
        refused &+= other.refused
        times.merge(other.times)
    }
}

extension SeriesPoint {
    func write(into out: inout ByteWriter) {
        for count in counts { out.short(count) }
        out.short(refused)
        times.write(into: &out)
    }

    init(_ reader: inout ByteReader) throws(ByteReader.Fault) {
        for _ in VerdictClass.allCases { classes.append(try reader.count()) }
        refused = try reader.count()
        times = try Histogram(&reader)
    }
}

/// A value that can be merged with another one.
package protocol Mergeable: Sendable {
    /// An empty value.
    init()
    mutating func merge(_ other: Self)
}

/// Sums by time slots, for all slots of a window. The caller gives the time, in seconds of a clock
/// that does not go back.
///
/// Empty slots take no memory.
package struct SlotRing<Content: Mergeable>: Sendable {
    /// The sum of a slot.
    package struct Slot: Sendable {
        /// The slot's beginning, divided by its length.
        package let number: Int64
        package fileprivate(set) var content: Content
    }

    package let slotSeconds: Int64
    /// The ended slots that still count. The current slot counts too.
    package let slotsMax: Int64
    /// The oldest first.
    private var slots: [Slot] = []

    package init(slotSeconds: Int64, slotsMax: Int64) {
        precondition(slotSeconds > 0 && slotsMax > 0, "SlotRing: slots have a length")
        self.slotSeconds = slotSeconds
        self.slotsMax = slotsMax
    }

    /// Adds to the slot of a moment. A moment before the newest slot counts as that slot's.
    package mutating func add(_ content: Content, at now: Int64) {
        let number = max(now / slotSeconds, slots.last?.number ?? .min)
        drop(before: number - slotsMax)
        if slots.last?.number != number { slots.append(Slot(number: number, content: Content())) }
        slots[slots.count - 1].content.merge(content)
    }

    private mutating func drop(before number: Int64) {
        let gone = slots.prefix { $0.number < number }.count
        if gone > 0 { slots.removeFirst(gone) }
    }

    /// The slots that count at a moment, the oldest first.
    package func slots(at now: Int64) -> ArraySlice<Slot> {
        let first = now / slotSeconds - slotsMax
        return slots.drop { $0.number < first }
    }

    package func sum(at now: Int64) -> Content {
        var sum = Content()
        for slot in slots(at: now) { sum.merge(slot.content) }
        return sum
    }

    /// The number of seconds that a sum covers, where counting began at `start`.
    package func coverage(at now: Int64, since start: Int64) -> Int64 {
        max(0, now - max(start, (now / slotSeconds - slotsMax) * slotSeconds))
    }
}
