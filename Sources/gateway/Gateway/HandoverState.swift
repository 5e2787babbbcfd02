import ByteCoding
import Sessions

/// What one process of a gateway remembers and the next one must know, each part as its owner
/// writes it.
struct HandoverState: Equatable, Sendable {
    /// Of the issuer: what was spent, and what challenges are recognised by.
    var challenges: [UInt8]
    /// Of the table of sessions.
    var sessions: [UInt8]

    var bytes: [UInt8] {
        var out = ByteWriter()
        out.block(challenges)
        out.block(sessions)
        return out.bytes
    }
}

extension HandoverState {
    init(_ bytes: [UInt8]) throws(ByteReader.Fault) {
        var bytes = ByteReader(bytes)
        challenges = try bytes.block()
        sessions = try bytes.block()
        try bytes.end()
    }
}

extension GatewayServer {
    /// The open sessions: those of the process before, where there is one.
    static func sessions(
        _ limits: SessionTable.Limits,
        _ predecessor: Predecessor?
    ) throws(GatewayError) -> SessionTable {
        guard let state = predecessor?.state?.handed.sessions else { return SessionTable(limits) }
        do throws(ByteReader.Fault) {
            return try SessionTable(limits, goingOnFrom: state)
        } catch {
            throw Predecessor.garbled
        }
    }
}
