package import Rules

/// `limits.http2`: the bounds of HTTP/2 connections.
package struct HTTP2Settings: Hashable, Sendable {
    /// `streams`: requests of a connection at once. Default 128, 1…10000; a further one is refused
    /// with REFUSED_STREAM, after which a client may repeat it.
    package var streams = 128
    /// `stream_window`: bytes of content that a request may send before some of it has gone on.
    /// Default 128KiB, 64KiB…16MiB.
    package var streamWindow = ByteCount.kibibytes(128)
    /// `connection_window`: the same for all requests of a connection together. Default 512KiB,
    /// 64KiB…64MiB.
    package var connectionWindow = ByteCount.kibibytes(512)
    /// `unsent`: bytes of responses that wait on a connection until their client takes them.
    /// Default 4MiB, 256KiB…1GiB; beyond it the requests with the most are reset.
    package var unsent = ByteCount.mebibytes(4)
    /// `unsent_total`: the same for all connections together. Default 256MiB, 1MiB…64GiB. Each
    /// lane has an equal share; beyond it, its connection with the most loses the requests that
    /// wait.
    package var unsentTotal = ByteCount.mebibytes(256)
    /// `continuations`: CONTINUATION frames of one head. Default 8, 0…1000.
    package var continuations = 8
    /// `resets`: requests a minute that the client gives up. Default 600/m, as all below
    /// 1/m…1000000/m or `off`.
    package var resets: Int? = 600
    /// `provoked_resets`: requests a minute that end by an error of the client's, or are refused.
    /// Default 300/m.
    package var provokedResets: Int? = 300
    /// `pings`: PING frames a minute. Default 120/m.
    package var pings: Int? = 120
    /// `settings`: SETTINGS frames a minute. Default 30/m.
    package var settings: Int? = 30
    /// `empty_frames`: frames a minute that carry nothing. Default 120/m.
    package var emptyFrames: Int? = 120
    /// `other_frames`: PRIORITY frames a minute, and those of unknown types. Default 600/m.
    package var otherFrames: Int? = 600

    package init() {}

    typealias SizeRow = (
        key: String, path: any WritableKeyPath<Self, ByteCount> & Sendable,
        range: ClosedRange<ByteCount>
    )

    static let sizes: [SizeRow] = [
        ("stream_window", \.streamWindow, .kibibytes(64)...ByteCount.mebibytes(16)),
        ("connection_window", \.connectionWindow, .kibibytes(64)...ByteCount.mebibytes(64)),
        ("unsent", \.unsent, .kibibytes(256)...ByteCount.gibibytes(1)),
        ("unsent_total", \.unsentTotal, .mebibytes(1)...ByteCount.gibibytes(64)),
    ]

    static let rates: [(key: String, path: any WritableKeyPath<Self, Int?> & Sendable)] = [
        ("resets", \.resets), ("provoked_resets", \.provokedResets), ("pings", \.pings),
        ("settings", \.settings), ("empty_frames", \.emptyFrames),
        ("other_frames", \.otherFrames),
    ]

    /// Reads the section; what it does not say keeps its default.
    init(_ node: SourceNode?, log: ProblemLog) {
        self.init()
        let keys =
            ["streams", "continuations"] + Self.sizes.map(\.key) + Self.rates.map(\.key)
        guard let node, let reader = MappingReader(node, "limits.http2", keys: keys, log: log)
        else { return }
        if let value = reader.integer("streams", in: 1...10_000) { streams = value.value }
        if let value = reader.integer("continuations", in: 0...1000) {
            continuations = value.value
        }
        for row in Self.sizes {
            if let value = reader.bytes(row.key, in: row.range) {
                self[keyPath: row.path] = value.value
            }
        }
        for row in Self.rates {
            if let value = reader.countOrOff(row.key, unit: "/m") {
                self[keyPath: row.path] = value.value
            }
        }
    }
}
