package import HTTP2Wire
package import HTTPWire

/// The bounds of client connections: times in milliseconds, sizes in bytes.
package final class ClientLimits: Sendable {
    /// Bounds of request heads, and of the framing of content.
    package let head: HeadLimits
    /// Bounds of HTTP/2 connections.
    package let http2: HTTP2Limits
    /// From the accept to the end of the TLS handshake and to the first byte of a request.
    package let handshakeTime: UInt64
    /// From a request's first byte to the end of its head. Then 408.
    package let headTime: UInt64
    /// For the next request on a connection. Then it is closed.
    package let idleTime: UInt64
    /// The same, while the gateway ends.
    package let drainIdleTime: UInt64
    /// For the next bytes of content that is awaited.
    package let contentTime: UInt64
    /// Bytes a second that content must bring, measured over `contentTime`.
    package let contentRate: UInt64
    /// For a client to take some of what waits for it.
    package let outputTime: UInt64
    /// Bytes a second that a client must take, measured over `outputTime`.
    package let outputRate: UInt64
    /// For what still comes behind the last response, which is read away.
    package let lingerTime: UInt64
    /// How much of that.
    package let lingerBytesMax: Int
    /// Whether the connections of HTTP/1.0 clients that ask for it are kept. Not where requests are
    /// forwarded: some of those clients keep a connection open that a proxy in between has taken
    /// for closed (RFC 9112 §9.3).
    package let keepsOldClients: Bool

    package init(
        head: HeadLimits,
        http2: HTTP2Limits,
        handshakeTime: UInt64,
        headTime: UInt64,
        idleTime: UInt64,
        drainIdleTime: UInt64,
        contentTime: UInt64,
        contentRate: UInt64,
        outputTime: UInt64,
        outputRate: UInt64,
        lingerTime: UInt64,
        lingerBytesMax: Int,
        keepsOldClients: Bool
    ) {
        self.head = head
        self.http2 = http2
        self.handshakeTime = handshakeTime
        self.headTime = headTime
        self.idleTime = idleTime
        self.drainIdleTime = drainIdleTime
        self.contentTime = contentTime
        self.contentRate = contentRate
        self.outputTime = outputTime
        self.outputRate = outputRate
        self.lingerTime = lingerTime
        self.lingerBytesMax = lingerBytesMax
        self.keepsOldClients = keepsOldClients
    }

    /// Whether it is too little that a client has taken in ``outputTime``.
    ///
    /// - taken: bytes.
    func isTooLittle(taken: UInt64) -> Bool {
        taken == 0 || taken < outputRate * outputTime / 1000
    }

    /// Whether it is too little content that a client has brought in ``contentTime``.
    ///
    /// - brought: bytes.
    func isTooLittle(brought: UInt64) -> Bool {
        brought == 0 || brought < contentRate * contentTime / 1000
    }
}
