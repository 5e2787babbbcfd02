// HTTP/2 without sockets, by nghttp2: the server's end of a connection for clients, and the
// client's end for origins.
//
//   HTTP2End            what both ends of a connection have: nghttp2's session, bytes, content
//   HTTP2StreamChannel  what both ends keep for a stream
//   HTTP2Session        a client's connection: bytes in, news of streams out; responses in, bytes
//                       out
//   HTTP2Channel        a stream of it: the request's head and content, the response's content
//   RequestHeadBuilder  writes a request's fields as an HTTP/1.1 head, which HTTPWire reads
//   HeadMemory          lends the memory for that to one connection after the other
//   HTTP2ClientSession  a connection to a server: requests in, bytes out; bytes in, news out
//   HTTP2ClientChannel  a stream of it
//   ResponseHeadBuilder writes a response's fields as an HTTP/1.1 head, which HTTPWire reads
//   HTTP2FrameWalk      finds where frames begin
//   HTTP2Ledger         counts what a client does that costs it less than the gateway
//   HTTP2ServerLedger   the same of a server
//   HTTP2Limits         the bounds of all that
//
// The driver feeds bytes with `receive(_:now:)`, takes channels with news by `nextNews()`, and
// takes bytes for the peer with `send(into:atMost:now:)`.
//
// nghttp2 calls back while it reads or writes. A callback notes what has happened, in this module's
// own values, and makes no other call. So nothing that a callback leads to can call the session
// while nghttp2 is at work in it, which nghttp2 forbids.
//
// What is refused and by whom. nghttp2 refuses what RFC 9113 §8 calls malformed: pseudo-fields that
// are missing, repeated, unknown or late, upper-case names, fields of one connection, `te` other
// than `trailers`, a byte that no name or value has, content whose length is not its
// Content-Length. The stream then ends with PROTOCOL_ERROR. All else is refused by the one parser
// of HTTPWire, with a problem document. The builder checks once more what could end a line.

/// Whether a client's first bytes are those of HTTP/2 (RFC 9113 §3.4). No HTTP/1 request begins so.
package enum HTTP2Preface {
    case complete
    /// So far they are.
    case partial
    case other

    /// Bytes of the whole preface: the line, and `SM` with a blank line.
    static let count = 24
    private static let line = Array("PRI * HTTP/2.0\r\n\r\n".utf8)

    package init(_ bytes: Span<UInt8>) {
        let count = min(bytes.count, Self.line.count)
        for index in 0..<count where bytes[index] != Self.line[index] {
            self = .other
            return
        }
        self = count == Self.line.count ? .complete : .partial
    }
}

/// The bounds of HTTP/2 connections. Each value has a configuration key of the same name.
package struct HTTP2Limits: Hashable, Sendable {
    /// The bounds of a request's head; its bytes are counted in HTTP/1.1's form.
    package var head = HeadLimits()
    /// Streams that are open at once; a further one is refused with REFUSED_STREAM.
    package var streamsMax = 128
    /// Bytes of content that a stream may send before some were read.
    package var streamWindow = 128 << 10
    /// Bytes of content that all streams of a connection may send before some were read.
    package var connectionWindow = 512 << 10
    /// Bytes of responses that wait on a connection for their streams' windows. From half of it on,
    /// each stream adds little. Above it, the streams with the most bytes are reset.
    package var unsentBytesMax = 4 << 20
    /// Bytes of responses that wait on all connections of all event loops. Each event loop has an
    /// equal share. Above it, its connection with the most bytes loses the streams that wait.
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
    /// Frames a minute that are not needed: PRIORITY and those of unknown types.
    package var otherFrames: Int? = 600

    package init() {}
}

/// The limit that a connection's peer has exceeded. The gateway ends it with ENHANCE_YOUR_CALM.
/// The raw value is the log's word: add, do not rename.
package enum HTTP2Excess: String, CaseIterable, Error, Sendable {
    /// A head in too many CONTINUATION frames (CVE-2024-27316 and others).
    case continuations = "http2-continuations"
    /// The bytes of a head, compressed or not, or those of several heads, are far more than is
    /// allowed.
    case headerList = "http2-header-list"
    /// Rapid reset (CVE-2023-44487).
    case resets = "http2-resets"
    /// Streams that ended by the client's errors; MadeYouReset (CVE-2025-8671).
    case provokedResets = "http2-provoked-resets"
    /// CVE-2019-9512.
    case pings = "http2-pings"
    /// CVE-2019-9515.
    case settings = "http2-settings"
    /// CVE-2019-9518.
    case emptyFrames = "http2-empty-frames"
    /// Windows that open in tiny steps (CVE-2019-9511).
    case windowUpdates = "http2-window-updates"
    /// CVE-2019-9513.
    case otherFrames = "http2-other-frames"
}
