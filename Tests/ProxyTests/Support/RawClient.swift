import EventLoops

/// Sends bytes and gathers what comes back until the server closes.
final class RawClient: Connection {
    var toSend: [UInt8] = []
    /// Ends its direction once everything is sent, as `nc` does.
    var endsOutput = false
    /// Called before anything is read.
    var readable: (() -> Void)?
    var received: [UInt8] = []
    /// Called with each bytes that came, all of them so far.
    var progressed: (([UInt8]) -> Void)?
    var finished: (([UInt8]) -> Void)?

    override func connectEnded(_ error: SocketError?) {
        guard error == nil else { return finish() }
        begin()
    }

    func begin() {
        let bytes = toSend
        if case .failed = write(bytes.span) { return finish() }
        if endsOutput, unsentBytes == 0 { shutDownOutput() }
    }

    func send(_ text: String) {
        let bytes = Array(text.utf8)
        if case .failed = write(bytes.span) { finish() }
    }

    override func inputReady() {
        readable?()
        while true {
            switch read() {
            case .bytes(let bytes):
                received.append(contentsOf: bytes)
                progressed?(received)
            case .wouldBlock: return
            case .ended, .failed: return finish()
            }
        }
    }

    private func finish() {
        close()
        finished?(received)
        finished = nil
        readable = nil
        progressed = nil
    }
}
