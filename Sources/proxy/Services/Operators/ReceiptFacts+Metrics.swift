import Telemetry

extension ReceiptFacts {
    /// Writes the metrics of the renewal of receipts.
    func write(into out: inout Exposition) {
        out.metric(
            "receipt_renewals_total",
            type: "counter",
            help: "Tries to renew a receipt by how they ended."
        )
        for (end, count) in sortedEnds {
            out.sample("receipt_renewals_total", [("outcome", end)], count)
        }
        out.metric("receipts_due", type: "gauge", help: "Receipts that may be renewed now.")
        out.sample("receipts_due", [], due)
        out.metric("receipts_overdue", type: "gauge", help: "Those that have ended meanwhile.")
        out.sample("receipts_overdue", [], overdue)
        out.metric("receipt_risk_metric", type: "histogram", help: "Metrics of renewed receipts.")
        out.histogram("receipt_risk_metric", metrics, unit: 1)
    }
}
