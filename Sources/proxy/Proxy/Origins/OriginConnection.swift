import EventLoops
import HTTPWire
import Telemetry

/// A connection to a server, plain or under TLS: its connect, and its handshake.
///
/// What it carries is a subclass's: the requests of HTTP/1.1 one after the other, or the streams of
/// HTTP/2.
class OriginConnection: Connection {
    /// The progress of connecting.
    private enum Making {
        /// The connect has not ended. Leaves to `shaking`, `ended`.
        case connecting
        /// The handshake has begun. The value is its failure, or that it has not ended. Leaves to
        /// `ended`.
        case shaking(TLSFailure)
        case ended
    }

    final let server: OriginServer
    final var servedBy: any OriginPeer { server }
    final let host: any OriginHost
    /// When the connect, or the request, began: milliseconds of ``EventLoop/now``.
    final var begunAt: UInt64
    private var making: Making

    init(_ socket: OriginSocket, host: any OriginHost, on loop: EventLoop) {
        server = socket.server
        self.host = host
        begunAt = loop.now
        making = !socket.isConnecting && socket.tls == nil ? .ended : .connecting
        super.init(
            descriptor: socket.descriptor,
            peer: server.settings.address,
            isConnecting: socket.isConnecting,
            tls: socket.tls,
            on: loop
        )
    }

    /// Watches the socket, from which on the connect makes progress. Closes the connection where
    /// that fails.
    ///
    /// - isConnecting: whether `connect` still runs.
    final func start(isConnecting: Bool) throws(SocketError) {
        do throws(SocketError) {
            try loop.register(self)
        } catch {
            close()
            throw error
        }
        host.count(.originConnects)
        // A Unix socket is connected at once, and no event follows.
        if !isConnecting, isSecure, case .failed = beginHandshake() {
            close()
            throw .handshakeFailed
        }
    }

    /// Whether the connect has succeeded, and the handshake under TLS.
    final var isMade: Bool { if case .ended = making { true } else { false } }

    /// Why the handshake failed or has not ended; `nil` while it has not begun.
    final var handshakeFault: TLSFailure? {
        if case .shaking(let failure) = making { failure } else { nil }
    }

    /// The connect has ended, and the handshake; `nil` for success.
    func made(_ error: SocketError?) {}

    /// Counts that the server took no connection.
    final func noteFailure(_ error: SocketError) {
        if let handshakeFault {
            host.count(.originTLSFailures)
            if handshakeFault.isAboutCertificate { host.count(.originCertificateFailures) }
        }
        host.count(.originConnectFailures)
        server.connectFailed(error, begunAt: begunAt, on: loop)
    }

    // MARK: Events

    /// The connect ended; `nil` for success.
    override public final func connectEnded(_ error: SocketError?) {
        if error == nil, isSecure { return shakeOn() }
        if error == nil { making = .ended }
        made(error)
    }

    /// Continues the handshake; `false` where none is under way.
    final func continueHandshake() -> Bool {
        guard handshakeFault != nil else { return false }
        shakeOn()
        return true
    }

    private func shakeOn() {
        switch beginHandshake() {
        case .ended: made(nil)
        case .waiting: break
        case .failed: made(.handshakeFailed)
        }
    }

    private func beginHandshake() -> Handshake {
        making = .shaking(.late)
        let handshake = shakeHands()
        switch handshake {
        case .ended: making = .ended
        case .waiting: break
        case .failed(let failure): making = .shaking(failure)
        }
        return handshake
    }

    /// Bytes of the handshake could not be sent.
    final func handshakeBroke() {
        making = .shaking(.ended)
        made(.handshakeFailed)
    }
}

/// A socket that connects to a server, and the TLS machine for it.
struct OriginSocket {
    let server: OriginServer
    let descriptor: Int32
    /// Whether `connect` still runs.
    let isConnecting: Bool
    let tls: TLSSession?

    init(to server: OriginServer) throws(SocketError) {
        self.server = server
        do throws(TLSFailure) {
            tls = try server.settings.tls.map { one throws(TLSFailure) in try one.session() }
        } catch {
            throw .handshakeFailed
        }
        (descriptor, isConnecting) = try Connection.open(to: server.settings.address)
    }
}

/// How a server's state counts a request, from the search for a connection to its end.
struct OriginLoad {
    private enum Phase {
        case none
        /// The request is still to begin. Leaves to `request`, `none`.
        case reserved
        case request
    }

    private var phase = Phase.none
    /// Nanoseconds from the last head byte of the request to the first of its response; 0 before.
    var waited: UInt64 = 0

    mutating func reserve(at server: OriginServer) {
        guard case .none = phase else { return }
        phase = .reserved
        server.state.began()
    }

    mutating func requestBegan() { phase = .request }

    mutating func end(at server: OriginServer) {
        if case .none = phase { return }
        let hadRequest = if case .request = phase { true } else { false }
        phase = .none
        server.state.ended(hadRequest: hadRequest, waited: waited)
        waited = 0
    }
}
