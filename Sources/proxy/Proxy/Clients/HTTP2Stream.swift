import EventLoops
import HTTPWire
import Telemetry
import Verification

/// One request on an HTTP/2 connection, and its response.
final class HTTP2Stream {
    let connection: HTTP2Connection
    let channel: HTTP2Channel
    /// The request; `nil` when it is over.
    var owner: (any ClientStreamOwner)?
    /// The reason that the owner gets when the stream is closed.
    @exclusivity(unchecked) var end = ClientEnd.aborted

    /// Whether the stream carries WebSocket.
    enum Tunnelling {
        /// Leaves to `active`.
        case none
        /// Leaves to `over`.
        case active(any ByteStreamOwner)
        case over
    }

    var tunnelling = Tunnelling.none

    // The request.
    let contentFraming: BodyFraming
    let isHead: Bool
    @exclusivity(unchecked) private(set) var contentCount: UInt64 = 0
    @exclusivity(unchecked) var awaitsContinue: Bool
    /// The response's head could not be handed over, for lack of memory.
    @exclusivity(unchecked) var isUnsendable = false
    /// The stream counts among the connection's requests under way.
    @exclusivity(unchecked) var isCounted = false
    /// The response was sent before the request had ended.
    @exclusivity(unchecked) private var lingering: Lingering?
    /// The deadline for the client, in milliseconds of the event loop's clock.
    @exclusivity(unchecked) private(set) var deadline: UInt64?
    /// The count of bytes that had come or were taken when the deadline was set.
    @exclusivity(unchecked) private var countAtDeadline: UInt64 = 0

    init(
        _ head: borrowing RequestHead,
        _ channel: HTTP2Channel,
        on connection: HTTP2Connection,
        isMalformed: Bool
    ) {
        self.connection = connection
        self.channel = channel
        contentFraming = isMalformed ? .none : head.framing
        isHead = !isMalformed && head.method == .head
        awaitsContinue = !isMalformed && head.expectsContinue
    }

    var session: HTTP2Session { connection.session }

    @discardableResult
    func leave() -> (any ClientStreamOwner)? {
        defer { owner = nil }
        return owner
    }

    func closed() {
        deadline = nil
        if isCounted {
            isCounted = false
            connection.places.giveBack(connection.client, on: connection.host)
        }
        leave()?.clientClosed(end)
        if case .active(let tunnel) = tunnelling {
            tunnelling = .over
            tunnel.closed(self)
        }
    }

    // MARK: Deadlines

    func allow(milliseconds: UInt64, from count: UInt64) {
        countAtDeadline = count
        let at = connection.loop.now &+ milliseconds
        deadline = at
        connection.deadline.arm(at, on: connection)
    }

    /// The awaited input or output did not come in time.
    func deadlinePassed() {
        deadline = nil
        if lingering != nil { return endRequest() }
        let settings = connection.host.settings
        if channel.isStalled {
            let taken = channel.sentCount &- countAtDeadline
            guard settings.timeouts.isTooLittle(taken: taken) else { return watchOutput() }
            connection.host.tally.add(.clientTimeouts)
            return endStalled(.cancel)
        }
        if case .active(let tunnel) = tunnelling { return tunnel.failed(self) }
        guard let owner, !owner.isUploaded else { return }
        let brought = contentCount &- countAtDeadline
        guard settings.timeouts.isTooLittle(brought: brought) else { return awaitContent() }
        owner.contentTimedOut()
    }

    private func watchOutput() {
        allow(milliseconds: connection.host.settings.timeouts.responseIdle, from: channel.sentCount)
    }

    /// The remaining bytes wait for the client.
    func sent() {
        guard !channel.isClosed, !channel.isStalled, channel.hasOutgoing else { return }
        channel.isStalled = true
        watchOutput()
    }

    /// The client lets the response wait too long, or too much of it.
    func endStalled(_ code: HTTP2Code) {
        guard end != .tooSlow else { return }
        connection.host.tally.add(.http2Stalls)
        end = .tooSlow
        session.reset(channel, code)
        connection.schedule()
        closed()
    }
}

