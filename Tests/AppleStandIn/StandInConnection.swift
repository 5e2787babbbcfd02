import EventLoops
package import SoftwareAuthenticator

/// A connection to the stand-in, with one request after another.
final class StandInConnection: Connection {
    typealias Answering = (StandInRequest, _ tick: UInt64) -> (StandInPlay, StandInAnswer)

    private let answering: Answering
    private var inbox: [UInt8] = []
    private var request: StandInRequest?
    /// The bytes that are sent when the deadline has passed.
    private var delayed: [UInt8]?
    /// The pause after each of these bytes; `nil` where they are sent together.
    private var drip: UInt64?
    /// Called when the connection is closed.
    var ended: (() -> Void)?

    init(
        _ descriptor: Int32,
        _ peer: SocketAddress,
        _ session: TLSSession,
        on loop: EventLoop,
        _ answering: @escaping Answering
    ) {
        self.answering = answering
        super.init(descriptor: descriptor, peer: peer, isConnecting: false, tls: session, on: loop)
    }

    override func close() {
        super.close()
        let told = ended
        ended = nil
        told?()
    }

    override func inputReady() {
        while !isClosed {
            switch read() {
            case .bytes(let bytes):
                inbox.append(contentsOf: bytes)
                // A client that we know sends at most this number of bytes.
                guard inbox.count <= 2 << 20 else { return reset() }
                serve()
            case .wouldBlock: return
            case .ended, .failed: return close()
            }
        }
    }

    override func outputFailed() { close() }

    override func deadlinePassed() {
        guard var rest = delayed else { return }
        delayed = nil
        guard let drip, !rest.isEmpty else { return send(rest) }
        send([rest.removeFirst()])
        guard !isClosed else { return }
        delayed = rest
        setDeadline(milliseconds: drip)
    }

    private func serve() {
        if request == nil {
            let blank = Array("\r\n\r\n".utf8)
            let starts = inbox.indices.dropLast(3)
            guard let end = starts.first(where: { inbox[$0...].starts(with: blank) }) else {
                return
            }
            request = StandInRequest(head: Array(inbox[..<end]))
            inbox.removeFirst(end + 4)
            guard request != nil else { return reset() }
        }
        guard var whole = request, inbox.count >= whole.bodyCount else { return }
        whole.body = Array(inbox.prefix(whole.bodyCount))
        inbox.removeFirst(whole.bodyCount)
        request = nil
        answer(whole)
    }

    private func answer(_ request: StandInRequest) {
        let (play, answer) = answering(request, loop.now)
        switch play {
        case .hang: break
        case .garbage: send(Array("\u{1}\u{2} this is no HTTP\r\n\r\n".utf8))
        case .cut:
            send(Array("HTTP/1.1 200 -\r\nContent-Length: 1000\r\n\r\nhalf".utf8))
            shutDownOutput()
            close()
        case .slow(let milliseconds):
            delayed = answer.bytes
            setDeadline(milliseconds: milliseconds)
        case .drip(let milliseconds):
            (delayed, drip) = (answer.bytes, milliseconds)
            setDeadline(milliseconds: milliseconds)
        case .proper, .status, .long, .redirect, .receipt, .receiptOfAttestation, .receiptAsSent:
            send(answer.bytes)
        }
    }

    /// In pieces: TLS takes no ten megabytes at once.
    private func send(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty, !isClosed {
            let piece = Array(rest.prefix(1 << 16))
            rest = rest.dropFirst(piece.count)
            if case .failed = write(piece.span) { close() }
        }
    }
}

