import JSONText
import Telemetry

extension AppleFacts {
    /// Writes the metrics of Apple's services.
    func write(into out: inout Exposition) {
        out.metric("apple_calls_total", type: "counter", help: "Calls to Apple by how they ended.")
        for end in ends {
            let labels = [
                ("service", end.service), ("environment", end.environment), ("status", end.status),
            ]
            out.sample("apple_calls_total", labels, end.count)
        }
        out.metric("apple_calls_waiting", type: "gauge", help: "Calls that wait for their turn.")
        for host in hosts { out.sample("apple_calls_waiting", host.labels, host.waiting) }
        out.metric("apple_calls_under_way", type: "gauge", help: "Calls without their answer yet.")
        for host in hosts { out.sample("apple_calls_under_way", host.labels, host.underWay) }
        out.metric(
            "apple_breaker",
            type: "gauge",
            help: "1 for the state that a host's breaker is in; open: the host is left alone."
        )
        for host in hosts {
            for state in breakers {
                let labels = host.labels + [("state", state)]
                out.sample("apple_breaker", labels, host.breaker == state ? 1 : 0)
            }
        }
        out.metric(
            "apple_tokens_total",
            type: "counter",
            help: "Tokens for Apple that were signed."
        )
        out.sample("apple_tokens_total", [], tokens)
        out.metric("apple_call_seconds", type: "histogram", help: "From the hand-in to the reply.")
        for (service, histogram) in durations {
            let labels = [("service", service)]
            out.histogram("apple_call_seconds", histogram, unit: 1e-9, labels: labels)
        }
    }
}

extension AppleFacts {
    /// Writes the same for `/status`: the hosts that were called, and how calls ended.
    func write(into out: inout JSONWriter) {
        out.object("apple") { out in
            out.array("hosts") { out in
                for host in hosts {
                    out.object { out in
                        for (name, value) in host.labels { out.member(name, value) }
                        out.member("breaker", host.breaker)
                        out.member("calls_waiting", host.waiting)
                        out.member("calls_under_way", host.underWay)
                    }
                }
            }
            out.array("calls") { out in
                for end in ends {
                    out.object { out in
                        out.member("service", end.service)
                        out.member("environment", end.environment)
                        out.member("status", end.status)
                        out.member("count", end.count)
                    }
                }
            }
        }
    }
}

extension AppleFacts.Host {
    fileprivate var labels: [(String, String)] {
        [("service", service), ("environment", environment)]
    }
}
