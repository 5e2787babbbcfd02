/// How long the proxy waits, in milliseconds. Each value has a configuration key of the same name.
package struct Timeouts: Sendable {
    /// From the accept to the end of the TLS handshake and to the first byte of a request.
    package var handshake: UInt64 = 10_000
    /// From a request's first byte to the end of its head. Then 408.
    package var head: UInt64 = 10_000
    /// For the next byte of request content while the origin takes them. Then 408.
    package var bodyIdle: UInt64 = 30_000
    /// Bytes a second that request content must bring, measured over `bodyIdle`; 0 for no minimum.
    package var bodyMinimumRate: UInt64 = 64
    /// For a connect to an origin. Then the next server, at last 504.
    package var connect: UInt64 = 3_000
    /// From the end of a request to the head of its response. Then 504.
    package var firstByte: UInt64 = 60_000
    /// For a commit that a request waits for, or an enrolment. Then the store counts as failed.
    package var commit: UInt64 = 10_000
    /// For the next byte of a response, and for a client or origin to take what waits for it.
    package var responseIdle: UInt64 = 60_000
    /// Bytes a second that a client must take of what waits for it, measured over `responseIdle`;
    /// 0 for no minimum.
    package var responseMinimumRate: UInt64 = 64
    /// For the next request on a client's connection. Then it is closed.
    package var idle: UInt64 = 60_000
    /// How long an origin connection waits in the pool: less than origins keep theirs.
    package var poolIdle: UInt64 = 50_000
    /// For the next byte of a tunnel, in either direction.
    package var tunnelIdle: UInt64 = 3_600_000
    /// After an answer that ends a connection: how long what the client still sends is read away,
    /// so that it sees the answer and no reset.
    package var linger: UInt64 = 2_000
    /// While the gateway ends: for the next request on a client's connection, and for a client that
    /// has ended its direction to take its response. Then it is closed.
    package var drainIdle: UInt64 = 1_000

    package init() {}
}
