import Telemetry

/// The few numbers of a slot that a chart shows.
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

    /// One for each ``VerdictClass``, in their order.
    package var counts: [UInt64] {
        classes.isEmpty ? VerdictClass.allCases.map { _ in 0 } : classes
    }

    /// Seconds of a request; 0 where there was none.
    package var mean: Double {
        times.count == 0 ? 0 : Double(times.sum) / Double(times.count) * 1e-9
    }

    /// Shares of the requests, and the names of the seconds that they took at most.
    package static let percentiles = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)]

    /// Seconds that a share of the requests took at most; 0 where there was none.
    package func seconds(of share: Double) -> Double { Double(times.quantile(share)) * 1e-9 }

    package mutating func merge(_ other: SeriesPoint) {
        classes = zip(counts, other.counts).map { $0 &+ $1 }
        refused &+= other.refused
        times.merge(other.times)
    }
}
