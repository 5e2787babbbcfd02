import EventLoops
import HTTPWire
import TLSSession

/// The connections of an event loop's clients, what counts as such, and how often those that are
/// refused are reported.
struct OpenConnections {
    var clients: [ObjectIdentifier: any ClientConnection] = [:]
    /// Those whose PROXY header is still to come.
    var proxied: [ObjectIdentifier: ProxiedConnection] = [:]
    /// HTTP/2 requests that count as connections.
    var placeCount = 0
    /// Bytes of responses that wait for HTTP/2 clients.
    private var unsentBytes = 0
    /// When one of those clients' connections last had to drop what waits.
    private var droppedAt: UInt64 = 0
    private var proxiedPace = ProxiedFault.Pace()
    private var certificatePace = ProxiedFault.Pace()
    /// Called, not too often, for connections without a PROXY header that counts.
    var proxiedFailed: ((ProxiedFault) -> Void)?
    /// A client's certificate was refused or missing; how many were since the last call.
    var certificateRefused: ((TLSFailure.Reason, IPAddress, Int) -> Void)?

    /// Connections of clients, and those that are about to be.
    var count: Int { clients.count + proxied.count }

    /// Counts bytes that wait for HTTP/2 clients.
    ///
    /// - now: milliseconds of the event loop's clock.
    /// - Returns: the connection that is to drop what waits, where more than `max` bytes do: once a
    ///   millisecond at most, since all connections are compared.
    mutating func countUnsent(_ change: Int, max: Int, now: UInt64) -> (any ClientConnection)? {
        unsentBytes += change
        guard change > 0, unsentBytes > max, droppedAt != now else { return nil }
        droppedAt = now
        return clients.values.max { $0.waitingBytes < $1.waitingBytes }
    }

    /// Reports a connection without a PROXY header that counts.
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
