package import Rules

/// How long the gateway waits, and for what. Each is 1ms…7d, or as said.
package struct TimeoutSettings: Hashable, Sendable {
    /// `head`: from a request's first byte to the end of its head; then 408. Default 10s.
    package var head: Duration = .seconds(10)
    /// `body_idle`: for the next byte of content while the origin takes them; then 408.
    /// Default 30s.
    package var bodyIdle: Duration = .seconds(30)
    /// `body_minimum_rate`: bytes a second that content must bring, measured over `body_idle`;
    /// 0B/s for no minimum. Default 64B/s. Others: Kestrel 240, Apache 500.
    package var bodyMinimumRate = ByteCount(64)
    /// `commit`: for the disk, where a request waits until its counter is on it; then as the rule's
    /// `on_error` says. Where an enrolment waits until its key is on it; then 503. Default 10s:
    /// longer than another process may hold up a transaction.
    package var commit: Duration = .seconds(10)
    /// `connect`: for a connection to a server; then the next one, at last 504. Default 3s.
    package var connect: Duration = .seconds(3)
    /// `first_byte`: from the end of a request to the head of its response; then 504. Default 60s.
    package var firstByte: Duration = .seconds(60)
    /// `response_idle`: for the next byte of a response, and for a party to take what waits for
    /// it. Default 60s.
    package var responseIdle: Duration = .seconds(60)
    /// `response_minimum_rate`: bytes a second that a client must take of what waits for it,
    /// measured over `response_idle`; 0B/s for no minimum. Default 64B/s. Others: Kestrel 240.
    package var responseMinimumRate = ByteCount(64)
    /// `idle`: for the next request on a client's connection. Default 60s.
    package var idle: Duration = .seconds(60)
    /// `pool_idle`: how long a connection to an origin waits unused; less than origins keep theirs.
    /// Default 50s.
    package var poolIdle: Duration = .seconds(50)
    /// `tunnel_idle`: for the next byte of a tunnel (WebSocket), in either direction. Default 1h.
    package var tunnelIdle: Duration = .seconds(3600)
    /// `handshake`: for a TLS handshake. Default 10s.
    package var handshake: Duration = .seconds(10)
    /// `linger`: how long what a client still sends is read away after an answer that ends its
    /// connection. Default 2s.
    package var linger: Duration = .seconds(2)
    /// `drain`: how long requests and tunnels under way may go on after the signal to stop.
    /// Default 30s.
    package var drain: Duration = .seconds(30)
    /// `drain_idle`: how long, after the signal to stop, a client's connection still takes a
    /// request, and a client that has ended its own direction may wait for a response. Default 1s.
    package var drainIdle: Duration = .seconds(1)
    /// `lame_duck`: how long, after the signal to stop, `/readyz` answers 503 while all is served
    /// as before; 0s…7d. Default 0s. Others: CoreDNS and NATS name it so.
    package var lameDuck = Duration.zero

    package init() {}

    typealias Row = (key: String, path: any WritableKeyPath<Self, Duration> & Sendable)

    static let rows: [Row] = [
        ("head", \.head), ("body_idle", \.bodyIdle), ("commit", \.commit),
        ("connect", \.connect),
        ("first_byte", \.firstByte), ("response_idle", \.responseIdle), ("idle", \.idle),
        ("pool_idle", \.poolIdle), ("tunnel_idle", \.tunnelIdle), ("handshake", \.handshake),
        ("linger", \.linger), ("drain", \.drain),
        ("drain_idle", \.drainIdle),
    ]

    typealias RateRow = (key: String, path: any WritableKeyPath<Self, ByteCount> & Sendable)

    static let rates: [RateRow] = [
        ("body_minimum_rate", \.bodyMinimumRate),
        ("response_minimum_rate", \.responseMinimumRate),
    ]

    static let range: ClosedRange<Duration> = .milliseconds(1)...Duration.seconds(604_800)

    /// Reads the section; what it does not say keeps its default.
    init(_ node: SourceNode?, log: ProblemLog) {
        self.init()
        guard let node,
            let reader = MappingReader(
                node,
                "timeouts",
                keys: Self.rows.map(\.key) + Self.rates.map(\.key) + ["lame_duck"],
                log: log
            )
        else { return }
        for row in Self.rows {
            if let value = reader.duration(row.key, in: Self.range) {
                self[keyPath: row.path] = value.value
            }
        }
        let lameDuckRange = Duration.zero...Self.range.upperBound
        if let value = reader.duration("lame_duck", in: lameDuckRange) { lameDuck = value.value }
        for row in Self.rates {
            let rate = reader.value(row.key, use: "bytes a second, 0B/s…1GiB/s") { text in
                let size = text.hasSuffix("/s") ? ByteCount(text: text.dropLast(2)) : nil
                return size.flatMap { $0 <= .gibibytes(1) ? $0 : nil }
            }
            if let rate { self[keyPath: row.path] = rate.value }
        }
    }
}
