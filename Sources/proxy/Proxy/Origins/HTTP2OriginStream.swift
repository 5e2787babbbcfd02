import EventLoops
import HTTPWire

/// A request on an HTTP/2 connection to a server, and its response.
final class HTTP2OriginStream {
    /// The progress of the stream.
    private enum State {
        /// It waits for a connection with a free stream. Leaves to `granted`, `over`.
        case waiting(any StreamSeeker, as: WaitingLine.Waiter)
        /// It has a place on a connection, and its dial has not ended. Leaves to `joined`, `over`.
        case granted(HTTP2OriginConnection, any StreamSeeker)
        /// The request begins. Leaves to `busy`, `over`.
        case joined(HTTP2OriginConnection)
        /// It has a request. Leaves to `over`.
        case busy(HTTP2OriginConnection, HTTP2ClientChannel)
        case over
    }

    let server: OriginServer
    private let shared: SharedConnections
    private let loop: EventLoop
    /// Its place among the streams of its connection, which sets it.
    @exclusivity(unchecked) var place = 0
    private var state: State
    private var owner: (any OriginStreamOwner)?
    /// When the wait, or the request, began: milliseconds of ``EventLoop/now``.
    @exclusivity(unchecked) private(set) var begunAt: UInt64
    private(set) var handshakeFault: TLSFailure?
    @exclusivity(unchecked) private(set) var isReused = false
    @exclusivity(unchecked) private var load = OriginLoad()
    /// Whether it has a place at a server whose requests are limited.
    private var holdsPlace: Bool
    /// Milliseconds of ``EventLoop/now``; `nil` for none.
    @exclusivity(unchecked) private(set) var deadline: UInt64?
    @exclusivity(unchecked) var inputMax = EventLoop.inputBytes

    // The request.
    @exclusivity(unchecked) var givenAt: UInt64 = 0
    @exclusivity(unchecked) private var method = Method.other
    @exclusivity(unchecked) private var framing = BodyFraming.none
    @exclusivity(unchecked) private var limits = ResponseLimits.none
    @exclusivity(unchecked) private var contentCount: UInt64 = 0
    /// The connection may serve no other client after the request, however that ends.
    private var authenticates = false
    /// The server may leave the content unread.
    private var isIsolated = false

    // Its response.
    @exclusivity(unchecked) private var progress = ResponseProgress.head
    @exclusivity(unchecked) private var interimCount = 0
    @exclusivity(unchecked) private(set) var trailers: TrailerSection?

    private init(
        _ state: State,
        at server: OriginServer,
        _ shared: SharedConnections,
        on loop: EventLoop
    ) {
        self.server = server
        self.shared = shared
        self.loop = loop
        self.state = state
        begunAt = loop.now
        holdsPlace = server.isLimited
        load.reserve(at: server)
    }

    /// A stream that waits for a connection.
    convenience init(
        at server: OriginServer,
        for dial: any StreamSeeker,
        as waiter: WaitingLine.Waiter,
        _ shared: SharedConnections,
        on loop: EventLoop
    ) {
        self.init(.waiting(dial, as: waiter), at: server, shared, on: loop)
    }

    /// A stream of a connection that has room.
    convenience init(
        _ server: OriginServer,
        of connection: HTTP2OriginConnection,
        _ shared: SharedConnections,
        on loop: EventLoop
    ) {
        self.init(.joined(connection), at: server, shared, on: loop)
        takePlace(on: connection)
    }

    var servedBy: any OriginPeer { server }

    var waited: UInt64 {
        get { load.waited }
        set { load.waited = newValue }
    }

    private var connection: HTTP2OriginConnection? {
        switch state {
        case .granted(let connection, _), .joined(let connection), .busy(let connection, _):
            connection
        case .waiting, .over: nil
        }
    }

    private var channel: HTTP2ClientChannel? {
        if case .busy(_, let channel) = state { channel } else { nil }
    }

    // MARK: Waiting

