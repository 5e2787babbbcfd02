package import HTTPWire

/// One address on which clients are accepted.
package struct ListenSettings: Hashable, Sendable {
    /// What connections begin with.
    package enum Preface: Hashable, Sendable {
        /// The client's first byte.
        case none
        /// A header of the PROXY protocol, version 1 or 2, by a peer of `trusted_proxies`.
        case proxyHeader
    }

    /// Whether clients may speak HTTP/2: under TLS as ALPN says, without TLS by prior knowledge
    /// (RFC 9113 §3.2, §3.3).
    package enum HTTP2: String, CaseIterable, Hashable, Sendable {
        case off, on
    }

    /// An IP address and port (0: the system chooses), or a Unix socket.
    package let address: ServerAddress
    /// `nil` for plain HTTP.
    package var tls: TLS?
    /// `http2`: default on under TLS, where clients choose, and off without TLS.
    package var http2 = HTTP2.off
    /// `proxy_protocol: true` is a PROXY header. Default none.
    package var preface = Preface.none
    /// `decides`: its clients are other proxies, which ask for decisions. Default: its clients'
    /// requests go to origins.
    package var decides: DecisionForm?
}

/// How many lanes serve connections.
package enum LaneCount: Hashable, Sendable {
    /// One for each core that the process may use. The default.
    case perCore
    /// 1…256.
    case fixed(Int)
}
