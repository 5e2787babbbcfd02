import EventLoops
import HTTPWire
import Telemetry
import Verification

/// A client's HTTP/2 connection: serves many requests at once.
///
/// It reads once, and has the session note what that means; then it serves what was noted, one
/// request a turn, as pipelined requests of HTTP/1.1 have a turn each. It reads again when all is
/// served. What is to be sent waits until the other sockets that are ready have been served, and
/// goes out in one write. Only a response that the client waits for alone, or the first of few, is
/// sent when it is complete.
final class HTTP2Connection: Connection, ClientConnection {
    enum Phase {
        /// Leaves to `lingering`, closed.
        case serving
        /// The last frame was sent; further input is read and discarded. Leaves to closed.
        case lingering(Lingering)
    }

    /// What the connection's own deadline waits for; streams have their own deadlines.
    enum Awaited {
        case nothing
        /// The first request after the accept.
        case firstRequest
        case restOfHead
        case request
        /// The client, which has to take the bytes that wait for the socket.
        case output
        /// The end of the pause of an address over its limit.
        case pause
        /// Requests that were sent before the client knew that the gateway ends.
        case lateRequests
        case end
    }

    /// Whether the connection is read.
    enum Input {
        /// Leaves to `paused`, `over`.
        case reading
        /// Its address is over a limit. Leaves to `reading`, `over`.
        case paused
        /// The client sends no more.
        case over
    }

    let host: ProxyLoop
    let session: HTTP2Session
    let client: ClientPeer
    @exclusivity(unchecked) var phase = Phase.serving
    @exclusivity(unchecked) var deadline = HTTP2Deadline(Awaited.firstRequest)
    var untakenAtDeadline: UInt32 = 0
    @exclusivity(unchecked) var input = Input.reading
    var isDrainAnnounced = false
    /// Streams that had output since the last write.
    @exclusivity(unchecked) private var unsettled: [HTTP2Stream] = []
    @exclusivity(unchecked) var places = RequestPlaces()
    @exclusivity(unchecked) private var waiting = WaitingOutput()
    /// A turn was asked for, and what it is for is still to be done.
    @exclusivity(unchecked) private var isDue = false
    /// It serves an event of its own, and sends after that.
    @exclusivity(unchecked) private var isServing = false
    /// The event loop's round in which a response was last sent without a turn.
    @exclusivity(unchecked) private var promptRound = UInt64.max
    /// The most bytes that are sent without a turn.
    private static let promptMax = 16 << 10
    /// The most requests under way with which a response is sent without a turn.
    private static let fewStreams = 8
    static let pauseMilliseconds: UInt64 = 1_000

    /// Goes on with the socket of a connection whose client turned out to speak HTTP/2.
    init(
        _ descriptor: Int32,
        tls: TLSSession?,
        after connection: HTTP1Connection,
        session: HTTP2Session
    ) {
        host = connection.host
        client = connection.client
        self.session = session
        super.init(
            descriptor: descriptor,
            peer: connection.peer,
            isConnecting: false,
            tls: tls,
            on: connection.loop
        )
    }

    /// Begins with the bytes that showed that the client speaks HTTP/2.
    func begin(_ bytes: Span<UInt8>) {
        host.tally.add(.http2Connections)
        allow(.firstRequest, milliseconds: host.settings.timeouts.handshake)
        if host.isDraining { drain() }
        feed(bytes)
        goOn()
    }

    /// Closes the connection and notifies the requests under way.
    override public func close() {
        guard !isClosed else { return }
        super.close()
        // The requests' resources are counted with the address, so the address is released after
        // them.
        defer { host.connectionClosed(self) }
        closeStreams()
        places.end()
        host.countUnsent(waiting.count(0))
    }

    /// The streams that are open.
    var streams: [HTTP2Stream] { session.openChannels.compactMap { $0.owner as? HTTP2Stream } }

    func closeStreams(_ end: ClientEnd? = nil) {
        for stream in streams {
            if let end { stream.end = end }
            stream.closed()
            // Both hold each other.
            stream.channel.owner = nil
        }
        while let channel = session.nextNews() {
            (channel.owner as? HTTP2Stream)?.closed()
            channel.owner = nil
        }
        unsettled = []
    }

