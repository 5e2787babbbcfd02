import EventLoops
import HTTPWire
import Services

extension HTTP1Stream {
    var unsentBytes: Int { connection.unsentBytes }

    func sendContinue() {
        guard awaitsContinue, owner != nil else { return }
        awaitsContinue = false
        begin()
        HeadWriter.beginLocalResponse(
            status: LocalOutcome.done(.continued).status,
            date: [],
            framing: .none,
            connection: .keep,
            into: &out.bytes
        )
        HeadWriter.endHead(into: &out.bytes)
        flush()
    }

    /// RFC 9110 §15.2: never to an HTTP/1.0 client. A 100 that the gateway has already sent is not
    /// sent twice.
    func sendInterim(_ head: borrowing ResponseHead, _ bytes: Span<UInt8>) {
        guard version == .http11, owner != nil, head.status != 100 || awaitsContinue else { return }
        awaitsContinue = false
        begin()
        HeadWriter.beginResponse(
            head,
            bytes,
            options: HeadWriter.ResponseOptions(),
            into: &out.bytes
        )
        HeadWriter.endHead(into: &out.bytes)
        flush()
    }

    func beginResponse(
        _ head: borrowing ResponseHead,
        _ bytes: Span<UInt8>,
        adding fields: [(name: StaticString, value: String)]
    ) {
        // HTTP/1.0 has no chunks, and HTTP/1.1 needs no close to know the end.
        switch head.framing {
        case .none, .length: out.framing = head.framing
        case .chunked, .untilClose: out.framing = version == .http11 ? .chunked : .untilClose
        }
        // If the process dies before the end of the response, an orderly end of the connection
        // would make the sent part look whole.
        if out.framing == .untilClose { connection.resetsOnClose = true }
        settlePersistence()
        var options = HeadWriter.ResponseOptions()
        options.framing = out.framing
        options.date = connection.host.date
        options.connection = connectionField
        begin()
        HeadWriter.beginResponse(head, bytes, options: options, into: &out.bytes)
        for field in fields { HeadWriter.field(field.name, text: field.value, into: &out.bytes) }
        HeadWriter.endHead(into: &out.bytes)
    }

    /// Decides whether the connection continues, before the head says so. A response that comes
    /// before the end of its request does not wait for the rest of that.
    private func settlePersistence() {
        if out.framing == .untilClose || leavesContent || connection.host.isDraining {
            endAfterResponse()
        }
    }

    func append(_ content: Span<UInt8>) {
        begin()
        guard !out.gather(content) else { return }
        send(content)
    }

    func endContent(_ trailers: TrailerSection?) {
        begin()
        out.end(trailers)
        isAnswered = true
    }

    @discardableResult
    func flush() -> ClientOutput {
        guard owner != nil else { return .closed }
        guard isGathering else { return .sent }
        out.finish()
        if !out.bytes.isEmpty { send(Span()) }
        connection.loop.giveBack(&out.bytes)
        isGathering = false
        defer { output = .sent }
        switch output {
        case .sent: break
        case .queued: connection.watchOutput()
        case .closed: connection.close()
        }
        return output
    }

    @discardableResult
    func respond(_ response: LocalResponse) -> ClientOutput {
        out.framing = .length(UInt64(response.content.count))
        settlePersistence()
        begin()
        response.write(
            into: &out.bytes,
            date: connection.host.date,
            connection: connectionField,
            isHead: isHead
        )
        isAnswered = true
        return flush()
    }

    /// The connection field of the head. The head must tell an HTTP/1.0 client that its connection
    /// is kept.
    private var connectionField: HeadWriter.ConnectionField {
        guard isPersistent else { return .close }
        return switch version {
        case .http10: .keepAlive
        case .http11: .keep
        }
    }

    func upgrade(
        _ head: borrowing ResponseHead,
        _ bytes: Span<UInt8>,
        behind: Span<UInt8>,
        to owner: any ByteStreamOwner
    ) -> (stream: any ByteStream, early: [UInt8])? {
        var options = HeadWriter.ResponseOptions()
        options.connection = .upgrade
        begin()
        HeadWriter.beginResponse(head, bytes, options: options, into: &out.bytes)
        HeadWriter.endHead(into: &out.bytes)
        if !behind.isEmpty { append(behind) }
        if case .closed = flush() { return nil }
        leave()
        let early = connection.inbox
        connection.inbox = []
        connection.becomeTunnel(of: owner)
        return (connection, early)
    }

    /// Takes the event loop's memory for gathering.
    private func begin() {
        guard !isGathering else { return }
        isGathering = true
        out.bytes = connection.loop.takeOutput()
    }

    /// Sends the gathered bytes, then a piece.
    private func send(_ piece: Span<UInt8>) {
        if case .closed = output { return }
        hasSent = true
        let sequel = isAnswered && !isPersistent ? Connection.Sequel.end : .more
        switch connection.write(out.bytes.span, piece, before: sequel) {
        case .sent: break
        case .queued: output = .queued
        case .failed: output = .closed
        }
        out.bytes.removeAll(keepingCapacity: true)
    }
}
