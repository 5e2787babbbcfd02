package import HTTPWire
package import TLSSession

/// The owner of a request on an ``OriginStream``, which gets its response: an exchange of the
/// proxy, or a call of the gateway's own.
package protocol OriginStreamOwner: AnyObject {
    /// A server took the connection. The stream accepts a request.
    func originConnected(_ stream: OriginStream)
    /// No server took a connection. Nothing was sent.
    func originUnreachable(_ why: Unreached)
    /// There may be something to read; see ``OriginStream/receive(for:)``.
    func originReadable(_ stream: OriginStream)
    /// All bytes that waited were sent.
    func originDrained(_ stream: OriginStream)
    /// Bytes could not be sent. The server may have answered before it closed.
    func originWriteFailed(_ stream: OriginStream)
    /// The deadline that was set has passed.
    func originTimedOut(_ stream: OriginStream)

    // The events of ``OriginStream/receive(for:)``.

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

/// An event on the way to a server.
package enum OriginEvent {
    case connectBegan
    case connectFailed
    /// The handshake failed; the event of a failed connect follows.
    case handshakeFailed(TLSFailure)
    case connectionReused
    /// A request waits for a place at a server.
    case queued
    /// The request no longer waits, after this number of nanoseconds.
    case dequeued(UInt64)
    /// A request found the queue full, or had to leave it for another one.
    case queueFull
    /// A request waited too long.
    case queueTimeout
}

/// The result of ``OriginStream/receive(for:)``.
package enum OriginRead {
    /// Some bytes were read; the response continues.
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
    /// There were too many interim responses.
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

    /// The bytes for a client. Without `ends`, the bytes for connections of the gateway's own.
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
