import EventLoops
import HTTPWire
import Services

extension HTTP2Stream {
    /// The most bytes that a stream reads from its origin in one turn when its windows are closed.
    /// So a waiting stream holds at most this, and the default of `limits.http2.streams` holds half
    /// of `unsent`.
    private static let closedReadMax = 16 << 10
    /// The most content that may wait for the connection's turn, however far the windows are open.
    private static let waitingMax = 128 << 10

    var unsentBytes: Int { channel.isStalled ? channel.outgoingCount : 0 }

    var readMax: Int { max(session.room(for: channel), Self.closedReadMax) }

    /// Content was added. If it can't be sent in the connection's next turn, its source stops now,
    /// and not after that turn: other turns may come first.
    func queued() -> Bool {
        let count = channel.outgoingCount
        if !channel.isStalled, count > 0,
            count > Self.waitingMax || !session.isOpen(for: channel)
        {
            sent()
        }
        // The little that goes out in the connection's next turn need not be counted before it.
        if channel.isStalled || count > Self.closedReadMax { connection.countUnsent() }
        connection.flushed(self)
        return channel.isStalled
    }

    func sendContinue() {
        guard awaitsContinue, owner != nil else { return }
        awaitsContinue = false
        withHead { out in
            HeadWriter.beginLocalResponse(
                status: LocalOutcome.done(.continued).status,
                date: [],
                framing: .none,
                connection: .keep,
                into: &out
            )
            HeadWriter.endHead(into: &out)
            session.inform(channel, out.span)
        }
    }

    /// A 100 that the gateway has already sent is not sent twice.
    func sendInterim(_ head: borrowing ResponseHead, _ bytes: Span<UInt8>) {
        guard owner != nil, head.status != 100 || awaitsContinue else { return }
        awaitsContinue = false
        var out = connection.loop.takeOutput()
        defer { connection.loop.giveBack(&out) }
        HeadWriter.beginResponse(head, bytes, options: HeadWriter.ResponseOptions(), into: &out)
        HeadWriter.endHead(into: &out)
        session.inform(channel, out.span)
        connection.schedule()
    }

    func beginResponse(
        _ head: borrowing ResponseHead,
        _ bytes: Span<UInt8>,
        adding fields: [(name: StaticString, value: String)]
    ) {
        var options = HeadWriter.ResponseOptions()
        let hasContent: Bool
        switch head.framing {
        case .none:
            options.framing = .none
            hasContent = false
        case .length(let length):
            options.framing = head.framing
            hasContent = length > 0
        case .chunked, .untilClose:
            // The end of the stream tells (RFC 9113 §8.1).
            options.framing = .untilClose
            hasContent = true
        }
        options.date = connection.host.date
        var out = connection.loop.takeOutput()
        defer { connection.loop.giveBack(&out) }
        HeadWriter.beginResponse(head, bytes, options: options, into: &out)
        for field in fields { HeadWriter.field(field.name, text: field.value, into: &out) }
        HeadWriter.endHead(into: &out)
        isUnsendable = !session.respond(channel, out.span, hasContent: hasContent)
    }

    func append(_ content: Span<UInt8>) { session.append(content, to: channel) }

    func endContent(_ trailers: TrailerSection?) { session.complete(channel, trailers) }

    @discardableResult
    func flush() -> ClientOutput {
        guard owner != nil else { return .closed }
        guard !channel.isClosed, !isUnsendable else {
            close()
            return .closed
        }
        return queued() ? .queued : .sent
    }

    @discardableResult
    func respond(_ response: LocalResponse) -> ClientOutput {
        let hasContent = !isHead && !response.content.isEmpty
        withHead { out in
            response.write(into: &out, date: connection.host.date, connection: .keep, isHead: true)
            isUnsendable = !session.respond(channel, out.span, hasContent: hasContent)
        }
        if hasContent {
            session.append(response.content.span, to: channel)
            session.complete(channel, response.endsCall ? Self.endOfCall : nil)
        }
        return flush()
    }

    /// The trailers of a gRPC call that was answered with a message.
    private static let endOfCall: TrailerSection = {
        do throws(Malformed) {
            let lines = Array("grpc-status: 0\r\n\r\n".utf8)
            return try TrailerSection(whole: lines, limits: HeadLimits())
        } catch {
            preconditionFailure("HTTP2Stream: the trailers of a call")
        }
    }()

    /// Lends the event loop's memory for a head.
    private func withHead(_ body: (inout [UInt8]) -> Void) {
        var out = connection.loop.takeOutput()
        defer { connection.loop.giveBack(&out) }
        body(&out)
        connection.schedule()
    }
}

// WebSocket by extended CONNECT (RFC 8441), to an origin that speaks HTTP/1.1.
extension HTTP2Stream {
    func upgrade(
        _ head: borrowing ResponseHead,
        _ bytes: Span<UInt8>,
        behind: Span<UInt8>,
        to owner: any ByteStreamOwner
    ) -> (stream: any ByteStream, early: [UInt8])? {
        guard channel.asksTunnel else {
            // A stream has no 101 (RFC 9113 §8.6), and its client has not asked for one.
            close()
            return nil
        }
        var out = connection.loop.takeOutput()
        defer { connection.loop.giveBack(&out) }
        HeadWriter.beginResponse(head, bytes, options: HeadWriter.ResponseOptions(), into: &out)
        HeadWriter.endHead(into: &out)
        isUnsendable = !session.acceptTunnel(channel, out.span)
        if !behind.isEmpty { append(behind) }
        if case .closed = flush() { return nil }
        leave()
        tunnelling = .active(owner)
        return (self, session.takeContent(of: channel))
    }

    func tell(_ tunnel: any ByteStreamOwner) {
        if channel.takeDrained() {
            stopDeadline()
            tunnel.drained(self)
        }
        if channel.inboxCount > 0 || channel.isInputEnded { tunnel.readable(self) }
    }

    /// The stream is closed. What came with the client's end of a tunnel is passed on.
    func passLastContent() {
        guard channel.hasEndedTunnel else { return }
        if case .active(let tunnel) = tunnelling { tunnel.endedInOrder(self) }
        // What is still here is dropped, and must not close the connection's window.
        _ = session.takeContent(of: channel)
    }

    /// The tunnel has ended. If its output is complete, it is sent; otherwise the stream is reset.
    func endTunnel() {
        tunnelling = .over
        stopDeadline()
        guard !connection.isClosed, !channel.isClosed else { return }
        if channel.isInputEnded, channel.isOutputComplete {
            connection.flushed(self)
        } else {
            session.reset(channel, .cancel)
            connection.schedule()
        }
    }
}

extension HTTP2Stream: ByteStream {
    func read() -> Connection.ReadOutcome {
        guard channel.inboxCount > 0 else { return channel.isInputEnded ? .ended : .wouldBlock }
        let bytes = session.takeContent(of: channel, atMost: EventLoop.inputBytes)
        // The windows have opened.
        connection.schedule()
        return .bytes(connection.loop.asRead(bytes.span))
    }

    func write(_ bytes: Span<UInt8>) -> Connection.WriteOutcome {
        guard !channel.isClosed, !connection.isClosed else { return .failed(.truncated) }
        append(bytes)
        return queued() ? .queued : .sent
    }

    func shutDownOutput() {
        guard !connection.isClosed else { return }
        endContent(nil)
        connection.flushed(self)
    }

    func setDeadline(milliseconds: UInt64?) {
        // The client first has to take the bytes that wait for it.
        guard !channel.isStalled else { return }
        guard let milliseconds else { return stopDeadline() }
        allow(milliseconds: milliseconds, from: contentCount)
    }
}
