package import Telemetry

/// What operators are told of the renewal of receipts.
package struct ReceiptFacts: Sendable {
    /// Tries by how they ended.
    package private(set) var ends: [String: UInt64] = [:]
    /// The risk metrics of renewed receipts.
    package private(set) var metrics = Histogram()
    /// Receipts that were due when the store was last looked at.
    package var due = 0
    /// Those of them that have ended.
    package var overdue = 0

    package init() {}

    /// A try ended.
    package mutating func add(_ end: String, metric: UInt32?) {
        ends[end, default: 0] &+= 1
        if let metric { metrics.add(UInt64(metric)) }
    }

    /// All counts, in a lasting order.
    package var sortedEnds: [(end: String, count: UInt64)] {
        ends.map { (end: $0.key, count: $0.value) }.sorted { $0.end < $1.end }
    }
}
