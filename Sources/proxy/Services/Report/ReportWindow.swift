/// How far back a report looks. The raw value is its name: add, do not rename.
package enum ReportWindow: String, CaseIterable, Sendable {
    case fiveMinutes = "5m"
    case hour = "1h"
    case day = "1d"

    /// In slots, of which each has the sketches of its installs: fine ones would cost memory.
    var ring: SlotRing<RuleCounts> {
        switch self {
        case .fiveMinutes: SlotRing(slotSeconds: 60, slotsMax: 5)
        case .hour: SlotRing(slotSeconds: 600, slotsMax: 6)
        case .day: SlotRing(slotSeconds: 7200, slotsMax: 12)
        }
    }

    /// What a chart of the same span shows.
    var series: SlotRing<SeriesPoint> {
        switch self {
        case .fiveMinutes: SlotRing(slotSeconds: 10, slotsMax: 30)
        case .hour: SlotRing(slotSeconds: 60, slotsMax: 60)
        case .day: SlotRing(slotSeconds: 900, slotsMax: 96)
        }
    }

    /// In the words of a table.
    package var text: String {
        switch self {
        case .fiveMinutes: "last 5 minutes"
        case .hour: "last hour"
        case .day: "last day"
        }
    }
}
