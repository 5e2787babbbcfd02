package import Encodings
import Services
package import Telemetry

/// The state of the calls to Apple's services.
package struct AppleFacts: Sendable {
    /// The number of calls that ended in one way.
    package struct End: Sendable {
        package var service: String
        package var environment: String
        /// The status of the answer, or why there is none.
        package var status: String
        package var count: UInt64

        package init(service: String, environment: String, status: String, count: UInt64) {
            self.service = service
            self.environment = environment
            self.status = status
            self.count = count
        }
    }

    package var ends: [End] = []
    /// The hosts that were called, by service and environment.
    package var hosts: [CallLineFacts] = []
    /// The words for a breaker.
    package var breakers: [String] = []
    /// Time from the hand-in to the reply, by service; nanoseconds.
    package var durations: [(service: String, Histogram)] = []
    package var tokens: UInt64 = 0

    package init() {}
}

extension AppleFacts: PartyFacts {
    /// Writes the metrics of Apple's services.
    package func write(into out: inout Exposition) {
        out.metric("apple_calls_total", type: "counter", help: "Calls to Apple by how they ended.")
        for end in ends {
            let labels = [
                ("service", end.service), ("environment", end.environment), ("status", end.status),
            ]
            out.sample("apple_calls_total", labels: labels, end.count)
        }
        hosts.write(into: &out, of: "apple", each: "host", breakers)
        out.counter("apple_tokens_total", tokens, help: "Tokens for Apple that were signed.")
        out.metric("apple_call_seconds", type: "histogram", help: "From the hand-in to the reply.")
        for (service, histogram) in durations {
            let labels = [("service", service)]
            out.histogram("apple_call_seconds", histogram, unit: 1e-9, labels: labels)
        }
    }

    /// Writes the calls to Apple for `/status`: the hosts, and how calls ended.
    package func write(into out: inout JSONWriter) {
        out.object("apple") { out in
            out.objects("hosts", of: hosts) { out, host in host.write(into: &out) }
            out.objects("calls", of: ends) { out, end in
                out.member("service", end.service)
                out.member("environment", end.environment)
                out.member("status", end.status)
                out.member("count", end.count)
            }
        }
    }
}
