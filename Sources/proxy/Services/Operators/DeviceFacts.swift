import Telemetry

/// How the changes of devices' bits stand that origins have asked for.
package struct DeviceFacts: Sendable {
    /// Changes that wait or are under way.
    package var pendingChanges = 0
    package var keptChanges: UInt64 = 0
    /// Changes that were given up.
    package var failedChanges: UInt64 = 0
    /// Changes that were not tried, since too many waited.
    package var droppedChanges: UInt64 = 0
    /// Device tokens that are remembered as used.
    package var usedTokens = 0

    package init() {}

    func write(into out: inout Exposition) {
        out.metric("device_updates_total", type: "counter", help: "Changes of device bits.")
        out.sample("device_updates_total", [("outcome", "kept")], keptChanges)
        out.sample("device_updates_total", [("outcome", "failed")], failedChanges)
        out.sample("device_updates_total", [("outcome", "dropped")], droppedChanges)
        out.metric("device_updates_pending", type: "gauge", help: "Changes that are not made yet.")
        out.sample("device_updates_pending", [], pendingChanges)
        out.metric("device_tokens_used", type: "gauge", help: "Device tokens not to be used again.")
        out.sample("device_tokens_used", [], usedTokens)
    }
}
