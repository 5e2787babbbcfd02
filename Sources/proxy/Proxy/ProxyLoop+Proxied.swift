package import EventLoops
import HTTPWire
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
