package import HTTPWire

/// One origin: the servers behind a name that rules refer to.
package struct UpstreamSettings: Hashable, Sendable {
    /// The PROXY protocol towards an origin.
    package enum ProxyProtocol: String, CaseIterable, Sendable {
        case off
        case v2
    }

    package let name: String
    /// At least one that is no backup, none twice.
    package let servers: [ServerSettings]
    /// How requests are shared by them.
    package let balancing: BalancingSettings
    /// What is sent as `Host`; `nil` (`client`, the default) for what the client sent.
    package let host: String?
    /// Names, in lower case, of fields that the origin gets although they are deleted by default;
    /// default none.
    package let keptFields: [String]
    /// `proxy_protocol`: what servers are told of the client before the first request. Default off.
    package let proxyProtocol: ProxyProtocol
    /// Default `timeouts.connect`.
    package let connectTimeout: Duration
    /// Default `timeouts.first_byte`.
    package let firstByteTimeout: Duration
    /// `tls`: `nil` for an origin that is spoken to in the clear.
    package let tls: OriginTLSSettings?
    /// `paths`: what this origin may do to a path before it chooses what runs. Default: whatever
    /// servers do.
    package let paths: PathReading

    /// The addresses of its servers.
    package var addresses: [ServerAddress] { servers.map(\.address) }
}
