package import HTTPWire

/// Reads requests from a connection's bytes as the proxy does, in whatever pieces they arrive.
package struct RequestStream {
    /// A complete request.
    package struct Message: Equatable, Sendable {
        package var method: [UInt8]
        package var target: [UInt8]
        package var authority: [UInt8]
        package var framing: BodyFraming
        package var isPersistent: Bool
        package var fields: [[UInt8]]
        package var body: [UInt8] = []
        package var trailers: [[UInt8]] = []
    }

    /// What there is to say once the bytes end.
    package enum End: Equatable, Sendable {
        case idle, insideHead, insideBody
        /// The last request closes the connection; what follows it was not read.
        case closed
        case rejected(Malformed.Reason)
    }

    package private(set) var messages: [Message] = []
    package private(set) var end = End.idle
    /// The head of the request whose content is not complete.
    package private(set) var open: Message?

    private var buffer: [UInt8] = []
    private var scanner = HeadScanner(.request(isSecure: false))
    private var body: BodyReader?
    private let limits = HeadLimits()

    package init(_ pieces: [[UInt8]]) {
        for piece in pieces {
            buffer += piece
            do throws(Malformed) {
                while try advance() {}
            } catch {
                end = .rejected(error.reason)
            }
            switch end {
            case .closed, .rejected: return
            case .idle, .insideHead, .insideBody: continue
            }
        }
        end = open != nil ? .insideBody : scanner.hasBegun ? .insideHead : .idle
    }

    /// Whether it came to the same as another way to read the bytes.
    ///
    /// Of several faults another may show first when the rest is not there yet.
    package func agrees(with other: RequestStream) -> Bool {
        guard messages == other.messages else { return false }
        switch (end, other.end) {
        case (.rejected, .rejected): return true
        case (.idle, _), (.insideHead, _), (.insideBody, _), (.closed, _), (.rejected, _):
            return end == other.end && open == other.open
        }
    }

    /// Reads a head, or what there is of a content; answers whether to go on.
    private mutating func advance() throws(Malformed) -> Bool {
        if let open { return try advance(open) }
        let arrived = buffer
        guard case .complete(let range) = try scanner.scan(arrived.span, limits: limits) else {
            return false
        }
        let bytes = arrived.span.extracting(range)
        var head = RequestHead()
        try head.read(bytes, isSecure: false, limits: limits)
        var view = TargetView()
        view.read(head, bytes)
        if let reason = view.refusal() { throw Malformed(reason, at: 0) }
        let source = Array(arrived[range])
        open = Message(
            method: Array(source[head.methodRange]),
            target: Array(source[head.target]),
            authority: Array(source[head.authority]),
            framing: head.framing,
            isPersistent: head.isPersistent,
            fields: head.fields.fields.map { source[$0.name] + [0x3A] + source[$0.value] }
        )
        body = BodyReader(head.framing, limits: limits)
        buffer.removeFirst(range.upperBound)
        return true
    }

    private mutating func advance(_ message: Message) throws(Malformed) -> Bool {
        guard var reader = body else { return false }
        var message = message
        var position = 0
        let arrived = buffer
        while true {
            switch try reader.read(arrived.span, from: &position) {
            case .content(let range): message.body += arrived[range]
            case .needMore:
                FuzzTarget.demand(position == arrived.count, "all that is there is consumed")
                body = reader
                open = message
                buffer = []
                return false
            case .finished:
                FuzzTarget.demand(
                    reader.contentCount == UInt64(message.body.count),
                    "the count of the content is its length"
                )
                let bytes = reader.trailers.bytes
                message.trailers = reader.trailers.fields.fields.map {
                    bytes[$0.name] + [0x3A] + bytes[$0.value]
                }
                messages.append(message)
                open = nil
                body = nil
                buffer.removeFirst(position)
                scanner = HeadScanner(.request(isSecure: false))
                if !message.isPersistent { end = .closed }
                return message.isPersistent && !buffer.isEmpty
            }
        }
    }
}