    /// Takes a place on a connection.
    func join(_ connection: HTTP2OriginConnection) {
        guard case .waiting(let dial, _) = state else {
            preconditionFailure("HTTP2OriginStream: a second connection")
        }
        deadline = nil
        takePlace(on: connection)
        state = .granted(connection, dial)
    }

    private func takePlace(on connection: HTTP2OriginConnection) {
        isReused = connection.served > 0
        connection.joined(self)
    }

    /// The wait is over.
    func joined() {
        guard case .granted(_, let dial) = state else { return }
        dial.connected(self)
    }

    /// The wait was in vain.
    ///
    /// - fault: of the handshake, where that has failed.
    func failed(_ error: SocketError, _ fault: TLSFailure?) {
        guard case .waiting(let dial, _) = state else { return }
        handshakeFault = fault
        dial.failed(self, error)
    }

    /// The awaited connection, or bytes of the server, did not come in time.
    func deadlinePassed() {
        deadline = nil
        switch state {
        case .waiting(let dial, _): dial.deadlinePassed(self)
        case .granted, .joined, .over: break
        case .busy(let connection, _):
            if progress == .head {
                server.wasSilent(begunAt: begunAt, givenAt: givenAt, on: loop)
            }
            // Otherwise the client is late, and not the server.
            if !hasNews { connection.suspect() }
            owner?.originTimedOut(self)
        }
    }

    /// Leaves the connection, or the line.
    ///
    /// - idleTime: milliseconds for which the connection may be kept without a request.
    private func leave(idleTime: UInt64? = nil) {
        let left = state
        state = .over
        (owner, deadline) = (nil, nil)
        switch left {
        case .over: return
        case .waiting(_, let waiter): shared.left(waiter)
        case .granted(let connection, _), .joined(let connection):
            connection.left(self, idleTime: idleTime)
        case .busy(let connection, let channel):
            // Without END_STREAM the server can't take the request for whole.
            connection.session.reset(channel, .cancel)
            if authenticates { connection.retire() }
            connection.left(self, idleTime: idleTime)
        }
        load.end(at: server)
        guard holdsPlace else { return }
        holdsPlace = false
        server.freed(on: loop)
    }
}

extension HTTP2OriginStream: DialedStream {
    var isConnected: Bool { if case .waiting = state { false } else { true } }

    var lateness: SocketError { shared.isMaking ? .connectTimedOut : .noStream }

    func take(for owner: any OriginStreamOwner, flow: Int) {
        if case .granted(let connection, _) = state { state = .joined(connection) }
        self.owner = owner
    }

    /// The connection counts it, for all that wait.
    func noteFailure(_ error: SocketError) {}

    func becomeTrial() { leave() }
}

extension HTTP2OriginStream: HTTP2ChannelOwner {
    func channelChanged() {
        guard let channel, let owner else { return }
        if channel.takeDrained() { owner.originDrained(self) }
        if hasNews { self.owner?.originReadable(self) }
    }

    /// Whether ``receive(for:)`` would bring something.
    private var hasNews: Bool {
        guard let channel else { return false }
        switch progress {
        case .head: return channel.hasHead || channel.end != nil
        case .content: return channel.inboxCount > 0 || channel.isInputEnded || channel.end != nil
        case .complete, .broken: return false
        }
    }
}

// The request.
extension HTTP2OriginStream: OriginStream {
    var tlsFault: TLSFailure? { connection?.tlsFault }

    var mayRefuse: Bool { true }

    /// A stream has no other protocol (RFC 9113 §8.6), so a request for one has no effect: a server
    /// may ignore Upgrade (RFC 9110 §7.8).
    func begin(_ facts: RequestFacts, framing: BodyFraming, limits: ResponseLimits) {
        begunAt = loop.now
        givenAt = begunAt
        load.requestBegan()
        deadline = nil
        method = facts.method
        authenticates = facts.asks(.authentication)
        isIsolated = facts.asks(.isolation)
        self.framing = framing
        self.limits = limits
    }

