package import EventLoops
package import HTTPWire
import Telemetry
import Verification

/// What a listener's connections speak, and how each becomes a client's connection.
package struct Entrance {
    /// `nil` without TLS.
    let tls: TLSContext?
    let takesHTTP2: Bool
    /// How their requests ask for decisions; `nil` where they go to origins.
    let decides: DecisionQuestion?

    package init(tls: TLSContext?, takesHTTP2: Bool, decides: DecisionQuestion? = nil) {
        self.tls = tls
        self.takesHTTP2 = takesHTTP2
        self.decides = decides
    }

    /// A client's connection was accepted.
    ///
    /// - isNameless: whether the peer is a proxy that can't name its client.
    package func accept(
        _ descriptor: Int32,
        from peer: SocketAddress,
        on proxy: ProxyLoop,
        isNameless: Bool = false
    ) {
        proxy.loop.preconditionOnQueue()
        proxy.tally.add(.connectionsAccepted)
        guard proxy.hasPlace else {
            proxy.tally.add(.connectionsRefused)
            return Connection.discard(descriptor)
        }
        let source = peer.ipAddress
        let address = proxy.ownAddress(source, isUnix: peer.isUnix)
        let max = proxy.settings.limits.addressConnectionsMax
        let entry: AddressEntry?
        switch address.map({ proxy.hold($0, max: max) }) ?? .noRoom {
        case .held(let held): entry = held
        case .noRoom: entry = nil
        case .refused:
            proxy.tally.add(.addressConnectionsRefused)
            return Connection.discard(descriptor)
        }
        let client: HTTP1Connection
        do {
            let session = try tls.map { try TLSSession(accepting: $0) }
            let facts = ClientPeer(
                peer,
                isSecure: session != nil,
                decides: decides,
                provenance: proxy.provenance(
                    of: source,
                    isSecure: session != nil,
                    isNameless: isNameless
                ),
                settingsNumber: proxy.settingsNumber
            )
            facts.entry = entry
            facts.isNameless = isNameless
            client = HTTP1Connection(descriptor, peer, tls: session, client: facts, host: proxy)
            client.flow =
                address.map { proxy.flow(of: $0) } ?? ProxyLoop.flow(UInt64(descriptor))
            try proxy.loop.register(client)
        } catch {
            proxy.tally.add(.connectionsRefused)
            entry?.release(now: MonotonicClock.nanoseconds)
            return Connection.discard(descriptor)
        }
        proxy.connections.clients[ObjectIdentifier(client)] = client
        client.begin(takesHTTP2: takesHTTP2)
    }
}

// Listeners whose connections begin with a PROXY header.
//
// Only `trusted_proxies` decides who may name a client. A peer outside of it may not send a header;
// otherwise an attacker could claim any address. After the header the connection belongs to the
// address that it names, as if the client had connected itself. Limits count that address. Its
// Forwarded and X-Forwarded-For are trusted only where that address, too, is one of
// `trusted_proxies`. Where the header names no client, they are not: a proxy that reads no HTTP
// has not written them.
extension Entrance {
    /// A connection was accepted that must begin with a PROXY header.
    package func acceptProxied(_ descriptor: Int32, from peer: SocketAddress, on proxy: ProxyLoop) {
        proxy.loop.preconditionOnQueue()
        let settings = proxy.settings
        guard settings.isTrusted(peer.ipAddress) else {
            proxy.tally.add(.proxyStrangers)
            proxy.connections.failed(.stranger, peer)
            return Connection.discard(descriptor)
        }
        guard proxy.connections.count < settings.limits.connectionsMax else {
            proxy.tally.add(.connectionsRefused)
            return Connection.discard(descriptor)
        }
        let connection = ProxiedConnection(descriptor, peer, on: proxy.loop) {
            [self, unowned proxy] in headerEnded($0, $1, on: proxy)
        }
        connection.flow = ProxyLoop.flow(UInt64(descriptor))
        do throws(SocketError) {
            try proxy.loop.register(connection)
        } catch {
            proxy.tally.add(.connectionsRefused)
            return Connection.discard(descriptor)
        }
        proxy.connections.proxied[ObjectIdentifier(connection)] = connection
        let timeouts = settings.timeouts
        connection.setDeadline(
            milliseconds: proxy.isDraining ? timeouts.drainIdle : timeouts.handshake
        )
    }

    private func headerEnded(
        _ connection: ProxiedConnection,
        _ outcome: ProxiedConnection.Outcome,
        on proxy: ProxyLoop
    ) {
        proxy.connections.proxied[ObjectIdentifier(connection)] = nil
        switch outcome {
        case .named(let descriptor, .unnamed):
            accept(descriptor, from: connection.peer, on: proxy, isNameless: true)
        case .named(let descriptor, .client(let address, let port)):
            accept(descriptor, from: SocketAddress(address, port: port), on: proxy)
        case .failed(.unused): break
        case .failed(let fault):
            proxy.tally.add(.proxyHeadersRefused)
            proxy.connections.failed(.header(fault), connection.peer)
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