extension HTTP2Stream: HTTP2ChannelOwner {
    func channelChanged() {
        guard !channel.isClosed else {
            passLastContent()
            closed()
            // Both hold each other.
            channel.owner = nil
            return
        }
        if case .active(let tunnel) = tunnelling { return tell(tunnel) }
        if channel.takeDrained() {
            // More may have come since, and wait again.
            stopDeadline()
            owner?.clientDrained()
        }
        guard owner != nil || channel.isInputEnded || !channel.isOutputSent else { return linger() }
        if channel.inboxCount > 0 || channel.isInputEnded { owner?.contentReady() }
    }

    /// Reads and discards the rest of a request whose response was sent: many clients read nothing
    /// before they have sent all, and some take a reset that comes with the response for a failure.
    private func linger() {
        let settings = connection.host.settings
        let now = connection.loop.now
        var lingering = lingering ?? Lingering(settings.timeouts, settings.limits, now: now)
        guard lingering.discard(session.takeContent(of: channel).count) else { return endRequest() }
        self.lingering = lingering
        // The windows have opened.
        connection.schedule()
        allow(milliseconds: lingering.wait(now: now), from: contentCount)
    }

    /// Has the client send no more of a request whose response was sent (RFC 9113 §8.1).
    private func endRequest() {
        session.reset(channel, .noError)
        connection.schedule()
        closed()
    }
}

extension HTTP2Stream: ClientStream {
    var peer: ClientPeer { connection.client }
    var socketEnds: (peerPort: UInt16, own: SocketAddress) { connection.socketEnds }
    var spoken: ClientProtocol { .http2 }
    var flow: Int { connection.flow }

    // MARK: The request's content

    /// Content with a known length is complete with its last byte, as in HTTP/1.1, whatever
    /// follows: the origin regards it as complete then.
    var isContentComplete: Bool {
        switch contentFraming {
        case .none: true
        case .length(let length): contentCount >= length
        case .chunked, .untilClose: channel.isInputEnded && channel.inboxCount == 0
        }
    }

    var hasContent: Bool { !isContentComplete && channel.inboxCount > 0 }

    var hasWholeContent: Bool {
        guard case .length(let length) = contentFraming else { return false }
        return length == contentCount &+ UInt64(channel.inboxCount)
    }

    func takeWholeContent(max: UInt64) -> [UInt8]? {
        guard hasWholeContent, !isContentComplete, contentCount == 0,
            UInt64(channel.inboxCount) <= max
        else { return nil }
        contentCount = UInt64(channel.inboxCount)
        connection.schedule()
        return session.takeContent(of: channel)
    }

    func dropContent() -> Bool {
        contentCount &+= UInt64(channel.inboxCount)
        _ = session.takeContent(of: channel)
        connection.schedule()
        return isContentComplete
    }

    func readContent(_ take: (Span<UInt8>) -> Bool) -> ContentRead {
        guard owner != nil else { return .closed }
        guard !isContentComplete else { return .complete }
        let bytes = session.takeContent(of: channel)
        guard !bytes.isEmpty else { return .none }
        // The windows have opened.
        connection.schedule()
        contentCount &+= UInt64(bytes.count)
        if case .length(let length) = contentFraming, contentCount > length {
            // nghttp2 does not pass it on.
            close()
            return .closed
        }
        guard take(bytes.span) else { return .stopped }
        return isContentComplete ? .complete : .some
    }

    func resumeReading() {
        guard channel.inboxCount > 0 || channel.isInputEnded || isContentComplete else { return }
        session.remind(channel)
        connection.schedule()
    }

    func awaitContent() {
        guard !channel.isStalled else { return }
        allow(milliseconds: connection.host.settings.timeouts.bodyIdle, from: contentCount)
    }

    func expectNothing() { stopDeadline() }

    func stopDeadline() { if !channel.isStalled { deadline = nil } }

    // MARK: The end

    /// The stream belongs to this request alone, and ends with it.
    func endAfterResponse() {}

    func finish() {
        guard leave() != nil else { return }
        if !channel.isStalled { deadline = nil }
        _ = session.takeContent(of: channel)
        if channel.isOutputSent, !channel.isInputEnded { session.remind(channel) }
        connection.finished()
    }

    func pause() { connection.pause() }

    func reset() {
        session.reset(channel, .internalError)
        connection.schedule()
        closed()
    }

    func close() {
        switch tunnelling {
        case .none: break
        case .active, .over: return endTunnel()
        }
        session.reset(channel, .cancel)
        connection.schedule()
        closed()
    }
}
