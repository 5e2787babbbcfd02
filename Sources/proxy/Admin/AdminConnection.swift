import HTTPWire
import Lanes

/// An operator's connection: one request at a time, answered before the next is read.
final class AdminConnection: Connection {
    private enum Phase {
        /// Nothing of a head is there. Leaves to `head`, `gathering`, `answering`, closed.
        case idle
        /// A head has begun. Leaves to `gathering`, `answering`, closed.
        case head
        /// The snapshot is awaited. Leaves to `answering`, closed.
        case gathering(AdminRequest)
        /// The answer goes out. Leaves to `idle`, `lingering`, closed.
        case answering(closes: Bool)
        /// The last answer is out; what still comes is read away. Leaves to closed.
        case lingering(drained: Int)
    }

    private let server: AdminServer
    private var phase = Phase.idle
    private var reader = RequestReader()
    /// The answer, and how much of it was handed over.
    private var answer: [UInt8] = []
    private var answerStart = 0
    /// What was still to be sent when the deadline was set; a slow reader may take all the time it
    /// needs as long as it reads.
    private var leftAtDeadline = 0

    init(_ descriptor: Int32, _ peer: SocketAddress, server: AdminServer) {
        self.server = server
        super.init(descriptor: descriptor, peer: peer, isConnecting: false, on: server.lane)
    }

    /// Waits for the first head.
    func begin() { setDeadline(milliseconds: server.limits.idleTimeoutMillis) }

    override func close() {
        guard !isClosed else { return }
        super.close()
        server.connectionClosed(self)
    }

    // MARK: Events

    override func inputReady() {
        switch phase {
        case .idle, .head: readHead()
        case .gathering, .answering: break
        case .lingering: drainInput()
        }
    }

    override func outputDrained() {
        switch phase {
        case .answering: sendAnswer()
        // An answer is sent in full before the phase ends, and nothing else is ever sent.
        case .idle, .head, .gathering, .lingering: break
        }
    }

    override func outputFailed() { close() }

    override func brokeWhileUnread() { close() }

    override func deadlinePassed() {
        switch phase {
        // Closed without a word: an answer would be taken for one to the request that may be on its
        // way (RFC 9112 §9.5).
        case .idle, .lingering: close()
        case .head: begin(AdminAnswer(.headTimeout))
        case .gathering(let request):
            server.withdraw(self)
            begin(AdminAnswer(.gatherTimeout), to: request)
        case .answering:
            guard left < leftAtDeadline else { return close() }
            watchOutput()
        }
    }

    /// The snapshot that was asked for is here.
    func gathered(_ snapshot: AdminSnapshot) {
        guard case .gathering(let request) = phase, let page = request.page else {
            preconditionFailure("AdminConnection: a snapshot that nobody asked for")
        }
        begin(AdminAnswer(page, snapshot), to: request)
    }

    // MARK: Requests

    private func readHead() {
        do throws(Malformed) {
            // What came with the last request goes first.
            if let request = try reader.next(server.limits.requestHead) { return serve(request) }
            switch read() {
            case .octets(let octets):
                reader.append(octets)
                if let request = try reader.next(server.limits.requestHead) {
                    return serve(request)
                }
            case .wouldBlock: break
            case .ended, .failed: return close()
            }
        } catch {
            return begin(AdminAnswer(error))
        }
        if case .idle = phase, reader.hasBegun {
            phase = .head
            setDeadline(milliseconds: server.limits.headTimeoutMillis)
        }
        resumeReading()
    }

    private func serve(_ request: AdminRequest) {
        switch request.outcome {
        case .refused(let problem): begin(AdminAnswer(problem), to: request)
        case .page(.health): begin(.health, to: request)
        case .page(.metrics), .page(.status), .page(.readiness):
            phase = .gathering(request)
            setDeadline(milliseconds: server.limits.gatherTimeoutMillis)
            server.ask(for: self)
        }
    }

    // MARK: Answers

    /// Begins to send an answer; after one to what was no request the connection ends.
    private func begin(_ answer: AdminAnswer, to request: AdminRequest? = nil) {
        let connection = request?.connection ?? .close
        self.answer = answer.octets(
            date: server.date,
            connection: connection,
            isHead: request?.isHead ?? false
        )
        answerStart = 0
        phase = .answering(closes: connection == .close)
        watchOutput()
        sendAnswer()
    }

    /// Octets of the answer that the kernel does not have.
    private var left: Int { answer.count - answerStart + unsentBytes }

    private func watchOutput() {
        leftAtDeadline = left
        setDeadline(milliseconds: server.limits.sendTimeoutMillis)
    }

    /// Hands over one piece after another, as long as the kernel takes them.
    private func sendAnswer() {
        let octets = answer
        while unsentBytes == 0, answerStart < octets.count {
            let end = min(octets.count, answerStart + server.limits.pieceBytesMax)
            if case .failed = write(octets.span.extracting(answerStart..<end)) { return close() }
            answerStart = end
        }
        if left == 0 { answerEnded() }
    }

    private func answerEnded() {
        guard case .answering(let closes) = phase else {
            preconditionFailure("AdminConnection: the end of an answer that was not begun")
        }
        answer = []
        answerStart = 0
        guard !closes else { return linger() }
        phase = .idle
        setDeadline(milliseconds: server.limits.idleTimeoutMillis)
        if reader.isEmpty { resumeReading() } else { lane.resume(self) }
    }

    // MARK: The end

    /// Says that nothing more will be sent, and reads away what still comes for a bounded time and
    /// amount, so that the peer sees the answer and no reset (RFC 9112 §9.6).
    private func linger() {
        reader = RequestReader()
        phase = .lingering(drained: 0)
        shutDownOutput()
        setDeadline(milliseconds: server.limits.lingerTimeoutMillis)
        resumeReading()
    }

    private func drainInput() {
        while case .lingering(let drained) = phase {
            switch read() {
            case .octets(let octets):
                guard drained + octets.count <= server.limits.lingerBytesMax else {
                    return close()
                }
                phase = .lingering(drained: drained + octets.count)
            case .wouldBlock: return
            case .ended, .failed: return close()
            }
        }
    }
}
