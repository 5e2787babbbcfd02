import ClientStreams
package import HTTPWire
package import Origins
package import Rules

/// Everything that a lane is told and never changes: a reload makes a new value, and requests under
/// way keep theirs.
package final class ProxySettings: Sendable {
    package let rules: RuleSet
    package let origins: [OriginSettings]
    package let timeouts: Timeouts
    package let limits: ProxyLimits
    /// Whose Forwarded and X-Forwarded fields are believed.
    package let trustedProxies: [IPNetwork]
    package let addressSource: ClientAddress.Source
    /// Whether origins get RFC 7239's Forwarded beside X-Forwarded-For, -Proto and -Host.
    package let writesForwarded: Bool
    let traces: TraceRule
    /// The same bounds as client connections and origins' streams take them.
    let clientLimits: ClientLimits
    let responseLimits: ResponseLimits
    /// Whether requests leave lines in the access log.
    package let logsAccess: Bool
    /// How, and which requests.
    let logRule: AccessLogRule
    /// Who asks Apple about devices; `nil` where no rule does.
    let devices: (any DeviceChecking)?
    /// Where held content goes that is too large for memory.
    package let spillFolder: String

    package init(
        rules: RuleSet,
        origins: [OriginSettings],
        timeouts: Timeouts,
        limits: ProxyLimits,
        trustedProxies: [IPNetwork],
        addressSource: ClientAddress.Source,
        writesForwarded: Bool,
        traces: TraceRule = .carry,
        keepsOldClients: Bool = false,
        logsAccess: Bool,
        logRule: AccessLogRule = AccessLogRule(),
        spillFolder: String,
        devices: (any DeviceChecking)? = nil
    ) {
        self.rules = rules
        self.origins = origins
        self.timeouts = timeouts
        self.limits = limits
        self.trustedProxies = trustedProxies
        self.addressSource = addressSource
        self.writesForwarded = writesForwarded
        self.traces = traces
        self.logsAccess = logsAccess
        self.logRule = logRule
        self.spillFolder = spillFolder
        self.devices = devices
        clientLimits = ClientLimits(timeouts, limits, keepsOldClients: keepsOldClients)
        responseLimits = ResponseLimits(
            head: limits.responseHead,
            interimMax: limits.interimResponsesMax
        )
    }

    func isTrusted(_ address: IPAddress) -> Bool {
        trustedProxies.contains { $0.contains(address) }
    }
}

extension ClientLimits {
    convenience init(_ timeouts: Timeouts, _ limits: ProxyLimits, keepsOldClients: Bool) {
        self.init(
            head: limits.requestHead,
            http2: limits.http2,
            handshakeTime: timeouts.handshake,
            headTime: timeouts.head,
            idleTime: timeouts.idle,
            drainIdleTime: timeouts.drainIdle,
            contentTime: timeouts.bodyIdle,
            contentRate: timeouts.bodyMinimumRate,
            outputTime: timeouts.responseIdle,
            outputRate: timeouts.responseMinimumRate,
            lingerTime: timeouts.linger,
            lingerBytesMax: limits.drainBytesMax,
            keepsOldClients: keepsOldClients
        )
    }
}
