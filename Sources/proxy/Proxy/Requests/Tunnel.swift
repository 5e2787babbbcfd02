import EventLoops

/// Two streams after an upgrade: bytes are forwarded in both directions until both have ended.
final class Tunnel: ByteStreamOwner {
    /// Both streams reference the tunnel while they live. So the tunnel releases them at its end:
    /// `nil` from then on.
    private var sides: (client: any ByteStream, origin: any ByteStream)?
    private let idleMilliseconds: UInt64
    /// Whether the client is at the other end of a Unix socket.
    private let isUnix: Bool
    private var clientEnded = false
    private var originEnded = false
    /// The client has closed both directions. The tunnel ends when its last bytes were read.
    private var clientIsGone = false
    /// The client's stream is closed, and the tunnel ends when the origin has taken its last bytes.
    private var awaitsOrigin = false
    private var carried = Carried()
    /// Called once, when both sides are closed.
    private let ended: (Carried) -> Void

    /// Bytes that a tunnel has carried.
    struct Carried {
        var fromClient: UInt64 = 0
        var fromOrigin: UInt64 = 0
    }

    init(idleMilliseconds: UInt64, isUnix: Bool, ended: @escaping (Carried) -> Void) {
        self.idleMilliseconds = idleMilliseconds
        self.isUnix = isUnix
        self.ended = ended
    }

    /// Sends the bytes that the client sent before the tunnel began.
    ///
    /// - behind: bytes of the origin that came with its response, and were sent with it.
    func begin(
        _ client: any ByteStream,
        _ origin: any ByteStream,
        fromClient early: [UInt8],
        fromOrigin behind: Int
    ) {
        carried = Carried(fromClient: UInt64(early.count), fromOrigin: UInt64(behind))
        sides = (client, origin)
        origin.setDeadline(milliseconds: nil)
        touch()
        if !early.isEmpty, case .failed = origin.write(early.span) { return end() }
        client.resumeReading()
        origin.resumeReading()
    }

    /// Forwards the bytes of one side, when the other takes them: one read. Then the event loop's
    /// other connections have their turns.
    func readable(_ source: any ByteStream) {
        guard let target = other(than: source), target.unsentBytes == 0 else { return }
        switch source.read() {
        case .bytes(let bytes):
            touch()
            if source === sides?.client {
                carried.fromClient += UInt64(bytes.count)
            } else {
                carried.fromOrigin += UInt64(bytes.count)
            }
            if case .failed = target.write(bytes.span) { return end() }
            if target.unsentBytes == 0 { source.resumeReading() }
        case .wouldBlock: return
        case .ended: return ended(source, target)
        case .failed: return end()
        }
    }

    func drained(_ target: any ByteStream) {
        if awaitsOrigin {
            sides?.origin.shutDownOutput()
            return end()
        }
        touch()
        other(than: target)?.resumeReading()
    }

    private func other(than side: any ByteStream) -> (any ByteStream)? {
        sides.map { $0.client === side ? $0.origin : $0.client }
    }

    private func ended(_ source: any ByteStream, _ target: any ByteStream) {
        let isClient = source === sides?.client
        guard isClient ? !clientEnded : !originEnded else { return }
        if isClient { clientEnded = true } else { originEnded = true }
        target.shutDownOutput()
        if clientEnded, originEnded || clientIsGone { end() }
    }

    /// The client has closed both directions. Bytes that it sent before are still to be read in two
    /// cases: after the origin's end, where the event may be the client's own end, and on a Unix
    /// socket, whose close ends both directions at once.
    func broke(_ stream: any ByteStream) {
        if originEnded { return }
        guard isUnix, !clientEnded else { return end() }
        clientIsGone = true
    }

    /// The client's stream has ended. The origin gets all that it has sent, though it may take it
    /// later.
    func endedInOrder(_ stream: any ByteStream) {
        guard let (client, origin) = sides else { return }
        while case .bytes(let bytes) = client.read() {
            carried.fromClient += UInt64(bytes.count)
            if case .failed = origin.write(bytes.span) { return end() }
        }
        clientEnded = true
        awaitsOrigin = true
        guard origin.unsentBytes > 0 else { return drained(origin) }
        origin.setDeadline(milliseconds: idleMilliseconds)
    }

    func failed(_ stream: any ByteStream) { end() }

    func closed(_ stream: any ByteStream) { if !awaitsOrigin { end() } }

    private func touch() { sides?.client.setDeadline(milliseconds: idleMilliseconds) }

    /// Closes both sides.
    private func end() {
        guard let (client, origin) = sides else { return }
        sides = nil
        origin.close()
        client.close()
        ended(carried)
    }
}
