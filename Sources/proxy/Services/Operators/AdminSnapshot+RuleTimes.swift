import Telemetry

extension AdminSnapshot {
    /// Writes how the requests of each rule ended, and how long they took. Rules without a request
    /// are omitted.
    func writeRuleTimes(into out: inout Exposition) {
        let served = rules.enumerated().filter { tally.requestTimes(rule: $0.offset).count > 0 }
        out.metric(
            "rule_responses_total",
            type: "counter",
            help: "Responses by rule and class of status."
        )
        for (number, rule) in served {
            for digit in 1...5 {
                let count = tally.responses(rule: number, class: digit)
                guard count > 0 else { continue }
                let labels = [("rule", rule.id), ("origin", rule.origin), ("code", "\(digit)xx")]
                out.sample("rule_responses_total", labels, count)
            }
        }
        let name = "rule_request_seconds"
        out.metric(name, type: "histogram", help: "Time of a request by rule.")
        for (number, rule) in served {
            out.histogram(
                name,
                tally.requestTimes(rule: number),
                unit: 1e-9,
                labels: [("rule", rule.id), ("origin", rule.origin)],
                shown: Histogram.coarseBuckets
            )
        }
    }

    /// Writes how long each origin took for the first bytes of its responses. Origins without a
    /// request are omitted.
    func writeOriginTimes(into out: inout Exposition) {
        let name = "origin_response_seconds"
        out.metric(
            name,
            type: "histogram",
            help: "Time from the request's last head byte to the response's first, by origin."
        )
        for origin in origins {
            let times = responseTimes(of: origin)
            guard times.count > 0 else { continue }
            out.histogram(
                name,
                times,
                unit: 1e-9,
                labels: [("origin", origin.name)],
                shown: Histogram.coarseBuckets
            )
        }
    }

    /// How long one origin took for the first bytes of its responses, over all rules that forward
    /// to it.
    func responseTimes(of origin: OriginFacts) -> Histogram {
        rules.enumerated().filter { $0.element.origin == origin.name }
            .reduce(into: Histogram()) { $0.merge(tally.firstBytes(rule: $1.offset)) }
    }
}
