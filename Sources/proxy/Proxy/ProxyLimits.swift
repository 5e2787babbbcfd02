package import HTTP2Wire
package import HTTPWire
package import Verification

/// The bounds of what one lane holds. Each value has a configuration key of the same name.
package struct ProxyLimits: Sendable {
    /// Bounds of request heads and bodies' framing.
    package var requestHead = HeadLimits()
    /// Bounds of HTTP/2 connections.
    package var http2 = HTTP2Limits()
    /// Bounds of what origins send as heads.
    package var responseHead = HeadLimits()
    /// Client connections on one lane; one more is closed at once.
    package var connectionsMax = 100_000
    /// Idle connections kept to one server of an origin.
    package var pooledMax = 256
    /// Interim (1xx) responses to one request. One more makes the response malformed.
    package var interimResponsesMax = 16
    /// Bytes of held content in memory, all requests of all lanes together; more is put in files.
    package var heldMemoryMax = 64 << 20
    /// Bytes of held content in files, all requests of all lanes together; more is refused.
    package var heldDiskMax = 1 << 30
    /// Bytes of held content of one address, in memory and in files; more is refused.
    package var addressHeldMax = 256 << 20
    /// The same of one key.
    package var keyHeldMax = 256 << 20
    /// Whether files of held content are in memory, and count as it.
    package var filesAreMemory = false
    /// Bytes that are read away after an early answer before the connection is closed.
    package var drainBytesMax = 256 << 10
    /// Bytes of content the gateway's own endpoints read.
    package var endpointBodyMax = 16 << 10
    /// Client connections of one address on all lanes; one more is closed at once.
    package var addressConnectionsMax: Int?
    /// Requests of one address.
    package var addressRequests: TokenRate?
    /// Calls of the gateway's own endpoints by one address.
    package var addressCalls: TokenRate?
    /// Verifications in vain that one address may cause.
    package var addressFailures: TokenRate?

    package init() {}
}
