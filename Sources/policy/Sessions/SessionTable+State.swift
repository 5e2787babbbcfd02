internal import AppAttest
package import ByteCoding
internal import DeviceKey
internal import Synchronization

// From one process to the next: the open sessions, and which of their numbers were used.
extension SessionTable {
    private static let version: UInt8 = 1

    /// What the next process needs. Whoever reads it can sign for every client: it goes to that
    /// process and nowhere else. No session may be opened and no number be used here afterwards,
    /// but by it: see ``handOver(to:)``.
    package var state: [UInt8] {
        var out = ByteWriter()
        out.byte(Self.version)
        out.block(secret)
        out.word(next.load(ordering: .relaxed))
        for shard in shards {
            for session in shard.sessions.withLock({ $0.all }) {
                out.byte(1)
                out.block(session.id.bytes)
                out.block(session.keyID.bytes)
                session.assertion.write(to: &out)
                session.writeWindow(to: &out)
            }
        }
        out.byte(0)
        return out.bytes
    }

    /// A table that goes on where another process has stopped.
    ///
    /// - `limits`: may be others than there. Sessions end when their ids say so; where there is
    ///   room for fewer, the oldest have ended.
    /// - `state`: of that process.
    package convenience init(
        _ limits: Limits = Limits(),
        goingOnFrom state: [UInt8]
    ) throws(ByteReader.Fault) {
        var state = ByteReader(state)
        guard try state.byte() == Self.version else { throw ByteReader.Fault() }
        let secret = try state.block(max: 32)
        guard secret.count == 32 else { throw ByteReader.Fault() }
        self.init(limits, secret: secret)
        next.store(try state.word(), ordering: .relaxed)
        while try state.flag() { try take(from: &state) }
        try state.end()
        while live.load(ordering: .relaxed) > limits.sessionsMax { endOldest(now: 0) }
    }

    private func take(from state: inout ByteReader) throws(ByteReader.Fault) {
        guard let id = SessionID(bytes: try state.block(max: SessionID.byteCount)),
            let keyID = KeyID(bytes: try state.block(max: 32))
        else { throw ByteReader.Fault() }
        let assertion = try VerifiedAssertion(from: &state)
        let window = try SequenceWindow(width: limits.window, from: &state)
        // A serial number that came twice would count twice.
        guard shard(of: id).sessions.withLock({ $0.find(id.serial) }) == nil else {
            throw ByteReader.Fault()
        }
        live.wrappingAdd(1, ordering: .relaxed)
        keep(session(id, window, keyID, assertion))
    }
}
