import HTTPWire
import Testing

/// Reads what an origin sends until it closes, as the proxy does.
struct ResponseReplay: ~Copyable {
    enum End: Equatable {
        case complete
        /// Before the final head was complete: 502.
        case rejected(Malformed.Reason)
        /// After it: the client is cut off.
        case aborted(Malformed.Reason)
    }

    private(set) var status = 0
    private(set) var interim = 0
    private(set) var body: [UInt8] = []
    private(set) var leftover = 0
    private(set) var isReusable = false
    private(set) var trailers = 0
    private(set) var end = End.rejected(.bodyTruncated)

    private var buffer: [UInt8] = []
    private var scanner = HeadScanner(.response)
    private var head = ResponseHead()
    private var reader: BodyReader?
    private let limits = HeadLimits()

    init(_ pieces: [[UInt8]], to method: Method) {
        for piece in pieces {
            buffer += piece
            do throws(Malformed) {
                while try advance(method) {}
            } catch {
                end = reader == nil ? .rejected(error.reason) : .aborted(error.reason)
                return
            }
        }
        leftover = end == .complete ? buffer.count : 0
        guard end != .complete, var reader else { return }
        do throws(Malformed) {
            try reader.close()
            end = .complete
        } catch {
            end = .aborted(error.reason)
        }
    }

    private mutating func advance(_ method: Method) throws(Malformed) -> Bool {
        guard end != .complete else { return false }
        guard reader == nil else { return try advanceBody() }
        let arrived = buffer
        guard case .complete(let range) = try scanner.scan(arrived.span, limits: limits) else {
            return false
        }
        let octets = arrived.span.extracting(range)
        try head.read(octets, to: method, upgradeSent: false, limits: limits)
        buffer.removeFirst(range.upperBound)
        if head.isInterim {
            interim += 1
            scanner = HeadScanner(.response)
            return true
        }
        status = head.status
        reader = BodyReader(head.framing, limits: limits)
        return true
    }

    private mutating func advanceBody() throws(Malformed) -> Bool {
        guard var open = reader else { return false }
        var position = 0
        let arrived = buffer
        while true {
            switch try open.read(arrived.span, from: &position) {
            case .content(let range): body += arrived[range]
            case .needMore:
                reader = open
                buffer = []
                return false
            case .finished:
                reader = open
                buffer.removeFirst(position)
                isReusable = head.isPersistent
                trailers = open.trailers.fields.fields.count
                end = .complete
                return false
            }
        }
    }
}
