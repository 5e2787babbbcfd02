import HTTP2Wire
import HTTPWire
import Lanes
import Services

extension HTTP2Stream {
    var unsentBytes: Int { channel.isStalled ? channel.outgoingCount : 0 }

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

    /// The 100 that the gateway has sent itself is not sent twice.
    func sendInterim(_ head: borrowing ResponseHead, _ octets: Span<UInt8>) {
        guard owner != nil, head.status != 100 || awaitsContinue else { return }
        awaitsContinue = false
        var out = connection.lane.takeOutput()
        defer { connection.lane.giveBack(&out) }
        HeadWriter.beginResponse(head, octets, HeadWriter.ResponseOptions(), into: &out)
        HeadWriter.endHead(into: &out)
        session.inform(channel, out.span)
        connection.schedule()
    }

    func beginResponse(
        _ head: borrowing ResponseHead,
        _ octets: Span<UInt8>,
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
        var out = connection.lane.takeOutput()
        defer { connection.lane.giveBack(&out) }
        HeadWriter.beginResponse(head, octets, options, into: &out)
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
        connection.flushed(self)
        return channel.isStalled ? .queued : .sent
    }

    @discardableResult
    func respond(_ response: LocalResponse) -> ClientOutput {
        let hasContent = !isHead && !response.content.isEmpty
        withHead { out in
            response.write(
                into: &out,
                date: connection.host.date,
                connection: .keep,
                isHead: true
            )
            isUnsendable = !session.respond(channel, out.span, hasContent: hasContent)
        }
        if hasContent {
            session.append(response.content.span, to: channel)
            session.complete(channel, nil)
        }
        return flush()
    }

    /// Lends the lane's memory to write a head in.
    private func withHead(_ body: (inout [UInt8]) -> Void) {
        var out = connection.lane.takeOutput()
        defer { connection.lane.giveBack(&out) }
        body(&out)
        connection.schedule()
    }
}
