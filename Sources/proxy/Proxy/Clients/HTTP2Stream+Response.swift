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
                status: LocalOutcome.done(.continued).row.status,
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
        HeadWriter.beginResponse(head, bytes, HeadWriter.ResponseOptions(), into: &out)
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
        HeadWriter.beginResponse(head, bytes, options, into: &out)
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
