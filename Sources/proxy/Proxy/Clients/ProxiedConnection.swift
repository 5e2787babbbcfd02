package import EventLoops
package import HTTPWire
import Telemetry

/// A proxy's connection until its PROXY header has been read. What follows the header is the
/// client's, TLS included, so the bytes stay in the kernel until the header is whole; then the
/// socket goes on as a client's connection.
final class ProxiedConnection: Connection {
    /// How it ended.
    enum Outcome {
        /// The header is read away; this is the socket.
        case named(Int32, ProxyHeader.Source)
        /// It was closed.
        case failed(Fault)
    }

    /// Why there is no client.
    enum Fault: Equatable, Sendable {
        case malformed(MalformedProxyHeader)
        /// The header was not whole in time.
        case late
        /// The peer has ended its direction before that.
        case gone
        /// The peer has ended its direction without a byte, as probes of balancers do; or the
        /// gateway has closed the connection.
        case unused
    }

    private var ended: ((ProxiedConnection, Outcome) -> Void)?

    /// `ended` is called once.
    init(
        _ descriptor: Int32,
        _ peer: SocketAddress,
        on loop: EventLoop,
        ended: @escaping (ProxiedConnection, Outcome) -> Void
    ) {
        self.ended = ended
        super.init(descriptor: descriptor, peer: peer, isConnecting: false, on: loop)
    }

    /// There may be something to read.
    override public func inputReady() {
        switch peek(ProxyHeader.byteCountMax) {
        case .bytes(let bytes): read(bytes.span)
        case .wouldBlock: break
        case .ended, .failed: end(.unused)
        }
    }

    private func read(_ bytes: Span<UInt8>) {
        do throws(MalformedProxyHeader) {
            switch try ProxyHeader.read(bytes) {
            // The kernel announces no further byte after the peer's end.
            case .needMore: if isEnding { end(.gone) }
            case .complete(let byteCount, let source):
                skip(byteCount)
                let ended = take()
                ended?(self, .named(detach(), source))
            }
        } catch {
            end(.malformed(error))
        }
    }

    /// The peer has closed both directions, and this was not read yet.
    override public func brokeWhileUnread() { end(.unused) }

    /// The header did not come in time.
    override public func deadlinePassed() { end(.late) }

    func end(_ fault: Fault) {
        guard let ended = take() else { return }
        close()
        ended(self, .failed(fault))
    }

    private func take() -> ((ProxiedConnection, Outcome) -> Void)? {
        defer { ended = nil }
        return ended
    }
}

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
