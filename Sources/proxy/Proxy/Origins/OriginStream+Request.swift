package import EventLoops
package import HTTPWire

// A request on its way to the server.
extension OriginStream {
    /// Begins a request. The connection accepts bytes.
    ///
    /// - asksUpgrade: the request asks for another protocol.
    /// - framing: how the content goes to the server.
    package func begin(
        _ method: Method,
        asksUpgrade: Bool,
        framing: BodyFraming,
        limits: ResponseLimits
    ) {
        requestBegan()
        self.method = method
        self.asksUpgrade = asksUpgrade
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

    /// Adds content. A large piece is sent at once, small ones are gathered until ``flush()``.
    package func append(_ content: Span<UInt8>) {
        gather()
        if !out.gather(content) { send(content) }
    }

    /// The content is complete. A client's trailers end at the gateway (RFC 9110 §6.5.1 ¶2):
    /// origins can't say that they take any, and some take them for fields of the next request.
    package func endContent() {
        gather()
        out.end(nil)
    }

    /// Sends the gathered bytes. The result covers all bytes since the last call.
    package func flush() -> WriteOutcome {
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
        outcome = write(out.bytes.span, piece)
        out.bytes.removeAll(keepingCapacity: true)
    }

    /// Takes the event loop's memory for gathering.
    private func gather() {
        guard !isGathering else { return }
        isGathering = true
        out.bytes = loop.takeOutput()
    }
}
