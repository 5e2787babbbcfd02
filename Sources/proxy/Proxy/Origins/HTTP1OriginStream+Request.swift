import EventLoops
import HTTPWire

// A request on its way to the server.
extension HTTP1OriginStream {
    func begin(_ facts: RequestFacts, framing: BodyFraming, limits: ResponseLimits) {
        requestBegan()
        method = facts.method
        asksUpgrade = facts.asks(.upgrade)
        self.limits = limits
        out.framing = framing
        progress = .head
        isPersistent = false
        inbox = []
        scanner = HeadScanner(.response)
        interimCount = 0
        outcome = .sent
        messageBegins()
        // The deadline of the connect, or of the time in the pool, does not apply to the request.
        setDeadline(milliseconds: nil)
    }

    /// From an incomplete request on, the connection ends with a reset, even if the process dies.
    func sendHead(_ head: Span<UInt8>, _ content: Span<UInt8>, isWhole: Bool) -> WriteOutcome {
        resetsOnClose = !isWhole
        return marked(write(head, content))
    }

    func requestTaken() { resetsOnClose = false }

    func append(_ content: Span<UInt8>) {
        gather()
        if !out.gather(content) { send(content) }
    }

    func endContent() {
        gather()
        out.end(nil)
    }

    func flush() -> WriteOutcome {
        guard isGathering else { return .sent }
        out.finish()
        if !out.bytes.isEmpty { send(Span()) }
        loop.giveBack(&out.bytes)
        isGathering = false
        defer { outcome = .sent }
        return outcome
    }

    /// Sends the gathered bytes, then a piece.
    private func send(_ piece: Span<UInt8>) {
        if case .failed = outcome { return }
        outcome = marked(write(out.bytes.span, piece))
        out.bytes.removeAll(keepingCapacity: true)
    }

    /// Bytes that wait here are lost if the process dies. So the connection ends with a reset from
    /// then on, even if the request was to be sent as a whole, until the server has taken it.
    private func marked(_ outcome: WriteOutcome) -> WriteOutcome {
        if case .queued = outcome { resetsOnClose = true }
        return outcome
    }

    /// Takes the event loop's memory for gathering.
    private func gather() {
        guard !isGathering else { return }
        isGathering = true
        out.bytes = loop.takeOutput()
    }
}
