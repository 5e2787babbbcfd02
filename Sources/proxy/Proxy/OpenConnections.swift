import EventLoops
import HTTPWire

/// The connections of an event loop's clients, what counts as one, and how often refused
/// connections are reported.
struct OpenConnections {
    var clients: [ObjectIdentifier: any ClientConnection] = [:]
    /// Connections whose PROXY header is still to come.
    var proxied: [ObjectIdentifier: ProxiedConnection] = [:]
    /// HTTP/2 requests that count as connections.
    var placeCount = 0
    /// Bytes of responses that wait for HTTP/2 clients.
    private var unsentBytes = 0
    /// When one of those clients' connections last had to drop its waiting responses.
    private var droppedAt: UInt64 = 0
    private var proxiedPace = ProxiedFault.Pace()
    private var certificatePace = ProxiedFault.Pace()
    /// Called at a limited rate for connections without a valid PROXY header.
    var proxiedFailed: ((ProxiedFault) -> Void)?
    /// Called when a client's certificate was refused or missing, with the number of cases since
    /// the last call.
    var certificateRefused: ((TLSFailure.Reason, IPAddress, Int) -> Void)?

    /// Connections of clients, and connections that will become one.
    var count: Int { clients.count + proxied.count }

    /// Counts bytes that wait for HTTP/2 clients.
    ///
    /// - now: milliseconds of the event loop's clock.
    /// - Returns: the connection that must drop its waiting responses, where more than `max` bytes
    ///   wait: at most once per millisecond, since all connections are compared.
    mutating func countUnsent(_ change: Int, max: Int, now: UInt64) -> (any ClientConnection)? {
        unsentBytes += change
        guard change > 0, unsentBytes > max, droppedAt != now else { return nil }
        droppedAt = now
        return clients.values.max { $0.waitingBytes < $1.waitingBytes }
    }

    /// Reports a connection without a valid PROXY header.
    mutating func failed(_ reason: ProxiedFault.Reason, _ peer: SocketAddress) {
        guard let count = proxiedPace.count(now: MonotonicClock.nanoseconds) else { return }
        proxiedFailed?(ProxiedFault(reason, peer, count: count))
    }

    /// Reports a client whose certificate is refused or missing.
    mutating func refused(_ failure: TLSFailure, _ address: IPAddress) {
        guard failure.reason == .certificateMissing || failure.isAboutCertificate,
            let count = certificatePace.count(now: MonotonicClock.nanoseconds)
        else { return }
        certificateRefused?(failure.reason, address, count)
    }
}
