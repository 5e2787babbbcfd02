import ConfigurationReading

extension GatewayConfiguration {
    /// The first key that differs and is taken at the start only; `nil` when none does.
    func firstFixedDifference(from next: GatewayConfiguration) -> String? {
        // What a listener shows is read anew.
        if listeners.map(\.withoutTLS) != next.listeners.map(\.withoutTLS) { return "listen" }
        if admin != next.admin || adminCalls != next.adminCalls { return "admin" }
        if adminHosts != next.adminHosts { return "admin" }
        if (operatorToken == nil) != (next.operatorToken == nil) { return "admin" }
        if lanes != next.lanes { return "lanes" }
        if store != next.store { return "store" }
        if challenges != next.challenges { return "challenges" }
        if sessions != next.sessions { return "sessions" }
        if limits.addresses != next.limits.addresses { return "limits.addresses" }
        if process != next.process { return "process" }
        return nil
    }

    /// Whether a new process can take a change of this key over from one that runs.
    func isTakenByUpgrade(_ key: String, _ next: GatewayConfiguration) -> Bool {
        switch key {
        case "store", "process": return false
        case "lanes":
            // Each lane has sockets, from which none would accept.
            return GatewayServer.count(next.lanes) >= GatewayServer.count(lanes)
        default: return true
        }
    }
}
