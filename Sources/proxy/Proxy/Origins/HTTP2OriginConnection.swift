import EventLoops
import HTTPWire
import Telemetry

/// A connection to a server that speaks HTTP/2. It carries many requests at once.
///
/// It is made when the server's SETTINGS have come. Until then nothing of a request is sent, so
/// another server can be tried whatever the request is. It reads whenever there is something: what
/// a stream keeps is bounded by its window, which opens when its client takes content.
final class HTTP2OriginConnection: OriginConnection {
    enum Phase {
        /// Connects, and waits for SETTINGS. Leaves to `serving`, closed.
        case making
        /// Leaves to `retired`, `lost`, closed.
        case serving
        /// Takes no more requests, and ends with the last. Leaves to `lost`, closed.
        case retired
        /// Broken. Streams still deliver what came. Leaves to closed.
        case lost
    }

    /// What the connection's own deadline waits for; streams have their own deadlines.
    private enum Awaited {
        case nothing
        /// The connect, the handshake, and SETTINGS.
        case greeting
        /// The answer to a ping, after a request that the server let wait too long.
        case pong
        /// A request.
        case request
    }

    let session: HTTP2ClientSession
    private unowned let shared: SharedConnections
    @exclusivity(unchecked) private(set) var phase = Phase.making
    /// The failure of TLS after the handshake; `nil` while there is none.
    private(set) var tlsFault: TLSFailure?
    /// Those of its requests. A stream may outlive its channel, while its client takes the rest.
    @exclusivity(unchecked) private var streams: [HTTP2OriginStream] = []
    /// Requests that it has carried.
    @exclusivity(unchecked) private(set) var served: UInt64 = 0
    /// Milliseconds for which it is kept without a request.
    @exclusivity(unchecked) private var idleTime = idleMilliseconds
    @exclusivity(unchecked) private var deadline = HTTP2Deadline(Awaited.nothing)
    /// Bytes can't be sent; the next turn ends the connection.
    @exclusivity(unchecked) private var isBroken = false
    /// A turn was asked for, and what it is for is still to be done.
    @exclusivity(unchecked) private var isDue = false
    /// It serves its news.
    @exclusivity(unchecked) private var isServing = false
    /// The most content of a request that waits for the connection's turn.
    private static let gatheredMax = 16 << 10
    /// The most reads of what came before the connection broke. With the smallest reads these are
    /// as many bytes as its window lets a server send.
    private static let lastReadsMax = 128
    /// Milliseconds in which a server has to answer a ping.
    private static let pongMilliseconds: UInt64 = 5_000
    /// Milliseconds for which a connection is kept on which no request has ended in order.
    private static let idleMilliseconds: UInt64 = 5_000

    init(
        _ session: HTTP2ClientSession,
        over socket: OriginSocket,
        for shared: SharedConnections,
        host: any OriginHost,
        on loop: EventLoop
    ) {
        self.session = session
        self.shared = shared
        super.init(socket, host: host, on: loop)
    }

    /// Begins to connect.
    ///
    /// - timeout: milliseconds until the server's SETTINGS.
    func begin(_ timeout: UInt64, isConnecting: Bool) throws(SocketError) {
        try start(isConnecting: isConnecting)
        allow(.greeting, milliseconds: timeout)
        // A Unix socket is connected at once.
        if isMade { made(nil) }
    }

    /// Whether another request may begin.
    var hasRoom: Bool {
        guard case .serving = phase, !isBroken, !session.awaitsPong else { return false }
        return session.mayContinue && streamCount < session.streamsMax
    }

    /// Whether no byte of a request went out. Those that were handed over may wait here, or may
    /// have found the connection broken.
    func hasSentNothing(of channel: HTTP2ClientChannel) -> Bool {
        session.hasSentNothing(of: channel, isUnsent: sentNothing)
    }

    /// Whether bytes can be sent.
    var isUsable: Bool {
        switch phase {
        case .making, .lost: false
        case .serving, .retired: !isBroken && !isClosed
        }
    }

    private var isLost: Bool { if case .lost = phase { true } else { false } }

    // MARK: Making

    override func made(_ error: SocketError?) {
        if let error { return failed(error) }
        guard !isSecure || hasAgreedHTTP2 else { return failed(.noHTTP2) }
        send()
        if isReadable { loop.resume(self) }
    }

