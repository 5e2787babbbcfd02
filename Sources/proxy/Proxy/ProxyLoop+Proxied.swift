package import EventLoops
package import HTTPWire
import Telemetry

// Listeners whose connections begin with a PROXY header.
//
// Only `trusted_proxies` decides who may name a client. A peer outside of it may not send a header;
// otherwise an attacker could claim any address. After the header the connection belongs to the
// address that it names, as if the client had connected itself. Limits count that address. Its
// Forwarded and X-Forwarded-For are trusted only where that address, too, is one of
// `trusted_proxies`.
extension ProxyLoop {
    /// A connection was accepted that must begin with a PROXY header.
    package func acceptProxied(_ descriptor: Int32, _ peer: SocketAddress, _ entrance: Entrance) {
        loop.preconditionOnQueue()
        guard settings.isTrusted(peer.ipAddress) else {
            tally.add(.proxyStrangers)
            connections.failed(.stranger, peer)
            return Connection.discard(descriptor)
        }
        guard connections.count < settings.limits.connectionsMax else {
            tally.add(.connectionsRefused)
            return Connection.discard(descriptor)
        }
        let connection = ProxiedConnection(descriptor, peer, on: loop) { [unowned self] in
            headerEnded($0, $1, entrance)
        }
        connection.flow = Self.flow(UInt64(descriptor))
        do throws(SocketError) {
            try loop.register(connection)
        } catch {
            tally.add(.connectionsRefused)
            return Connection.discard(descriptor)
        }
        connections.proxied[ObjectIdentifier(connection)] = connection
        let time = isDraining ? settings.timeouts.drainIdle : settings.timeouts.handshake
        connection.setDeadline(milliseconds: time)
    }

    private func headerEnded(
        _ connection: ProxiedConnection,
        _ outcome: ProxiedConnection.Outcome,
        _ entrance: Entrance
    ) {
        connections.proxied[ObjectIdentifier(connection)] = nil
        switch outcome {
        case .named(let descriptor, .unnamed): accept(descriptor, connection.peer, entrance)
        case .named(let descriptor, .client(let address, let port)):
            accept(descriptor, SocketAddress(address, port: port), entrance)
        case .failed(.unused): break
        case .failed(let fault):
            tally.add(.proxyHeadersRefused)
            connections.failed(.header(fault), connection.peer)
        }
    }

    /// The gateway drains: it waits a little longer for a header that is on its way.
    func drainProxied() {
        for connection in connections.proxied.values {
            connection.setDeadline(milliseconds: settings.timeouts.drainIdle)
        }
    }

    func abortProxied() {
        for connection in Array(connections.proxied.values) { connection.end(.unused) }
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

extension SocketAddress {
    init(_ address: IPAddress, port: UInt16) {
        switch address {
        case .v4(let address): self.init(v4: address, port: port)
        case .v6(let high, let low): self.init(v6: high, low, port: port)
        }
    }

    /// The IP address. For a Unix socket the loopback address, since its peer is on this host.
    package var ipAddress: IPAddress {
        if let v4 { return .v4(v4) }
        if let v6 { return IPAddress(high: v6.high, low: v6.low) }
        return .v4(0x7F00_0001)
    }
}
