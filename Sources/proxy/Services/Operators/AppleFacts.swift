import Encodings
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

/// The state of the changes of devices' bits that origins have asked for.
package struct DeviceFacts: Sendable {
    /// Changes that wait or are under way.
    package var pendingChanges = 0
    package var keptChanges: UInt64 = 0
    /// Changes that were given up.
    package var failedChanges: UInt64 = 0
    /// Changes that were not tried, since too many waited.
    package var droppedChanges: UInt64 = 0
    package var usedTokens = 0

    package init() {}

    func write(into out: inout Exposition) {
        out.metric("device_updates_total", type: "counter", help: "Changes of device bits.")
        out.sample("device_updates_total", [("outcome", "kept")], keptChanges)
        out.sample("device_updates_total", [("outcome", "failed")], failedChanges)
        out.sample("device_updates_total", [("outcome", "dropped")], droppedChanges)
        out.gauge("device_updates_pending", pendingChanges, "Changes that are not made yet.")
        out.gauge("device_tokens_used", usedTokens, "Device tokens not to be used again.")
    }
}

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
        hosts.write(into: &out, of: "apple", each: "host", breakers)
        out.counter("apple_tokens_total", tokens, "Tokens for Apple that were signed.")
        out.metric("apple_call_seconds", type: "histogram", help: "From the hand-in to the reply.")
        for (service, histogram) in durations {
            let labels = [("service", service)]
            out.histogram("apple_call_seconds", histogram, unit: 1e-9, labels: labels)
        }
    }
}

extension AppleFacts {
    /// Writes the calls to Apple for `/status`: the hosts, and how calls ended.
    func write(into out: inout JSONWriter) {
        out.object("apple") { out in
            out.objects("hosts", hosts) { out, host in host.write(into: &out) }
            out.objects("calls", ends) { out, end in
                out.member("service", end.service)
                out.member("environment", end.environment)
                out.member("status", end.status)
                out.member("count", end.count)
            }
        }
    }
}