    private func failed(_ error: SocketError) {
        // A server that ends the handshake since it knows no `h2`.
        let hasNoProtocol = handshakeFault?.reason == .noSharedProtocol
        let (error, fault) = hasNoProtocol ? (.noHTTP2, nil) : (error, handshakeFault ?? tlsFault)
        noteFailure(error)
        close()
        shared.failed(error, fault)
    }

    // MARK: Streams

    var streamCount: Int { streams.count }

    /// A request gets a stream.
    func joined(_ stream: HTTP2OriginStream) {
        stream.place = streams.count
        streams.append(stream)
        served &+= 1
        host.count(.originHTTP2Streams)
        if case .request = deadline.awaited { deadline.expect(.nothing) }
    }

    /// A request has left its stream.
    ///
    /// - idleTime: milliseconds for which the connection may be kept without a request.
    func left(_ stream: HTTP2OriginStream, idleTime: UInt64?) {
        // The last one gets its place.
        let last = streams.removeLast()
        if last !== stream {
            streams[stream.place] = last
            last.place = stream.place
        }
        if let idleTime { self.idleTime = idleTime }
        schedule()
        shared.serveLine()
    }

    /// A request has waited in vain. The server may be gone without a word, so it has to answer a
    /// ping before the connection gets another request.
    func suspect() {
        guard isUsable, !session.awaitsPong else { return }
        session.ping()
        allow(.pong, milliseconds: Self.pongMilliseconds)
        schedule()
    }

    /// Takes no more requests.
    func retire() {
        guard case .serving = phase else { return }
        phase = .retired
        shared.ended(self)
        schedule()
    }

    /// Asks for a turn after the ready sockets.
    func schedule() {
        isDue = true
        // What is asked for while it serves its news is done after that.
        if !isServing { loop.resume(self) }
    }

    // MARK: Events

    override func inputReady() {
        switch phase {
        case .making:
            guard !continueHandshake(), isMade else { return }
            takeInput()
        case .serving, .retired:
            // Otherwise its turn came before, with an event.
            guard isReadable || isDue || isBroken || session.hasNews else { return }
            takeInput()
        case .lost: break
        }
        goOn()
    }

    override func outputDrained() { goOn() }

    /// The server may have answered before it closed.
    override func outputFailed() {
        if case .making = phase, !isMade { return handshakeBroke() }
        isBroken = true
        inputReady()
    }

    override func brokeWhileUnread() { goOn() }

    /// Reads what is there. What it means is news afterwards.
    ///
    /// Where bytes can't be sent, the streams end next. So all is read that came before: the server
    /// may have answered, and an answer may be longer than one read.
    func takeInput() {
        // A failed write shows an end before epoll does.
        if isBroken { expectInput() }
        for _ in 0..<(isBroken ? Self.lastReadsMax : 1) {
            guard isReadable, !isClosed, readOnce() else { return }
        }
    }

    /// Reads once; `false` where nothing follows.
    private func readOnce() -> Bool {
        switch read() {
        case .bytes(let bytes):
            do throws(HTTP2ClientSession.Fault) {
                try session.receive(bytes.span, now: loop.now)
                return true
            } catch {
                exceeded(error)
            }
        case .wouldBlock: break
        case .ended: isBroken = true
        case .failed(let error):
            // With TLS 1.3 a server refuses a client certificate after the handshake (RFC 8446
            // §4.4.2.4), by an alert that is read here.
            if case .tls(let failure) = error { tlsFault = failure }
            isBroken = true
        }
        return false
    }

    /// The session can't go on.
    private func exceeded(_ fault: HTTP2ClientSession.Fault) {
        if case .excess(let excess) = fault {
            server.failed(.exceeded(excess), on: loop)
            session.terminate(.enhanceYourCalm)
            send()
        }
        isBroken = true
    }

    /// Decides how to continue after any event.
    private func goOn() {
        guard !isClosed else { return }
        let wasBroken = isBroken
        if !isBroken { send() }
        if case .making = phase { return greet() }
        // The server may have answered before the write failed.
        if isBroken, !wasBroken, !isLost { takeInput() }
        if isBroken || session.isOver || session.standing == .violated { lose() }
        if session.standing == .leaving { retire() }
        isDue = false
        isServing = true
        serveNews()
        isServing = false
        guard !isClosed else { return }
        // The rest does what was asked for meanwhile, but for the end of the connection.
        let mayEnd = isDue && (isBroken || session.standing != .open)
        isDue = false
        // What is lost is not read, whatever the socket still has.
        if session.hasNews || isReadable && isUsable || mayEnd { schedule() }
        // Windows may have opened, and streams may have ended.
        send()
        let counts = session.takeCounts()
        host.count(.originHTTP2ResetsReceived, UInt64(counts.resetsReceived))
        host.count(.originHTTP2ResetsSent, UInt64(counts.resetsSent))
        host.count(.originHTTP2GoAways, UInt64(counts.goAways))
        settle()
    }

