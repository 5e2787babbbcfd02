package import EventLoops
import HTTPWire
package import TLSSession

/// A connection to a server of an origin. It sends one request after the other and reads the
/// responses.
package final class OriginStream: Connection {
    /// The purpose of the connection.
    enum Use {
        /// It connects for a request. Leaves to `busy`, `trial`, closed.
        case dial(OriginDial)
        /// It connects to see whether the server answers. Leaves to closed.
        case trial
        /// Carries a request. Leaves to `idle`, `tunnel`, closed.
        case busy(any OriginStreamOwner)
        /// In the pool: any byte or end is a fault. Leaves to `busy`, closed.
        case idle
        /// Carries a tunnel. Leaves to closed.
        case tunnel(any ByteStreamOwner)
    }

    /// The progress of connecting.
    private enum Making {
        /// The connect has not ended. Leaves to `shaking`, `ended`.
        case connecting
        /// The handshake has begun. The value is its failure, or that it has not ended. Leaves to
        /// `ended`.
        case shaking(TLSFailure)
        case ended
    }

    /// How the server counts it.
    private enum Load {
        case none
        /// A request that is still to begin. Leaves to `request`, `none`.
        case reserved
        case request
    }

    package let server: OriginServer
    /// The bytes that the server gets before the first request.
    let preface: [UInt8]
    let host: any OriginHost
    private var use: Use
    /// When the connect, or the request, began: milliseconds of ``EventLoop/now``.
    private(set) var begunAt: UInt64
    private var making: Making
    /// The failure of TLS after the handshake; `nil` while there is none.
    package internal(set) var tlsFault: TLSFailure?
    /// Whether a request before this one used it.
    private(set) var isReused = false
    private var load = Load.none
    /// Nanoseconds from the last head byte of the request to the first of its response; 0 before.
    package var waited: UInt64 = 0
    /// Whether the stream has a place at a server whose connections are limited.
    private var holdsPlace: Bool
    var isCountedIdle = false

    // The request; see ``begin(_:asksUpgrade:framing:limits:)``.
    var method = Method.other
    var asksUpgrade = false
    var limits = ResponseLimits.none
    @exclusivity(unchecked) var out = OutgoingContent()
    /// Whether `out` has the event loop's memory.
    var isGathering = false
    /// The result of sending since the last ``flush()``.
    var outcome = WriteOutcome.sent

    // Its response.
    var progress = Progress.head
    /// The beginning of a head.
    @exclusivity(unchecked) var inbox: [UInt8] = []
    @exclusivity(unchecked) var scanner = HeadScanner(.response)
    var interimCount = 0
    @exclusivity(unchecked) var body = BodyReader(.none, limits: HeadLimits())
    /// Whether the server keeps the connection.
    var isPersistent = false

    /// The progress of reading a response.
    enum Progress {
        /// Its head is not complete.
        case head
        /// Its content is being read.
        case content
        /// All of it was read.
        case complete
        /// Reading can't continue.
        case broken
    }

    init(
        _ server: OriginServer,
        _ use: Use,
        _ preface: [UInt8],
        descriptor: Int32,
        isConnecting: Bool,
        tls: TLSSession?,
        host: any OriginHost,
        on loop: EventLoop
    ) {
        self.server = server
        self.use = use
        self.preface = preface
        self.host = host
        begunAt = loop.now
        making = !isConnecting && tls == nil ? .ended : .connecting
        // Trials, like checks, don't count as connections for requests.
        holdsPlace = if case .dial = use { server.isLimited } else { false }
        super.init(
            descriptor: descriptor,
            peer: server.settings.address,
            isConnecting: isConnecting,
            tls: tls,
            on: loop
        )
        if case .dial = use { becameActive() }
        begin(with: preface)
    }

    /// Whether the connect has succeeded, and the handshake under TLS.
    var isConnected: Bool { if case .ended = making { true } else { false } }

    /// Why the handshake failed or has not ended; `nil` while it has not begun.
    var handshakeFault: TLSFailure? {
        if case .shaking(let failure) = making { failure } else { nil }
    }

    /// Whether it may carry another request: as far as is known, there is nothing to read and no
    /// end.
    var isFit: Bool { !isClosed && isQuiet() }

    /// Whether it may carry another request; asks the kernel.
    func isFitNow() -> Bool {
        guard isSecure else { return isFit && isSilent() }
        expectInput()
        return isFit
    }

    // MARK: Uses

    /// Gives the connection to a request. The event loop schedules it in the request's flow until
    /// it is released.
    func take(for owner: any OriginStreamOwner, flow: Int) {
        use = .busy(owner)
        self.flow = flow
        inputMax = EventLoop.inputBytes
        becameActive()
    }

    /// The request that it was made for has gone elsewhere.
    func becomeTrial() {
        use = .trial
        flow = 0
        becameInactive()
    }

    /// The request is over. The connection becomes idle where possible and allowed, or it ends.
    ///
    /// - isReusable: whether the whole request was sent and the whole response was read.
    package func release(isReusable: Bool, idleTime: UInt64, idleMax: Int) {
        guard isReusable, isPersistent, progress == .complete, isFit else {
            return closeInOrder()
        }
        use = .idle
        becameInactive()
        isReused = true
        flow = 0
        setDeadline(milliseconds: idleTime)
        server.keep(self, max: idleMax)
    }

    /// The connection is a tunnel from now on.
    package func becomeTunnel(of owner: any ByteStreamOwner) -> any ByteStream {
        use = .tunnel(owner)
        inputMax = EventLoop.inputBytes
        return self
    }

    /// A request begins.
    func requestBegan() {
        begunAt = loop.now
        load = .request
    }

    /// Closes the connection; a request that it carries has ended.
    override public func close() {
        becameInactive()
        super.close()
        guard holdsPlace else { return }
        holdsPlace = false
        server.freed(on: loop)
    }

    private func becameActive() {
        guard case .none = load else { return }
        load = .reserved
        server.state.began()
    }

    private func becameInactive() {
        if case .none = load { return }
        let hadRequest = if case .request = load { true } else { false }
        load = .none
        server.state.ended(hadRequest: hadRequest, waited: waited)
        waited = 0
    }

    /// The result of a trial: whether the server answers a connect again.
    func trialEnded(_ error: SocketError?) {
        if let error {
            if let handshakeFault { host.note(.handshakeFailed(handshakeFault)) }
            host.note(.connectFailed)
            server.connectFailed(error, begunAt: begunAt, on: loop)
        } else {
            server.health.connected(now: loop.now)
        }
        close()
    }

    // MARK: Events

    /// The connect ended; `nil` for success.
    override public func connectEnded(_ error: SocketError?) {
        if error == nil, isSecure { return goOn() }
        ended(error)
    }

    /// Continues the handshake.
    private func goOn() {
        switch beginHandshake() {
        case .ended: ended(nil)
        case .waiting: break
        case .failed: ended(.handshakeFailed)
        }
    }

    /// Begins or continues the handshake.
    func beginHandshake() -> Handshake {
        making = .shaking(.late)
        let handshake = shakeHands()
        switch handshake {
        case .ended: making = .ended
        case .waiting: break
        case .failed(let failure): making = .shaking(failure)
        }
        return handshake
    }

    private func ended(_ error: SocketError?) {
        if error == nil { making = .ended }
        switch use {
        case .dial(let dial):
            if let error { dial.failed(self, error) } else { dial.connected(self) }
        case .trial: trialEnded(error)
        case .busy, .idle, .tunnel: break
        }
    }

    /// There may be something to read.
    override public func inputReady() {
        switch use {
        case .dial, .trial: if handshakeFault != nil { goOn() }
        case .busy(let owner): owner.originReadable(self)
        case .idle: if !isFit { leavePool() }
        case .tunnel(let owner): owner.readable(self)
        }
    }

    /// All bytes that waited were sent.
    override public func outputDrained() {
        switch use {
        case .dial, .trial, .idle: break
        case .busy(let owner): owner.originDrained(self)
        case .tunnel(let owner): owner.drained(self)
        }
    }

    /// The bytes that waited can't be sent.
    override public func outputFailed() {
        switch use {
        case .dial, .trial:
            making = .shaking(.ended)
            ended(.handshakeFailed)
        case .idle: close()
        case .busy(let owner): owner.originWriteFailed(self)
        case .tunnel(let owner): owner.failed(self)
        }
    }

    /// The awaited input or output did not come in time.
    override public func deadlinePassed() {
        switch use {
        case .dial(let dial): dial.deadlinePassed(self)
        case .trial: trialEnded(.connectTimedOut)
        case .busy(let owner):
            if progress == .head {
                server.health.wasSilent(since: begunAt, now: loop.now)
                server.failed(.timeout, on: loop)
            }
            owner.originTimedOut(self)
        case .idle: leavePool()
        case .tunnel(let owner): owner.failed(self)
        }
    }

    /// RFC 9112 §9.2: bytes without a request are no response. An end of the connection is an end.
    private func leavePool() {
        server.forget(self)
        closeInOrder()
    }
}
