import HTTPWire
import Testing

/// Drives scanner, head, view and body reader as the proxy does, on bytes that arrive in pieces.
struct RequestReplay: ~Copyable {
    struct Message: Equatable {
        var method: String
        var target: String
        var body: [UInt8]
    }

    enum End: Equatable {
        /// Between two requests.
        case idle
        case insideHead, insideBody
        /// The last request said that the connection closes; what follows was not read.
        case closed
        case rejected(Malformed.Reason)
    }

    private(set) var messages: [Message] = []
    private(set) var end = End.idle
    /// Requests forwarded as a head that never became a message.
    private(set) var aborted = 0
    private(set) var trailers: [String] = []

    private var buffer: [UInt8] = []
    private var scanner = HeadScanner(.request(isSecure: false))
    private var head = RequestHead()
    private var view = TargetView()
    private var body: BodyReader?
    private var open = Message(method: "", target: "", body: [])
    private let limits: HeadLimits

    init(_ pieces: [[UInt8]], limits: HeadLimits = HeadLimits()) {
        self.limits = limits
        for piece in pieces {
            buffer += piece
            do throws(Malformed) {
                while try advance() {}
            } catch {
                if body != nil { aborted += 1 }
                end = .rejected(error.reason)
            }
            if end == .closed { return }
            if case .rejected = end { return }
        }
        if body != nil {
            end = .insideBody
        } else {
            end = scanner.hasBegun ? .insideHead : .idle
        }
    }

    /// Reads one head or as much of a body as is there; answers whether more can be read.
    private mutating func advance() throws(Malformed) -> Bool {
        guard body == nil else { return try advanceBody() }
        let arrived = buffer
        guard case .complete(let range) = try scanner.scan(arrived.span, limits: limits) else {
            return false
        }
        let octets = arrived.span.extracting(range)
        try head.read(octets, isSecure: false, limits: limits)
        view.read(head, octets)
        if let reason = view.refusal() { throw Malformed(reason, at: 0) }
        let source = Array(arrived[range])
        open = Message(
            method: text(source, head.methodRange),
            target: text(source, head.target),
            body: []
        )
        body = BodyReader(head.framing, limits: limits)
        buffer.removeFirst(range.upperBound)
        return true
    }

    private mutating func advanceBody() throws(Malformed) -> Bool {
        guard var reader = body else { return false }
        var position = 0
        let arrived = buffer
        while true {
            switch try reader.read(arrived.span, from: &position) {
            case .content(let range):
                open.body += arrived[range]
                continue
            case .needMore:
                body = reader
                buffer = []
                return false
            case .finished:
                #expect(reader.contentCount == UInt64(open.body.count))
                for field in reader.trailers.fields.fields {
                    trailers.append(text(reader.trailers.octets, field.name))
                }
                messages.append(open)
                body = nil
                buffer.removeFirst(position)
                scanner = HeadScanner(.request(isSecure: false))
                if !head.isPersistent { end = .closed }
                return head.isPersistent && !buffer.isEmpty
            }
        }
    }
}

/// Bytes of a range as text; spans can't be used in an expectation.
func text(_ octets: [UInt8], _ range: Range<Int>) -> String {
    String(decoding: octets[range], as: UTF8.self)
}
