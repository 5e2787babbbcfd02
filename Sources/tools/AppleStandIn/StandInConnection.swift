import EventLoops

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
