import ClientStreams
package import HTTPWire
package import Lanes
import Telemetry

// Listeners whose connections begin with a PROXY header.
//
// There is one authority for who a client is: `trusted_proxies`. A peer outside it may not send a
// header, or any stranger could take any address. Behind the header the connection is that of the
// address it names, as if the client had connected itself: limits count it, and its Forwarded and
// X-Forwarded-For are believed only where that address, too, is one of `trusted_proxies`.
extension ProxyLane {
    /// A connection was accepted that must begin with a PROXY header.
    package func acceptProxied(_ descriptor: Int32, _ peer: SocketAddress, _ entrance: Entrance) {
        lane.preconditionOnQueue()
        guard settings.isTrusted(peer.ipAddress) else {
            tally.add(.proxyStrangers)
            tell(.stranger, peer)
            return Connection.discard(descriptor)
        }
        guard connectionCount < settings.limits.connectionsMax else {
            tally.add(.connectionsRefused)
            return Connection.discard(descriptor)
        }
        let connection = ProxiedConnection(descriptor, peer, on: lane) { [unowned self] in
            headerEnded($0, $1, entrance)
        }
        connection.flow = Self.flow(UInt64(descriptor))
        do throws(SocketError) {
            try lane.register(connection)
        } catch {
            tally.add(.connectionsRefused)
            return Connection.discard(descriptor)
        }
        connections.proxied.add(connection)
        let limits = settings.clientLimits
        let time = isDraining ? limits.drainIdleTime : limits.handshakeTime
        connection.setDeadline(milliseconds: time)
    }

    private func headerEnded(
        _ connection: ProxiedConnection,
        _ outcome: ProxiedConnection.Outcome,
        _ entrance: Entrance
    ) {
        connections.proxied.remove(connection)
        switch outcome {
        case .named(let descriptor, .unnamed): accept(descriptor, connection.peer, entrance)
        case .named(let descriptor, .client(let address, let port)):
            accept(descriptor, SocketAddress(address, port: port), entrance)
        case .failed(.unused): break
        case .failed(let fault):
            tally.add(.proxyHeadersRefused)
            tell(.header(fault), connection.peer)
        }
    }

    private func tell(_ reason: ProxiedFault.Reason, _ peer: SocketAddress) {
        guard let count = connections.proxied.count(now: MonotonicClock.nanoseconds) else { return }
        connections.proxiedFailed?(ProxiedFault(reason, peer, count: count))
    }

    /// The gateway ends: a header that is on its way is awaited a little longer.
    func drainProxied() {
        for connection in connections.proxied.connections.values {
            connection.setDeadline(milliseconds: settings.clientLimits.drainIdleTime)
        }
    }

    func abortProxied() {
        for connection in Array(connections.proxied.connections.values) { connection.end(.unused) }
    }
}

/// Connections of proxies whose PROXY header is still to come, and what is told of those that
/// failed.
struct ProxiedSet {
    private(set) var connections: [ObjectIdentifier: ProxiedConnection] = [:]
    private var pace = ProxiedFault.Pace()

    mutating func add(_ connection: ProxiedConnection) {
        connections[ObjectIdentifier(connection)] = connection
    }

    mutating func remove(_ connection: ProxiedConnection) {
        connections[ObjectIdentifier(connection)] = nil
    }

    /// Counts a failure.
    ///
    /// - Returns: how many came since the last one that was told, this one included; `nil` when it
    ///   is not to be told now.
    mutating func count(now: UInt64) -> Int? { pace.count(now: now) }
}

extension ProxiedFault {
    /// How often a lane tells of failures that strangers can cause.
    struct Pace {
        /// How long nothing more is said: ten seconds.
        private static let quietNanoseconds: UInt64 = 10_000_000_000

        private var toldAt: UInt64?
        private var untold = 0

        /// Counts a failure: how many came since the last one that was told, this one included;
        /// `nil` when it is not to be told now.
        mutating func count(now: UInt64) -> Int? {
            untold += 1
            if let toldAt, now &- toldAt < Self.quietNanoseconds { return nil }
            toldAt = now
            defer { untold = 0 }
            return untold
        }
    }
}

/// A connection that was closed since it did not begin with a PROXY header that counts.
package struct ProxiedFault: Sendable {
    /// What the log says of it.
    package let what: String
    package let peer: SocketAddress
    /// How many there were on the lane since the last one that was told.
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

    /// The peer as text.
    package var peerText: String { peer.isUnix ? "a Unix socket" : peer.ipAddress.text }
}

extension SocketAddress {
    init(_ address: IPAddress, port: UInt16) {
        switch address {
        case .v4(let address): self.init(v4: address, port: port)
        case .v6(let high, let low): self.init(v6: high, low, port: port)
        }
    }

    /// The IP address; of a Unix socket's peer the loopback address, since it is on this host.
    package var ipAddress: IPAddress {
        if let v4 { return .v4(v4) }
        if let v6 { return IPAddress(high: v6.high, low: v6.low) }
        return .v4(0x7F00_0001)
    }
}
