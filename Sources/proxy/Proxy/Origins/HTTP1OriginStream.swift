import EventLoops
import HTTPWire

/// A connection to a server that speaks HTTP/1.1. It is the stream of one request after the other.
final class HTTP1OriginStream: OriginConnection, DialedStream {
    /// The purpose of the connection.
    enum Use {
        /// It connects for a request. Leaves to `busy`, `trial`, closed.
        case dial(any StreamSeeker)
        /// It connects to see whether the server answers. Leaves to closed.
        case trial
        /// Carries a request. Leaves to `idle`, `tunnel`, closed.
        case busy(any OriginStreamOwner)
        /// In the pool: any byte or end is a fault. Leaves to `busy`, closed.
        case idle
        /// Carries a tunnel. Leaves to closed.
        case tunnel(any ByteStreamOwner)
    }

    /// Its place at a server whose connections are limited.
    enum Place {
        /// It needs none, or has given it back.
        case none
        /// Leaves to `idle`, `none`.
        case held
        /// Held, and counted with the idle connections. Leaves to `held`.
        case idle
    }

    /// The bytes that the server gets before the first request.
    let preface: [UInt8]
    private var use: Use
    /// The failure of TLS after the handshake; `nil` while there is none.
    var tlsFault: TLSFailure?
    /// Whether a request before this one used it.
    private(set) var isReused = false
    @exclusivity(unchecked) private var load = OriginLoad()
    var place: Place

    // The request; see ``begin(_:framing:limits:)``.
    var method = Method.other
    var asksUpgrade = false
    var givenAt: UInt64 = 0
    var limits = ResponseLimits.none
    @exclusivity(unchecked) private var out = OutgoingContent()
    /// Whether `out` has the event loop's memory.
    private var isGathering = false
    /// The result of sending since the last ``flush()``.
    private var outcome = WriteOutcome.sent

    // Its response.
    var progress = ResponseProgress.head
    /// The beginning of a head.
    @exclusivity(unchecked) var inbox: [UInt8] = []
    @exclusivity(unchecked) var scanner = HeadScanner(.response)
    var interimCount = 0
    @exclusivity(unchecked) var body = BodyReader(.none, limits: HeadLimits())
    /// Whether the server keeps the connection.
    var isPersistent = false

    init(
        _ use: Use,
        over socket: OriginSocket,
        _ preface: [UInt8],
        host: any OriginHost,
        on loop: EventLoop
    ) {
        self.use = use
        self.preface = preface
        // Trials, like checks, don't count as connections for requests.
        place = if case .dial = use, socket.server.isLimited { .held } else { .none }
        super.init(socket, host: host, on: loop)
        if case .dial(let dial) = use {
            flow = dial.flow
            load.reserve(at: server)
        }
        begin(with: preface)
    }

    var waited: UInt64 {
        get { load.waited }
        set { load.waited = newValue }
    }

    var isConnected: Bool { isMade }

    var lateness: SocketError { .connectTimedOut }

    var mayRefuse: Bool { false }

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
        load.reserve(at: server)
    }

    /// The request that it was made for has gone elsewhere.
    func becomeTrial() {
        use = .trial
        flow = 0
        load.end(at: server)
    }

    func release(isReusable: Bool, idleTime: UInt64, idleMax: Int) {
        resetsOnClose = false
        guard isReusable, isPersistent, progress == .complete, isFit else { return closeInOrder() }
        use = .idle
        load.end(at: server)
        isReused = true
        flow = 0
        setDeadline(milliseconds: idleTime)
        server.keep(self, max: idleMax)
    }

    func becomeTunnel(of owner: any ByteStreamOwner) -> any ByteStream {
        use = .tunnel(owner)
        requestTaken()
        inputMax = EventLoop.inputBytes
        return self
    }

    /// Closes the connection; a request that it carries has ended.
    override public func close() {
        load.end(at: server)
        super.close()
        if case .none = place { return }
        place = .none
        server.freed(on: loop)
    }

    /// The result of a trial: whether the server answers a connect again.
    func trialEnded(_ error: SocketError?) {
        if let error {
            noteFailure(error)
        } else {
            server.health.connected(now: loop.now)
        }
        close()
    }

    // MARK: Events

    override func made(_ error: SocketError?) {
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
        case .dial, .trial: _ = continueHandshake()
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
        case .dial, .trial: handshakeBroke()
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
                server.wasSilent(begunAt: begunAt, givenAt: givenAt, on: loop)
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

// A request on its way to the server.
extension HTTP1OriginStream {
    func begin(_ facts: RequestFacts, framing: BodyFraming, limits: ResponseLimits) {
        begunAt = loop.now
        givenAt = begunAt
        load.requestBegan()
        method = facts.method
        asksUpgrade = facts.asks(.upgrade)
        self.limits = limits
        out.framing = framing
        progress = .head
        isPersistent = false
        inbox = []
        scanner = HeadScanner(.response)
        interimCount = 0
        outcome = .sent
        messageBegins()
        // The deadline of the connect, or of the time in the pool, does not apply to the request.
        setDeadline(milliseconds: nil)
    }

    /// From an incomplete request on, the connection ends with a reset, even if the process dies.
    func sendHead(_ head: Span<UInt8>, _ content: Span<UInt8>, isWhole: Bool) -> WriteOutcome {
        resetsOnClose = !isWhole
        return marked(write(head, content))
    }

    func requestTaken() { resetsOnClose = false }

    func append(_ content: Span<UInt8>) {
        gather()
        if !out.gather(content) { send(content) }
    }

    func endContent() {
        gather()
        out.end(nil)
    }

    func flush() -> WriteOutcome {
        guard isGathering else { return .sent }
        out.finish()
        if !out.bytes.isEmpty { send(Span()) }
        loop.giveBack(&out.bytes)
        isGathering = false
        defer { outcome = .sent }
        return outcome
    }

    /// Sends the gathered bytes, then a piece.
    private func send(_ piece: Span<UInt8>) {
        if case .failed = outcome { return }
        outcome = marked(write(out.bytes.span, piece))
        out.bytes.removeAll(keepingCapacity: true)
    }

    /// Bytes that wait here are lost if the process dies. So the connection ends with a reset from
    /// then on, even if the request was to be sent as a whole, until the server has taken it.
    private func marked(_ outcome: WriteOutcome) -> WriteOutcome {
        if case .queued = outcome { resetsOnClose = true }
        return outcome
    }

    /// Takes the event loop's memory for gathering.
    private func gather() {
        guard !isGathering else { return }
        isGathering = true
        out.bytes = loop.takeOutput()
    }
}