/// How a call is answered.
package enum StandInPlay: Hashable, Sendable {
    /// As Apple answers.
    case proper
    /// As Apple answers, after this number of milliseconds.
    case slow(milliseconds: UInt64)
    /// An answer with this status, whatever the call.
    case status(Int, retryAfter: Int? = nil, body: String = "")
    /// No answer; the connection stays open.
    case hang
    /// Bytes that are not HTTP.
    case garbage
    /// The connection ends in the middle of the answer.
    case cut
    /// An answer of this number of bytes.
    case long(bytes: Int)
    /// An answer that comes byte by byte, with pauses of this number of milliseconds.
    case drip(milliseconds: UInt64)
    /// A redirect to this address.
    case redirect(to: String)
    /// A wrong receipt, or one that is this number of seconds old.
    case receipt(ReceiptDamage? = nil, age: Int64 = 0)
    /// The attestation's kind of receipt in place of a refreshed one.
    case receiptOfAttestation
    /// The receipt of the call itself.
    case receiptAsSent

    /// The answer to any call; `nil` where it depends on the call.
    var answer: StandInAnswer? {
        switch self {
        case .status(let status, let retryAfter, let body):
            var answer = StandInAnswer(status, body)
            answer.retryAfter = retryAfter
            return answer
        case .long(let count): return StandInAnswer(200, String(repeating: "A", count: count))
        case .redirect(let address):
            var answer = StandInAnswer(307)
            answer.fields = [("Location", address)]
            return answer
        case .proper, .slow, .drip, .hang, .garbage, .cut, .receipt, .receiptOfAttestation,
            .receiptAsSent:
            return nil
        }
    }
}

/// The plays of a service's calls.
struct StandInPlays {
    /// That of all calls that have no script.
    var always = StandInPlay.proper
    /// Those of the next calls.
    var next: [StandInPlay] = []

    mutating func take() -> StandInPlay { next.isEmpty ? always : next.removeFirst() }
}

/// An answer of the stand-in.
struct StandInAnswer {
    var status: Int
    var retryAfter: Int?
    var contentType = "text/plain"
    /// Further fields.
    var fields: [(name: String, value: String)] = []
    var body: [UInt8]

    init(_ status: Int, _ text: String = "") {
        self.status = status
        body = Array(text.utf8)
    }

    static func json(_ status: Int, _ text: String) -> StandInAnswer {
        var answer = StandInAnswer(status, text)
        answer.contentType = "application/json"
        return answer
    }

    /// The answer as bytes on the wire.
    var bytes: [UInt8] {
        var lines = retryAfter.map { "Retry-After: \($0)\r\n" } ?? ""
        for field in fields { lines += "\(field.name): \(field.value)\r\n" }
        let head =
            "HTTP/1.1 \(status) -\r\n\(lines)Content-Type: \(contentType)\r\n"
            + "Content-Length: \(body.count)\r\n\r\n"
        // These have no content and no length (RFC 9110 §8.6, §15.4.5).
        guard status != 304, status != 204 else {
            return Array("HTTP/1.1 \(status) -\r\n\(lines)\r\n".utf8)
        }
        return Array(head.utf8) + body
    }
}

/// The parts of a request that the stand-in reads.
struct StandInRequest {
    let method: String
    let path: String
    let fields: [(name: String, value: String)]
    var body: [UInt8] = []
    let bodyCount: Int

    /// The value of a field; `nil` when it is absent.
    subscript(name: String) -> String? {
        fields.first { $0.name.lowercased() == name.lowercased() }?.value
    }

    /// Reads a head without its blank line; `nil` when it is not a request's head with a length.
    ///
    /// This is good enough for a client that we know. HTTPWire handles all that a proxy must guard
    /// against.
    init?(head: [UInt8]) {
        // Works on bytes: a carriage return and a line feed are one Character.
        let lines = head.split(separator: UInt8(ascii: "\n")).map { line in
            String(decoding: line.filter { $0 != UInt8(ascii: "\r") }, as: UTF8.self)
        }
        let words = (lines.first ?? "").split(separator: " ")
        guard words.count == 3 else { return nil }
        method = String(words[0])
        path = String(words[1])
        fields = lines.dropFirst().compactMap { line in
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2 else { return nil }
            return (String(parts[0]), String(parts[1].drop { $0 == " " }))
        }
        let length = fields.first { $0.name.lowercased() == "content-length" }?.value ?? "0"
        guard let count = Int(length), (0...(1 << 20)).contains(count) else { return nil }
        bodyCount = count
    }
}
