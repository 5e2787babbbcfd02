package import HTTPWire

/// Reads what an origin answers to one request, until it closes.
package struct ResponseStream {
    /// What became of the answer.
    package enum End: Equatable, Sendable {
        case complete
        /// Before the final head was complete.
        case rejected(Malformed.Reason)
        /// Behind it: the client would be cut off.
        case aborted(Malformed.Reason)
    }

    package private(set) var status = 0
    package private(set) var interim = 0
    package private(set) var framing: BodyFraming = .none
    package private(set) var body: [UInt8] = []
    package private(set) var trailers: [[UInt8]] = []
    /// Bytes behind the answer.
    package private(set) var leftover = 0
    package private(set) var isPersistent = false
    package private(set) var end = End.rejected(.bodyTruncated)

    private var buffer: [UInt8] = []
    private var scanner = HeadScanner(.response)
    private var reader: BodyReader?
    private let method: Method
    private let limits = HeadLimits()

    package init(_ pieces: [[UInt8]], to method: Method) {
        self.method = method
        for piece in pieces {
            buffer += piece
            do throws(Malformed) {
                while try advance() {}
            } catch {
                end = reader == nil ? .rejected(error.reason) : .aborted(error.reason)
                return
            }
        }
        if end == .complete {
            leftover = buffer.count
        } else if var reader {
            do throws(Malformed) {
                try reader.close()
                end = .complete
            } catch {
                end = .aborted(error.reason)
            }
        }
    }

    /// Whether it came to the same as another way to read the bytes.
    package func agrees(with other: ResponseStream) -> Bool {
        guard status == other.status, interim == other.interim, framing == other.framing,
            body == other.body, trailers == other.trailers
        else { return false }
        switch (end, other.end) {
        case (.rejected, .rejected), (.aborted, .aborted): return true
        case (.complete, .complete):
            return leftover == other.leftover && isPersistent == other.isPersistent
        case (.complete, _), (.rejected, _), (.aborted, _): return false
        }
    }

    private mutating func advance() throws(Malformed) -> Bool {
        guard end != .complete else { return false }
        guard reader == nil else { return try advanceBody() }
        let arrived = buffer
        guard case .complete(let range) = try scanner.scan(arrived.span, limits: limits) else {
            return false
        }
        let bytes = arrived.span.extracting(range)
        var head = ResponseHead()
        try head.read(bytes, to: method, upgradeSent: false, limits: limits)
        checkPassing(head, bytes)
        buffer.removeFirst(range.upperBound)
        if head.isInterim {
            interim += 1
            scanner = HeadScanner(.response)
            return true
        }
        status = head.status
        framing = head.framing
        isPersistent = head.isPersistent
        reader = BodyReader(head.framing, limits: limits)
        return true
    }

    /// Demands that what is passed on is read as the same once more: nothing that is taken out of a
    /// head leaves a head from which more would be taken out.
    private func checkPassing(_ head: borrowing ResponseHead, _ bytes: Span<UInt8>) {
        let first = passed(head, bytes)
        var again = ResponseHead()
        do throws(Malformed) {
            var wide = limits
            wide.headBytesMax = first.count
            try again.read(first.span, to: method, upgradeSent: false, limits: wide)
        } catch {
            return FuzzTarget.demand(false, "a head that is passed on can be read: \(error)")
        }
        FuzzTarget.demand(passed(again, first.span) == first, "what is passed on stays as it is")
        FuzzTarget.demand(
            head.mayBeShared(bytes, answering: .get)
                || !again.mayBeShared(first.span, answering: .get),
            "a response is not made public"
        )
    }

    private func passed(_ head: borrowing ResponseHead, _ bytes: Span<UInt8>) -> [UInt8] {
        var out: [UInt8] = []
        HeadWriter.beginResponse(head, bytes, options: HeadWriter.ResponseOptions(), into: &out)
        HeadWriter.endHead(into: &out)
        return out
    }

    private mutating func advanceBody() throws(Malformed) -> Bool {
        guard var open = reader else { return false }
        var position = 0
        let arrived = buffer
        while true {
            switch try open.read(arrived.span, from: &position) {
            case .content(let range): body += arrived[range]
            case .needMore:
                FuzzTarget.demand(position == arrived.count, "all that is there is consumed")
                reader = open
                buffer = []
                return false
            case .finished:
                reader = open
                buffer.removeFirst(position)
                let bytes = open.trailers.bytes
                trailers = open.trailers.fields.fields.map {
                    bytes[$0.name] + [0x3A] + bytes[$0.value]
                }
                end = .complete
                return false
            }
        }
    }
}
