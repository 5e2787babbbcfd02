import Transport

/// Two connections after an upgrade: octets pass in both directions until both have ended.
final class Tunnel {
    private let client: ClientConnection
    private let origin: OriginConnection
    private let idleMilliseconds: UInt64
    private var clientEnded = false
    private var originEnded = false
    private var isOver = false
    private let finished: () -> Void

    init(
        _ client: ClientConnection,
        _ origin: OriginConnection,
        idleMilliseconds: UInt64,
        finished: @escaping () -> Void
    ) {
        self.client = client
        self.origin = origin
        self.idleMilliseconds = idleMilliseconds
        self.finished = finished
    }

    /// Sends octets that one side had sent before the tunnel stood.
    func begin(fromClient early: [UInt8]) {
        origin.setDeadline(milliseconds: nil)
        touch()
        if !early.isEmpty, case .failed = origin.write(early.span) { return end() }
        client.resumeReading()
        origin.resumeReading()
    }

    /// Passes on what one side has sent, as long as the other takes it.
    func relay(from source: Connection) {
        let target = source === client ? origin : client
        while !isOver, target.unsentBytes == 0 {
            switch source.read() {
            case .octets(let octets):
                touch()
                if case .failed = target.write(octets.span) { return end() }
            case .wouldBlock: return
            case .ended: return ended(source, target)
            case .failed: return end()
            }
        }
    }

    func drained(_ target: Connection) {
        touch()
        let source = target === client ? origin : client
        source.resumeReading()
    }

    private func ended(_ source: Connection, _ target: Connection) {
        guard source === client ? !clientEnded : !originEnded else { return }
        if source === client { clientEnded = true } else { originEnded = true }
        target.shutDownOutput()
        if clientEnded, originEnded { end() }
    }

    /// The client is gone in both directions. Behind the origin's end that is the client's own end,
    /// and what it sent before is still to be read.
    func clientBroke() {
        if !originEnded { end() }
    }

    private func touch() { client.setDeadline(milliseconds: idleMilliseconds) }

    /// Closes both sides.
    func end() {
        guard !isOver else { return }
        isOver = true
        origin.close()
        client.close()
        finished()
    }
}
