import Services
package import Telemetry

/// The state of the renewal of receipts, for operators.
package struct ReceiptFacts: PartyFacts {
    /// Tries by their result.
    package private(set) var ends: [String: UInt64] = [:]
    /// The risk metrics of renewed receipts.
    package private(set) var metrics = Histogram()
    /// Receipts that were due at the last query of the store.
    package var due = 0
    /// The ones of them that have expired.
    package var overdue = 0

    package init() {}

    package mutating func add(_ end: String, metric: UInt32?) {
        ends[end, default: 0] &+= 1
        if let metric { metrics.add(UInt64(metric)) }
    }

    /// All counts, in a stable order.
    package var sortedEnds: [(end: String, count: UInt64)] {
        ends.map { (end: $0.key, count: $0.value) }.sorted { $0.end < $1.end }
    }
}

extension ReceiptFacts {
    /// Writes the metrics of the renewal of receipts.
    package func write(into out: inout Exposition) {
        out.family(
            "receipt_renewals_total",
            type: "counter",
            help: "Tries to renew a receipt by how they ended.",
            sortedEnds.map { ([("outcome", $0.end)], $0.count) }
        )
        out.gauge("receipts_due", due, help: "Receipts that may be renewed now.")
        out.gauge("receipts_overdue", overdue, help: "Those that have ended meanwhile.")
        out.metric("receipt_risk_metric", type: "histogram", help: "Metrics of renewed receipts.")
        out.histogram("receipt_risk_metric", metrics, unit: 1)
    }
}
