import ByteCoding
import Challenges
import Sessions
import TLSSession

/// What one process of a gateway remembers and the next one must know, each part as its owner
/// writes it.
struct HandoverState: Equatable, Sendable {
    /// Of the issuer: what was spent, and what challenges are recognised by.
    var challenges: [UInt8]
    /// Of the table of sessions.
    var sessions: [UInt8]
    /// Of the desk that asks Apple about devices: which tokens were used.
    var tokens: [UInt8]
    /// The keys of clients' TLS tickets.
    var tickets: [UInt8]

    var bytes: [UInt8] {
        var out = ByteWriter()
        out.block(challenges)
        out.block(sessions)
        out.block(tokens)
        out.block(tickets)
        return out.bytes
    }
}

extension HandoverState {
    init(_ bytes: [UInt8]) throws(ByteReader.Fault) {
        var bytes = ByteReader(bytes)
        challenges = try bytes.block()
        sessions = try bytes.block()
        tokens = try bytes.block()
        tickets = try bytes.block()
        try bytes.end()
    }
}

extension GatewayServer {
    /// What goes over to the next process. The lanes stand still.
    var handoverState: HandoverState {
        HandoverState(
            challenges: issuer.state,
            sessions: sessions.state,
            tokens: devices.state,
            tickets: tickets.state
        )
    }

    /// Takes over what needs no store, where there is a process before.
    func takeRest(of predecessor: Predecessor?) throws(GatewayError) {
        guard let handed = predecessor?.state?.handed else { return }
        guard devices.take(handed.tokens),
            tickets.take(handed.tickets, now: Self.monotonicSeconds)
        else { throw Predecessor.garbled }
    }

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