    /// The end of a request is said by END_STREAM and by nothing else, so it does not matter how
    /// the connection ends.
    func sendHead(
        _ head: Span<UInt8>,
        _ content: Span<UInt8>,
        isWhole: Bool
    ) -> Connection.WriteOutcome {
        guard case .joined(let connection) = state, connection.isUsable else {
            return .failed(.closed)
        }
        let channel = connection.session.begin(
            head,
            isHead: method == .head,
            hasContent: framing != .none && framing != .length(0)
        )
        guard let channel else {
            // GOAWAY has come, or all numbers of streams are used.
            connection.retire()
            return .failed(.closed)
        }
        channel.owner = self
        state = .busy(connection, channel)
        added(channel.outgoingCount)
        append(content)
        return flush()
    }

    /// Content with a known length is complete with its last byte, as in HTTP/1.1.
    func append(_ content: Span<UInt8>) {
        guard case .busy(let connection, let channel) = state, !content.isEmpty else { return }
        connection.session.append(content, to: channel)
        added(content.count)
    }

    /// This number of bytes of content was given to the session.
    private func added(_ count: Int) {
        guard case .busy(let connection, let channel) = state, count > 0 else { return }
        contentCount &+= UInt64(count)
        guard case .length(let length) = framing else { return }
        precondition(contentCount <= length, "HTTP2OriginStream: content beyond its length")
        if contentCount == length { connection.session.complete(channel) }
    }

    func endContent() {
        guard case .busy(let connection, let channel) = state else { return }
        if case .length(let length) = framing, contentCount < length { return }
        connection.session.complete(channel)
    }

    func flush() -> Connection.WriteOutcome {
        guard case .busy(let connection, let channel) = state else { return .failed(.closed) }
        // A server may answer, and reset the stream, before it has read all (RFC 9113 §8.1).
        guard channel.end == nil, connection.isUsable else { return .failed(.closed) }
        if connection.gathers(channel) { return .sent }
        connection.send()
        guard connection.isUsable else { return .failed(.closed) }
        // Other streams' bytes may have gone, too.
        if connection.session.hasNews { connection.schedule() }
        guard !channel.isClear else { return .sent }
        channel.isStalled = true
        return .queued
    }

    func requestTaken() {}

    var unsentBytes: Int { channel?.outgoingCount ?? 0 }

    var sentNothing: Bool {
        guard case .busy(let connection, let channel) = state else { return true }
        return channel.end == .refused || connection.hasSentNothing(of: channel)
    }
}

// The response.
extension HTTP2OriginStream {
    var hasReceivedNothing: Bool {
        progress == .head && interimCount == 0 && channel?.hasHead != true
    }

    func resumeReading() {
        guard case .busy(let connection, let channel) = state, hasNews else { return }
        connection.session.remind(channel)
        connection.schedule()
    }

    /// What is read may be other streams' news, which the connection's turn tells them: the event
    /// that has announced it finds nothing more to read.
    func expectInput() {
        guard let connection else { return }
        connection.takeInput()
        connection.schedule()
    }

    func setDeadline(milliseconds: UInt64?) {
        deadline = milliseconds.map { loop.now &+ $0 }
        guard let deadline else { return }
        if let connection { connection.arm(deadline) } else { shared.watchLine() }
    }

    func receive(for owner: any OriginStreamOwner) -> OriginRead {
        guard case .busy(let connection, let channel) = state else { return .broke }
        let found = take(channel, connection, for: owner)
        switch found {
        case .some, .none, .complete, .stopped, .refused: break
        case .broke:
            // It is no failure of the server if an idle connection ends at the moment it is taken.
            // Other codes can be its client's doing: CANCEL after a deadline, PROTOCOL_ERROR for a
            // field that the server does not take.
            let hasFailed = channel.end == .reset(HTTP2Code.internalError.rawValue)
            guard !isReused || !hasReceivedNothing || hasFailed else { break }
            server.failed(.closed, on: loop)
        case .malformed, .tooManyInterim, .violated: server.failed(.malformed, on: loop)
        }
        return found
    }

