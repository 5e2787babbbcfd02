package import HTTPWire
package import Proxy

/// One origin: a named group of servers that rules refer to.
package struct UpstreamSettings: Hashable, Sendable {
    package let name: String
    /// At least one that is no backup, none twice.
    package let servers: [ServerSettings]
    /// How they are used.
    package let rules: OriginRules
    /// What is sent as `Host`; `nil` (`client`, the default) for what the client sent.
    package let host: String?
    /// Names, in lower case, of fields that the origin gets although they are deleted by default;
    /// default none.
    package let keptFields: [String]
    /// `proxy_protocol`: what servers get of the client before the first request. Default off.
    package let preface: OriginPreface
    /// `http2`: whether its servers are spoken to in HTTP/2: under TLS by ALPN, without TLS by
    /// prior knowledge (RFC 9113 §3.2, §3.3). Default off.
    package let http2: ListenSettings.HTTP2
    /// `tls`: `nil` for an origin that is spoken to in the clear.
    package let tls: OriginTLSSettings?
    /// `paths`: the steps that this origin may take on a path before it chooses a handler. Default:
    /// all that servers take.
    package let paths: PathInterpretation

    package var addresses: [ServerAddress] { servers.map(\.address) }
}

/// One server of an origin, as the configuration has it.
package struct ServerSettings: Hashable, Sendable {
    package let address: ServerAddress
    /// `weight`: its share of the requests. Default 1.
    package var weight = 1
    /// `backup`: it gets requests only while no other server is up. Default false.
    package var isBackup = false

    /// `max_connections`: the most concurrent connections to it, of all event loops, including idle
    /// ones. Default 0, for no limit. Others: nginx's `max_conns`, HAProxy's `maxconn`.
    package var connectionsMax = 0

    /// The form in which `check` prints it.
    var text: String {
        let weight = weight == 1 ? "" : " weight \(weight)"
        let most = connectionsMax == 0 ? "" : " max_connections \(connectionsMax)"
        return address.text + weight + most + (isBackup ? " backup" : "")
    }

    static let weights = 1...1000
    static let connections = 0...1_000_000
}
