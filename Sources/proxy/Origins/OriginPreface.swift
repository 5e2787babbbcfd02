package import HTTPWire

/// What an origin's server is told at the beginning of a connection, before TLS.
package enum OriginPreface: Hashable, Sendable {
    /// Nothing.
    case none
    /// A PROXY header of version 2, which names the client.
    ///
    /// The header holds for the whole connection. So a connection carries requests of one client
    /// alone: it is used again only for requests whose header would be the same, the client's port
    /// included, by which an origin's log tells clients behind one address apart.
    case proxyHeader

    /// Both ends of the client's connection.
    package typealias Ends = (source: ProxyHeader.End, destination: ProxyHeader.End)

    /// The bytes for a client; for connections of the gateway's own where there is none.
    func bytes(_ ends: Ends?) -> [UInt8] {
        switch self {
        case .none: return []
        case .proxyHeader:
            var bytes: [UInt8] = []
            ProxyHeader.append(ends, to: &bytes)
            return bytes
        }
    }
}