    private func take(
        _ channel: HTTP2ClientChannel,
        _ connection: HTTP2OriginConnection,
        for owner: any OriginStreamOwner
    ) -> OriginRead {
        switch progress {
        case .head: return takeHeads(of: channel, connection, owner) ?? ended(channel)
        case .content: return takeContent(of: channel, connection, owner)
        case .complete, .broken: return .broke
        }
    }

    /// Takes the heads that have come; `nil` where there is none.
    private func takeHeads(
        of channel: HTTP2ClientChannel,
        _ connection: HTTP2OriginConnection,
        _ owner: any OriginStreamOwner
    ) -> OriginRead? {
        var found: OriginRead?
        let heads = shared.heads
        while let built = channel.takeHead() {
            if let fault = built.fault { return malformed(fault) }
            let head = built.bytes
            do throws(Malformed) {
                try heads.response.read(
                    head.span,
                    to: method,
                    upgradeSent: false,
                    limits: limits.head
                )
            } catch {
                return malformed(error.reason)
            }
            found = .some
            guard heads.response.isInterim else {
                progress = .content
                server.responded(status: heads.response.status, on: loop)
                let goesOn = owner.originResponded(heads.response, head.span, rest: Span())
                return goesOn ? takeFirstContent(of: channel, connection, owner) : .stopped
            }
            interimCount += 1
            guard interimCount <= limits.interimMax else { return .tooManyInterim }
            guard owner.originInterim(heads.response, head.span) else { return .stopped }
        }
        return found
    }

    private func malformed(_ reason: Malformed.Reason) -> OriginRead {
        progress = .broken
        return .malformed(reason)
    }

    /// Takes the content that came with the head: most responses come whole, and go on in one turn.
    private func takeFirstContent(
        of channel: HTTP2ClientChannel,
        _ connection: HTTP2OriginConnection,
        _ owner: any OriginStreamOwner
    ) -> OriginRead {
        guard channel.inboxCount > 0 else { return contentEnd(of: channel) ?? .some }
        return takeContent(of: channel, connection, owner)
    }

    private func takeContent(
        of channel: HTTP2ClientChannel,
        _ connection: HTTP2OriginConnection,
        _ owner: any OriginStreamOwner
    ) -> OriginRead {
        let bytes = connection.session.takeContent(of: channel, atMost: inputMax)
        if !bytes.isEmpty {
            // The window has opened.
            connection.schedule()
            owner.originContent(bytes.span)
        }
        if let end = contentEnd(of: channel) { return end }
        return bytes.isEmpty ? ended(channel) : .some
    }

    /// What the end of the content brings, if all of it was taken.
    private func contentEnd(of channel: HTTP2ClientChannel) -> OriginRead? {
        guard channel.isInputEnded, channel.inboxCount == 0 else { return nil }
        if let section = channel.trailers {
            if let fault = section.fault { return malformed(fault) }
            do throws(Malformed) {
                trailers = try TrailerSection(whole: section.bytes, limits: limits.head)
            } catch {
                return malformed(error.reason)
            }
        }
        progress = .complete
        return .complete
    }

    /// Nothing is here.
    private func ended(_ channel: HTTP2ClientChannel) -> OriginRead {
        guard let end = channel.end else { return .none }
        // An incomplete response must not look like a whole one.
        if progress != .head { progress = .broken }
        return switch end {
        case .refused: .refused
        case .invalid: .violated
        case .inOrder, .reset, .lost: .broke
        }
    }
}

// The end.
extension HTTP2OriginStream {
    /// A connection that may serve no other client, since this one has authenticated it, or as the
    /// gateway ends, takes no further request. Content that the server leaves unread is no reason:
    /// it is on this stream, and can't be taken for another request.
    func release(isReusable: Bool, idleTime: UInt64, idleMax: Int) {
        if progress == .complete, !isReusable, !isIsolated { connection?.retire() }
        leave(idleTime: idleMax > 0 ? idleTime : 0)
    }

    func becomeTunnel(of owner: any ByteStreamOwner) -> any ByteStream {
        preconditionFailure("HTTP2OriginStream: 101 is malformed in HTTP/2")
    }

    func reset() { leave() }

    func close() { leave() }
}
