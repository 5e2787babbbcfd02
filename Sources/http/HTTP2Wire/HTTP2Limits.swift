package import HTTPWire

/// The bounds of HTTP/2 connections. Each value has a configuration key of the same name.
package struct HTTP2Limits: Sendable, Equatable {
    /// The bounds of a request's head; its bytes are counted in HTTP/1.1's form.
    package var head = HeadLimits()
    /// Streams that are open at once; a further one is refused with REFUSED_STREAM.
    package var streamsMax = 128
    /// Bytes of content that a stream may send before some were read.
    package var streamWindow = 128 << 10
    /// The same for all streams of a connection.
    package var connectionWindow = 512 << 10
    /// Bytes of responses that wait on a connection for their streams' windows. From a half of it,
    /// each stream adds little; beyond it, the streams with the most are reset.
    package var unsentBytesMax = 4 << 20
    /// The same for all connections of all lanes together. Each lane has an equal share; beyond it,
    /// its connection with the most loses the streams that wait.
    package var unsentTotalMax = 256 << 20
    /// CONTINUATION frames of one head.
    package var continuationsMax = 8
    /// Streams a minute that the client resets; `nil` for no bound, as below.
    package var resets: Int? = 600
    /// Streams a minute that end because of an error of the client: refused and malformed ones,
    /// and those whose head is too long.
    package var provokedResets: Int? = 300
    /// PING frames a minute.
    package var pings: Int? = 120
    /// SETTINGS frames a minute.
    package var settings: Int? = 30
    /// Frames a minute that carry nothing.
    package var emptyFrames: Int? = 120
    /// Frames a minute that nobody needs: PRIORITY and those of unknown types.
    package var otherFrames: Int? = 600

    package init() {}
}
