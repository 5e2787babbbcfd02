package import HTTPWire
package import Lanes
package import Rules

/// One server of an origin.
package struct OriginServerSettings: Sendable {
    /// As the configuration writes it; for logs.
    package let name: String
    package let address: SocketAddress

    package init(name: String, address: SocketAddress) {
        self.name = name
        self.address = address
    }
}

/// One origin: its servers, used in turn.
package struct OriginSettings: Sendable {
    package let name: String
    package var servers: [OriginServerSettings]
    /// What the origin gets as Host instead of what the client sent.
    package var host: [UInt8]?
    /// What it gets of the fields that are deleted by default.
    package var keptFields = KeptFields()
    /// In milliseconds; see ``Timeouts``.
    package var connectTimeout: UInt64
    package var firstByteTimeout: UInt64

    package init(name: String, servers: [OriginServerSettings], timeouts: Timeouts) {
        self.name = name
        self.servers = servers
        connectTimeout = timeouts.connect
        firstByteTimeout = timeouts.firstByte
    }
}

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
    /// Under which path the gateway's own endpoints are, without a slash at its end.
    package let endpointsPath: [UInt8]
    /// Whether every request leaves a line in the access log.
    package let logsAccess: Bool
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
        endpointsPath: String,
        logsAccess: Bool,
        spillFolder: String
    ) {
        self.rules = rules
        self.origins = origins
        self.timeouts = timeouts
        self.limits = limits
        self.trustedProxies = trustedProxies
        self.addressSource = addressSource
        self.writesForwarded = writesForwarded
        self.endpointsPath = Array(endpointsPath.utf8)
        self.logsAccess = logsAccess
        self.spillFolder = spillFolder
    }

    func isTrusted(_ address: IPAddress) -> Bool {
        trustedProxies.contains { $0.contains(address) }
    }
}
