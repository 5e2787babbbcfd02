package import HTTPWire
package import TLSSession

/// Who sends a request on an ``OriginStream`` and gets its response: an exchange of the proxy, or a
/// call of the gateway's own.
package protocol OriginStreamOwner: AnyObject {
    /// A server took the connection that was dialled. The stream takes a request.
    func originConnected(_ stream: OriginStream)
    /// No server took a connection. Nothing was sent.
    func originUnreachable(_ why: Unreached)
    /// There may be something to read; see ``OriginStream/receive(for:)``.
    func originReadable(_ stream: OriginStream)
    /// What waited to be sent has been sent.
    func originDrained(_ stream: OriginStream)
    /// Bytes could not be sent. The server may have answered before it closed.
    func originWriteFailed(_ stream: OriginStream)
    /// The deadline that was set has passed.
    func originTimedOut(_ stream: OriginStream)

    // What ``OriginStream/receive(for:)`` found.

    /// An interim response (1xx, not 101). `false` ends the reading.
    ///
    /// - bytes: those that `head` was read from.
    func originInterim(_ head: borrowing ResponseHead, _ bytes: Span<UInt8>) -> Bool
    /// The head of the response. `false` ends the reading.
    ///
    /// - bytes: those that `head` was read from.
    /// - rest: what came after the head: content, or, after a 101, the other protocol's bytes.
    func originResponded(
        _ head: borrowing ResponseHead,
        _ bytes: Span<UInt8>,
        rest: Span<UInt8>
    ) -> Bool
    /// A piece of content, valid for the call.
    func originContent(_ piece: Span<UInt8>)
}

/// What happens on the way to a server.
package enum OriginEvent {
    case connectBegan
    case connectFailed
    /// The handshake failed; a connect that failed follows.
    case handshakeFailed(TLSFailure)
    case connectionReused
    /// A request waits for a place at a server.
    case queued
    /// It waits no more, after this number of nanoseconds.
    case dequeued(UInt64)
    /// A request found the queue full, or had to leave it for another one.
    case queueFull
    /// A request waited too long.
    case queueTimeout
}

/// What ``OriginStream/receive(for:)`` found.
package enum OriginRead {
    /// Something was read; the response goes on.
    case some
    /// Nothing now; ``OriginStreamOwner/originReadable(_:)`` follows.
    case none
    /// The response is complete.
    case complete
    /// The owner has ended the reading.
    case stopped
    /// The connection ended or failed before the response was complete.
    case broke
    /// The response is malformed.
    case malformed(Malformed.Reason)
    /// There were more interim responses than may be.
    case tooManyInterim
}

/// What an origin's server gets at the beginning of a connection, before TLS: `proxy_protocol`.
package enum OriginPreface: String, CaseIterable, Sendable {
    /// Nothing.
    case none = "off"
    /// A PROXY header of version 2, which names the client.
    ///
    /// The header holds for the whole connection. So a connection carries requests of one client
    /// alone: it is used again only for requests whose header would be the same, the client's port
    /// included, by which an origin's log tells clients behind one address apart.
    case proxyHeader = "v2"

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
