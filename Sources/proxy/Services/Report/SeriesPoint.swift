import Telemetry

/// The few numbers of a slot that a chart shows.
package struct SeriesPoint: Mergeable {
    private var classes: [UInt64] = []
    package private(set) var refused: UInt64 = 0
    private var timed: UInt64 = 0
    private var nanoseconds: UInt64 = 0

    package init() {}

    package init(_ counts: RuleCounts) {
        classes = VerdictClass.allCases.map { counts[$0] }
        refused = counts.refused
        timed = counts.times.count
        nanoseconds = counts.times.sum
    }

    /// One for each ``VerdictClass``, in their order.
    package var counts: [UInt64] {
        classes.isEmpty ? VerdictClass.allCases.map { _ in 0 } : classes
    }

    /// Seconds of a request; 0 where there was none.
    package var mean: Double { timed == 0 ? 0 : Double(nanoseconds) / Double(timed) * 1e-9 }

    package mutating func merge(_ other: SeriesPoint) {
        classes = zip(counts, other.counts).map { $0 &+ $1 }
        refused &+= other.refused
        timed &+= other.timed
        nanoseconds &+= other.nanoseconds
    }
}