    // MARK: Events

    /// There may be input to read, or input that was read is still to be served.
    override public func inputReady() {
        if case .lingering = phase { return drainInput() }
        if session.hasNews {
            serveNews()
        } else if isReadable {
            readInput()
        } else if !isDue {
            // Its turn came before, with an event.
            return
        }
        goOn()
    }

    /// All bytes that waited were sent.
    override public func outputDrained() {
        if case .lingering = phase { return finishLingering() }
        deadline.awaited = .nothing
        goOn()
    }

    /// The bytes that waited can't be sent.
    override public func outputFailed() { close() }

    /// The client has closed both directions, and this was not read yet.
    override public func brokeWhileUnread() {
        if case .lingering = phase { close() } else { inputFailed() }
    }

    /// What the connection or a stream awaits may not have come in time.
    override public func deadlinePassed() {
        let now = loop.now
        isServing = true
        if deadline.passed(now: now) { ownDeadlinePassed() }
        for stream in streams where !isClosed {
            if let at = stream.deadline, at <= now { stream.deadlinePassed() }
            if let at = stream.deadline { deadline.arm(at, on: self) }
        }
        isServing = false
        guard !isClosed else { return }
        if let own = deadline.own { deadline.arm(own, on: self) }
        goOn()
    }

    private func readInput() {
        guard mayRead else { return }
        switch read() {
        case .bytes(let bytes): feed(bytes.span)
        case .wouldBlock: break
        case .ended: inputEnded()
        case .failed(let error):
            if case .tls(let failure) = error, failure.reason != .truncated {
                host.clientTLSFailed(failure, client.address)
            }
            inputFailed()
        }
    }

    private var mayRead: Bool { input == .reading && unsentBytes == 0 }

    private func feed(_ bytes: Span<UInt8>) {
        do throws(HTTP2Session.Fault) {
            try session.receive(bytes, now: loop.now)
        } catch {
            return failed(error)
        }
        serveNews()
    }

    /// The session can't go on.
    private func failed(_ fault: HTTP2Session.Fault) {
        switch fault {
        case .badPreface, .library: close()
        case .excess(let excess):
            host.exceeded(excess, client.address)
            session.terminate(.enhanceYourCalm)
            end()
        }
    }

    /// Serves the noted events up to and including the first request.
    private func serveNews() {
        isServing = true
        defer { isServing = false }
        var hasBegun = false
        while !hasBegun, !isClosed, let channel = session.nextNews() {
            if let head = session.takeHead(of: channel) {
                guard !channel.isClosed else { continue }
                hasBegun = true
                begin(channel, head)
            } else {
                channel.owner?.channelChanged()
            }
        }
        if !session.hasNews { session.forgetHeads() }
    }

    private func begin(_ channel: HTTP2Channel, _ built: RequestHeadBuilder.Built) {
        places.settle(client, on: host)
        guard places.take(client, on: host) else { return session.refuse(channel) }
        noteCertificate()
        let bytes = session.heads
        let head = bytes.span.extracting(built.range)
        let heads = host.heads
        var fault = built.fault
        // RFC 9110 §7.4: a proxy that is trusted may have had TLS on its side.
        if channel.isHTTPS, !client.isSecure, !client.provenance.peerIsTrusted {
            fault = fault ?? .targetScheme
        }
        fault = fault ?? heads.fault(in: head, of: client, host.settings.limits)
        // In HTTP/1.1 such a head ends its connection; here only too many of them do.
        if fault != nil { session.clientErred() }
        let stream = HTTP2Stream(heads.request, channel, on: self, isMalformed: fault != nil)
        stream.isCounted = true
        channel.owner = stream
        let owner = host.owner(for: stream, head, fault: fault)
        stream.owner = owner
        owner.begin(head, fault: fault)
    }

    // MARK: Going on

    /// Asks for a turn after the ready sockets: then the output is sent.
    func schedule() {
        isDue = true
        // What its own event asks for is done at the end of that.
        if !isServing { loop.resume(self) }
    }

