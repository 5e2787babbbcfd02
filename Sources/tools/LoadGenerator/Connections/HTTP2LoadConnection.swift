import EventLoops
import HTTPWire

/// A client's connection of HTTP/2 to the gateway, which carries several requests together.
///
/// Its exchanges are in the pool from the gateway's SETTINGS on, so the handshake counts in no
/// request's latency.
final class HTTP2LoadConnection: Connection {
    private enum State {
        /// Leaves to `shaking`, `greeting`, `closed`.
        case connecting
        /// The handshake of TLS has not ended. Leaves to `greeting`, `closed`.
        case shaking
        /// The gateway's SETTINGS have not come. Leaves to `serving`, `closed`.
        case greeting
        /// Leaves to `leaving`, `closed`.
        case serving
        /// Takes no more requests, and ends with the last. Leaves to `closed`.
        case leaving
        /// Has no exit.
        case closed
    }

    let session: HTTP2ClientSession
    let pool: ConnectionPool
    private let streamsMax: Int
    private var streams: [HTTP2LoadStream] = []
    private var state = State.connecting
    /// Bytes can't be sent or read any more.
    private var isBroken = false
    /// It serves its news, and sends afterwards.
    private var isServing = false
    /// The time of the deadline: that of the earliest request, or before it.
    private var armedAt: UInt64?
    /// Streams whose request the session has not taken; the next iteration reports them.
    private var notBegun: [HTTP2LoadStream] = []

    /// The most bytes of one write.
    private static let writeMax = 64 << 10
    /// The most reads of one event.
    private static let readsMax = 16

    init(
        _ session: HTTP2ClientSession,
        over opened: (descriptor: Int32, isConnecting: Bool),
        _ tls: TLSSession?,
        streams: Int,
        in pool: ConnectionPool
    ) {
        (self.session, self.pool, streamsMax) = (session, pool, streams)
        super.init(
            descriptor: opened.descriptor,
            peer: pool.server.address,
            isConnecting: opened.isConnecting,
            tls: tls,
            on: pool.loop
        )
    }

    // MARK: Events

    override func connectEnded(_ error: SocketError?) {
        if error != nil { failToConnect(.connectFailed) } else { shake() }
    }

    override func inputReady() {
        switch state {
        case .connecting, .shaking: shake()
        case .greeting, .serving, .leaving:
            takeInput()
            goOn()
        case .closed: break
        }
    }

    override func outputDrained() { flush() }

    override func outputFailed() {
        isBroken = true
        // The gateway may have answered before.
        expectInput()
        loop.resume(self)
    }

    override func deadlinePassed() {
        armedAt = nil
        switch state {
        case .connecting, .shaking, .greeting: failToConnect(.connectTimeout)
        case .serving, .leaving:
            for stream in streams {
                guard let deadline = stream.deadline else { continue }
                if deadline <= loop.now { stream.timeOut() } else { arm(deadline) }
            }
            goOn()
        case .closed: break
        }
    }

    private func shake() {
        switch shakeHands() {
        case .waiting: state = .shaking
        case .failed(let failure):
            // A server that knows no `h2` ends the handshake.
            let hasNone = failure.reason == .noSharedProtocol
            failToConnect(hasNone ? .noHTTP2 : .connectFailed)
        case .ended:
            guard !isSecure || hasAgreedHTTP2 else { return failToConnect(.noHTTP2) }
            state = .greeting
            flush()
            if isReadable { loop.resume(self) }
        }
    }

    private func failToConnect(_ failure: ExchangeFailure) {
        state = .closed
        close()
        pool.failedToConnect(failure)
    }

    private func takeInput() {
        for _ in 0..<Self.readsMax {
            switch read() {
            case .bytes(let bytes):
                do throws(HTTP2End.Fault) {
                    try session.receive(bytes.span, now: loop.now)
                } catch {
                    isBroken = true
                    return
                }
            case .wouldBlock: return
            case .ended, .failed:
                isBroken = true
                return
            }
        }
        loop.resume(self)
    }

    /// Decides how to continue after any event.
    private func goOn() {
        if session.isOver || session.standing == .violated { isBroken = true }
        if case .greeting = state { greet() }
        if isBroken { return lose() }
        if session.standing == .leaving { leave() }
        serveNews()
        reportUnsent()
        flush()
        if case .leaving = state, session.openCount == 0 { end() }
        if session.hasNews { loop.resume(self) }
    }

    private func greet() {
        guard session.standing == .open else {
            if isBroken { failToConnect(.noHTTP2) }
            return
        }
        state = .serving
        setDeadline(milliseconds: nil)
        let count = max(min(streamsMax, session.streamsMax), 1)
        streams = (0..<count).map { _ in HTTP2LoadStream(on: self) }
        pool.connected(streams.map(\.exchange))
    }

    /// Serves the noted events, each once.
    private func serveNews() {
        isServing = true
        for _ in 0..<session.newsCount { session.nextNews()?.owner?.channelChanged() }
        isServing = false
    }

    /// The gateway takes no more requests (RFC 9113 §6.8).
    private func leave() {
        guard case .serving = state else { return }
        state = .leaving
        for stream in streams { stream.exchange.isUsable = false }
        pool.retired()
    }

    /// The connection is broken, which is news for its requests.
    private func lose() {
        if case .closed = state { return }
        leave()
        session.abandon()
        serveNews()
        reportUnsent()
        end()
    }

    private func reportUnsent() {
        guard !notBegun.isEmpty else { return }
        let streams = notBegun
        notBegun = []
        for stream in streams { stream.reportUnsent() }
    }

    private func end() {
        state = .closed
        close()
    }

    // MARK: Sending

    /// Hands the session's bytes to the socket.
    private func flush() {
        guard !isBroken, !isClosed, unsentBytes == 0, session.mayHaveOutput else { return }
        var out = loop.takeOutput()
        defer { loop.giveBack(&out) }
        do throws(HTTP2End.Fault) {
            while unsentBytes == 0 {
                try session.send(into: &out, atMost: Self.writeMax, now: loop.now)
                guard !out.isEmpty else { return }
                let isAll = out.count < Self.writeMax
                let outcome = write(out.span)
                out.removeAll(keepingCapacity: true)
                if case .failed = outcome { return outputFailed() }
                if isAll { return }
            }
        } catch {
            outputFailed()
        }
    }

    /// There is something to send, which goes out in one write with what else comes in this
    /// iteration of the event loop.
    ///
    /// - deadline: when the answer has to be complete; milliseconds of ``EventLoop/now``.
    func began(deadline: UInt64) {
        arm(deadline)
        if !isServing { loop.resume(self) }
    }

    /// The session takes no more requests.
    func couldNotBegin(_ stream: HTTP2LoadStream) {
        notBegun.append(stream)
        loop.resume(self)
    }

    private func arm(_ at: UInt64) {
        if let armedAt, armedAt <= at { return }
        armedAt = at
        setDeadline(milliseconds: at - min(at, loop.now))
    }

    /// Ends it in order, whatever its streams do.
    func end(_ code: HTTP2Code) {
        guard !isClosed else { return }
        for stream in streams { stream.exchange.isUsable = false }
        session.terminate(code)
        flush()
        state = .closed
        closeInOrder()
    }
}
