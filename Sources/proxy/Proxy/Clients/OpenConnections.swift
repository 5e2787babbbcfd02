package import EventLoops
import HTTPWire
import Verification

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

/// The requests under way on an HTTP/2 connection.
///
/// Each but the first counts as a connection of the client's address: it costs as much as a
/// connection of HTTP/1.1, including one to the origin. nginx counts them so, too (limit_conn).
struct RequestPlaces {
    private var count = 0
    /// The entry that the client's address had before a reload trusted the address. Requests that
    /// were under way give back to it what they took, so it is held until the connection ends.
    private var leftEntry: AddressEntry?

    /// Counts one more request; `false` where the connection has a request and may not have more.
    mutating func take(_ client: ClientPeer, on host: ProxyLoop) -> Bool {
        guard count == 0 || host.takePlace(of: client.entry) else { return false }
        count += 1
        return true
    }

    /// A request is over.
    mutating func giveBack(_ client: ClientPeer, on host: ProxyLoop) {
        count -= 1
        if count > 0 { host.giveBackPlace(of: client.entry) }
    }

    /// Applies the current settings to the client. Requests under way are counted with the new
    /// entry of the address.
    mutating func settle(_ client: ClientPeer, on host: ProxyLoop) {
        guard client.settingsNumber != host.settingsNumber else { return }
        let places = max(count - 1, 0)
        let before = client.entry
        // Requests under way give back to it what they have used of it.
        let isUsed = count > 0 && before?.holdAgain(max: nil) == true
        for _ in 0..<places { host.giveBackPlace(of: before) }
        host.settle(client)
        for _ in 0..<places { host.keepPlace(of: client.entry) }
        guard isUsed, let before else { return }
        if client.entry == nil, leftEntry == nil {
            leftEntry = before
        } else {
            before.release(now: MonotonicClock.nanoseconds)
        }
    }

    /// The connection ends.
    mutating func end() { leftEntry.take()?.release(now: MonotonicClock.nanoseconds) }
}

/// Bytes of an HTTP/2 connection's responses that wait for the client's windows.
struct WaitingOutput {
    /// The count that the host knows.
    private var counted = 0
    /// Too much waits on all connections together, and the most on this one.
    var mustDrop = false

    /// Returns the change since the last call.
    mutating func count(_ bytes: Int) -> Int {
        defer { counted = bytes }
        return bytes - counted
    }
}

/// A connection that was closed because it did not begin with a valid PROXY header.
package struct ProxiedFault: Sendable {
    /// The text for the log.
    package let what: String
    package let peer: SocketAddress
    /// The number of such connections on the event loop since the last report.
    package let count: Int

    init(_ reason: Reason, _ peer: SocketAddress, count: Int) {
        self.peer = peer
        self.count = count
        switch reason {
        case .stranger: what = "it is none of trusted_proxies"
        case .header(.malformed(let reason)):
            what = "its PROXY header is malformed: \(reason.rawValue)"
        case .header(.late): what = "its PROXY header did not come within timeouts.handshake"
        case .header(.gone), .header(.unused): what = "it ended before its PROXY header"
        }
    }

    enum Reason {
        /// The peer may not say who the client is.
        case stranger
        case header(ProxiedConnection.Fault)
    }

    package var peerText: String { peer.isUnix ? "a Unix socket" : peer.ipAddress.text }
}

extension ProxiedFault {
    /// Limits how often an event loop reports failures that any client can cause.
    struct Pace {
        /// The pause after a report: ten seconds.
        private static let quietNanoseconds: UInt64 = 10_000_000_000

        private var toldAt: UInt64?
        private var untold = 0

        /// Counts a failure. Returns the number of failures since the last report, this one
        /// included; `nil` when there is no report now.
        mutating func count(now: UInt64) -> Int? {
            untold += 1
            if let toldAt, now &- toldAt < Self.quietNanoseconds { return nil }
            toldAt = now
            defer { untold = 0 }
            return untold
        }
    }
}
