package import HTTPWire

/// The bounds of the operators' server.
package struct AdminLimits: Sendable {
    /// Heads are those of probes, scrapers and browsers: 8 KiB, targets of 1 KiB, 64 fields.
    package var requestHead: HeadLimits

    /// Connections that are open at a time; more are closed at once. Default 64.
    package var connectionsMax = 64

    /// How long a connection may wait for its next request. Default 30 s; then it is closed.
    package var idleTimeoutMillis: UInt64 = 30_000

    /// From a head's first octet to its last. Default 5 s; then 408.
    package var headTimeoutMillis: UInt64 = 5_000

    /// How long the source may gather. Default 2 s, below the 10 s after which Prometheus gives up
    /// by default; then 503.
    package var gatherTimeoutMillis: UInt64 = 2_000

    /// How long a reader may take no octet at all. Default 10 s; then the connection is closed.
    package var sendTimeoutMillis: UInt64 = 10_000

    /// How long and how many octets are read away after the last answer. Default 2 s and 64 KiB.
    package var lingerTimeoutMillis: UInt64 = 2_000
    package var lingerBytesMax = 64 << 10

    /// Octets of an answer that are handed to the connection at a time. Default 64 KiB.
    package var pieceBytesMax = 64 << 10

    package init() {
        requestHead = HeadLimits()
        requestHead.headBytesMax = 8 << 10
        requestHead.targetBytesMax = 1 << 10
        requestHead.fieldsMax = 64
    }
}
