import Services
package import Telemetry

/// The state of the changes of devices' bits that origins have asked for.
package struct DeviceFacts: PartyFacts {
    /// Changes that wait or are under way.
    package var pendingChanges = 0
    package var keptChanges: UInt64 = 0
    /// Changes that were given up.
    package var failedChanges: UInt64 = 0
    /// Changes that were not tried, since too many waited.
    package var droppedChanges: UInt64 = 0
    package var usedTokens = 0

    package init() {}

    package func write(into out: inout Exposition) {
        out.metric("device_updates_total", type: "counter", help: "Changes of device bits.")
        out.sample("device_updates_total", labels: [("outcome", "kept")], keptChanges)
        out.sample("device_updates_total", labels: [("outcome", "failed")], failedChanges)
        out.sample("device_updates_total", labels: [("outcome", "dropped")], droppedChanges)
        out.gauge("device_updates_pending", pendingChanges, help: "Changes that are not made yet.")
        out.gauge("device_tokens_used", usedTokens, help: "Device tokens not to be used again.")
    }
}
