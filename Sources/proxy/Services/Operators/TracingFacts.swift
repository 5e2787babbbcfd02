package import Telemetry

/// What became of the spans for a collector.
package struct TracingFacts: PartyFacts {
    let exported: UInt64
    let lost: [(why: String, count: UInt64)]

    package init(exported: UInt64 = 0, lost: [(why: String, count: UInt64)] = []) {
        (self.exported, self.lost) = (exported, lost)
    }

    package func write(into out: inout Exposition) {
        out.counter("spans_exported_total", exported, help: "Spans that the collector has taken.")
        out.family(
            "spans_dropped_total",
            type: "counter",
            help: "Spans that were lost, and why.",
            lost.map { ([("why", $0.why)], $0.count) }
        )
    }
}