    private func greet() {
        guard isMade else { return }
        switch session.standing {
        case .open:
            phase = .serving
            deadline.expect(.nothing)
            shared.made(self)
            schedule()
        // Otherwise another connection would be made at once, and ended as soon.
        case .leaving: failed(.goneAway)
        case .greeting, .violated:
            guard isBroken || session.isOver || session.standing == .violated else { return }
            failed(tlsFault == nil ? .noHTTP2 : .handshakeFailed)
        }
    }

    /// The connection is broken, which is news for its requests.
    private func lose() {
        if isLost { return }
        let wasOpen = if case .serving = phase { true } else { false }
        phase = .lost
        session.abandon(isUnsent: sentNothing)
        if wasOpen { shared.ended(self) }
    }

    /// Serves the noted events, each once.
    private func serveNews() {
        for _ in 0..<session.newsCount { session.nextNews()?.owner?.channelChanged() }
    }

    /// Ends a connection that nothing needs, or gives it time for a next request.
    private func settle() {
        if case .pong = deadline.awaited, !session.awaitsPong {
            deadline.expect(.nothing)
            shared.serveLine()
        }
        guard streamCount == 0 else { return }
        switch phase {
        case .making: break
        case .serving:
            if case .request = deadline.awaited { return }
            if case .pong = deadline.awaited { return }
            if idleTime == 0 { return retire() }
            allow(.request, milliseconds: idleTime)
        case .retired: end()
        case .lost: close()
        }
    }

    private func end() {
        session.terminate(.noError)
        send()
        closeInOrder()
    }

    /// Whether a request's bytes can wait for the connection's turn, and asks for that turn. What
    /// many requests bring meanwhile goes out in one write: each write wakes the server. Large
    /// content is sent at once, so that its source stops when the server takes no more. So is a
    /// whole request while the server has no other: it would have nothing to do meanwhile.
    func gathers(_ channel: HTTP2ClientChannel) -> Bool {
        guard !isAwaited(channel), unsentBytes == 0, channel.outgoingCount <= Self.gatheredMax,
            session.isOpen(for: channel)
        else { return false }
        schedule()
        return true
    }

    /// Whether a request is whole, and the only one. What has come from the server is read before
    /// it is sent: it may say that it takes no more requests.
    private func isAwaited(_ channel: HTTP2ClientChannel) -> Bool {
        streamCount == 1 && channel.isOutputComplete && !isReadable
    }

    /// Hands the session's bytes to the socket.
    func send() {
        guard !isBroken, unsentBytes == 0, session.mayHaveOutput else { return }
        do throws(HTTP2ClientSession.Fault) {
            let outcome = try write { out, max throws(HTTP2ClientSession.Fault) in
                try session.send(into: &out, atMost: max, now: loop.now)
                if !out.isEmpty { messageBegins() }
            }
            if case .failed = outcome { broke() }
        } catch {
            broke()
        }
    }

    /// The streams learn of it in the next turn: one of them may be at work.
    private func broke() {
        isBroken = true
        schedule()
    }

    // MARK: Deadlines

    private func allow(_ what: Awaited, milliseconds: UInt64) {
        deadline.allow(what, milliseconds: milliseconds, on: self)
    }

    /// Makes ``deadlinePassed()`` run at this time at the latest.
    func arm(_ at: UInt64) { deadline.arm(at, on: self) }

    /// What the connection or a request awaits may not have come in time.
    override func deadlinePassed() {
        let now = loop.now
        if deadline.passed(now: now) { ownDeadlinePassed() }
        for stream in streams where !isClosed {
            guard let deadline = stream.deadline else { continue }
            if deadline <= now { stream.deadlinePassed() }
            if let deadline = stream.deadline { arm(deadline) }
        }
        shared.lineDeadlinesPassed(now)
        guard !isClosed else { return }
        if let own = deadline.own { arm(own) }
        goOn()
    }

    private func ownDeadlinePassed() {
        let what = deadline.awaited
        deadline.awaited = .nothing
        switch what {
        case .nothing: break
        case .greeting: failed(.connectTimedOut)
        case .pong: isBroken = true
        case .request: retire()
        }
    }
}
