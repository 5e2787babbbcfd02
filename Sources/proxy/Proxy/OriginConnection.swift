import HTTPWire
import Lanes

/// A connection to a server of an origin.
final class OriginConnection: Connection {
    enum State {
        /// Being made for an exchange. Leaves to `busy`, closed.
        case connecting(Exchange)
        /// Carries an exchange. Leaves to `idle`, `tunnel`, closed.
        case busy(Exchange)
        /// In the pool: any octet or end is a fault. Leaves to `busy`, closed.
        case idle
        /// Carries a tunnel. Leaves to closed.
        case tunnel(Tunnel)
    }

    let server: OriginServer
    var state: State
    /// Whether an exchange before this one used it.
    var isReused = false
    /// The beginning of a response head.
    var inbox: [UInt8] = []
    var scanner = HeadScanner(.response)

    init(
        _ server: OriginServer,
        for exchange: Exchange,
        descriptor: Int32,
        isConnecting: Bool,
        on lane: Lane
    ) {
        self.server = server
        state = isConnecting ? .connecting(exchange) : .busy(exchange)
        super.init(
            descriptor: descriptor,
            peer: server.settings.address,
            isConnecting: isConnecting,
            on: lane
        )
    }

    /// Whether it may carry another request: nothing to read, no end announced, as far as is known.
    var isFit: Bool { !isClosed && !isReadable }

    override func connectEnded(_ error: SocketError?) {
        guard case .connecting(let exchange) = state else { return }
        if let error { return exchange.connectFailed(self, error) }
        state = .busy(exchange)
        exchange.originConnected(self)
    }

    override func inputReady() {
        switch state {
        case .connecting: break
        case .busy(let exchange): exchange.originReadable(self)
        case .idle:
            // RFC 9112 §9.2: data without a request is no response; an end is an end.
            server.forget(self)
            close()
        case .tunnel(let tunnel): tunnel.relay(from: self)
        }
    }

    override func outputDrained() {
        switch state {
        case .connecting, .idle: break
        case .busy(let exchange): exchange.originDrained()
        case .tunnel(let tunnel): tunnel.drained(self)
        }
    }

    override func outputFailed() {
        switch state {
        case .connecting, .idle: close()
        case .busy(let exchange): exchange.originWriteFailed(self)
        case .tunnel(let tunnel): tunnel.end()
        }
    }

    override func deadlinePassed() {
        switch state {
        case .connecting(let exchange):
            exchange.connectFailed(self, SocketError("connect", code: 110))
        case .busy(let exchange): exchange.originTimedOut(self)
        case .idle:
            server.forget(self)
            close()
        case .tunnel(let tunnel): tunnel.end()
        }
    }
}
