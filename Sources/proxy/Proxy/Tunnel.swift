import Lanes

/// Two connections after an upgrade: octets pass in both directions until both have ended.
final class Tunnel {
    /// Both connections hold the tunnel as long as they live, so it lets go of them at its end:
    /// `nil` from then on.
    private var sides: (client: ClientConnection, origin: OriginConnection)?
    private let idleMilliseconds: UInt64
    private var clientEnded = false
    private var originEnded = false

    init(_ client: ClientConnection, _ origin: OriginConnection, idleMilliseconds: UInt64) {
        sides = (client, origin)
        self.idleMilliseconds = idleMilliseconds
    }

    /// Sends octets that one side had sent before the tunnel stood.
    func begin(fromClient early: [UInt8]) {
        guard let (client, origin) = sides else { return }
        origin.setDeadline(milliseconds: nil)
        touch()
        if !early.isEmpty, case .failed = origin.write(early.span) { return end() }
        client.resumeReading()
        origin.resumeReading()
    }

    /// Passes on what one side has sent, when the other takes it: one read, then it is the turn of
    /// the lane's other connections.
    func relay(from source: Connection) {
        guard let target = other(than: source), target.unsentBytes == 0 else { return }
        switch source.read() {
        case .octets(let octets):
            touch()
            if case .failed = target.write(octets.span) { return end() }
            if target.unsentBytes == 0 { source.resumeReading() }
        case .wouldBlock: return
        case .ended: return ended(source, target)
        case .failed: return end()
        }
    }

    func drained(_ target: Connection) {
        touch()
        other(than: target)?.resumeReading()
    }

    private func other(than side: Connection) -> Connection? {
        sides.map { $0.client === side ? $0.origin : $0.client }
    }

    private func ended(_ source: Connection, _ target: Connection) {
        let isClient = source === sides?.client
        guard isClient ? !clientEnded : !originEnded else { return }
        if isClient { clientEnded = true } else { originEnded = true }
        target.shutDownOutput()
        if clientEnded, originEnded { end() }
    }

    /// The client is gone in both directions. Behind the origin's end that is the client's own end,
    /// and what it sent before is still to be read.
    func clientBroke() {
        if !originEnded { end() }
    }

    private func touch() { sides?.client.setDeadline(milliseconds: idleMilliseconds) }

    /// Closes both sides.
    func end() {
        guard let (client, origin) = sides else { return }
        sides = nil
        origin.close()
        client.close()
    }
}