    /// A stream has something to send.
    func flushed(_ stream: HTTP2Stream) {
        unsettled.append(stream)
        schedule()
    }

    /// A request is over, with all of its response. With few requests under way the client waits
    /// for this one. So the first response of a round is sent now, and those that end in the same
    /// round after it go out together.
    func finished() {
        guard !isServing, promptRound != loop.round, session.openCount <= Self.fewStreams,
            session.unsentBytes <= Self.promptMax, !session.hasNews
        else { return schedule() }
        promptRound = loop.round
        goOn()
    }

    /// Sends, and decides how to continue.
    private func goOn() {
        guard case .serving = phase, !isClosed else { return }
        isDue = false
        // Waiting output is bounded in each turn, also while many heads that came at once are
        // served.
        if session.hasNews { bound() } else { send() }
        guard case .serving = phase, !isClosed else { return }
        let errors = session.takeErrorsCount()
        if errors > 0 { host.tally.add(.http2StreamErrors, UInt64(errors)) }
        if let excess = session.takeExcess() { return failed(.excess(excess)) }
        if session.isOver { return end() }
        let isDone = session.openCount == 0 && !session.hasNews
        if isDone, session.hasSaidGoAway { return end() }
        if input == .over, !session.hasNews, unsentBytes == 0, !hasRequests { return end() }
        if session.hasNews || mayRead && isReadable { loop.resume(self) }
        awaitNext(isIdle: isDone)
    }

    private func awaitNext(isIdle: Bool) {
        let settings = host.settings
        switch deadline.awaited {
        case .output, .pause, .end: return
        case .lateRequests where !session.hasSaidGoAway: return
        case .firstRequest where isIdle && !session.isMidHead: return
        case .restOfHead where session.isMidHead: return
        case .request where isIdle && !session.isMidHead: return
        case .nothing, .firstRequest, .restOfHead, .request, .lateRequests: break
        }
        if input == .paused {
            allow(.pause, milliseconds: Self.pauseMilliseconds)
        } else if isDrainAnnounced, !session.hasSaidGoAway {
            allow(.lateRequests, milliseconds: settings.timeouts.drainIdle)
        } else if session.isMidHead {
            allow(.restOfHead, milliseconds: settings.timeouts.head)
        } else if isIdle {
            allow(.request, milliseconds: settings.timeouts.idle)
        } else {
            deadline.expect(.nothing)
        }
    }

    func send() {
        defer { settle() }
        guard unsentBytes == 0, session.mayHaveOutput else { return }
        do throws(HTTP2Session.Fault) {
            let outcome = try write { out, max throws(HTTP2Session.Fault) in
                try session.send(into: &out, atMost: max, now: loop.now)
            }
            switch outcome {
            case .sent: break
            case .queued: watchOutput()
            case .failed: close()
            }
        } catch {
            failed(error)
        }
    }
}

// Output that waits for the client's windows.
extension HTTP2Connection {
    /// What may still be dropped.
    var waitingBytes: Int { waiting.mustDrop ? 0 : session.unsentBytes }

    func dropWaiting() {
        waiting.mustDrop = true
        schedule()
    }

    /// Tells the host how many bytes wait.
    func countUnsent() {
        guard !isClosed else { return }
        let change = waiting.count(session.unsentBytes)
        if change != 0 { host.countUnsent(change) }
    }

    /// Notes which responses wait for the client after a write, and bounds them.
    func settle() {
        // One by one: if two variables held the array, emptying it would allocate another one.
        while let stream = unsettled.popLast() { stream.sent() }
        bound()
    }

    /// Bounds the output that waits for the client.
    func bound() {
        guard !isClosed else { return }
        if waiting.mustDrop || session.unsentBytesExceed {
            let waiters = streams.filter(\.channel.isStalled)
            for stream in waiters.sorted(by: { $0.channel.outgoingCount > $1.channel.outgoingCount }
            )
            where waiting.mustDrop || session.unsentBytesExceed {
                stream.endStalled(.enhanceYourCalm)
            }
            waiting.mustDrop = false
        }
        countUnsent()
    }
}
