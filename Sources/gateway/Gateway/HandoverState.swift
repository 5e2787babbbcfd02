import ByteCoding
import Challenges
import JSONText
import Proxy
import Rules
import Sessions
import TLSSession

/// What one process of a gateway remembers and the next one must know, each part as its owner
/// writes it.
struct HandoverState: Equatable, Sendable {
    /// Of the issuer: what was spent, and what challenges are recognised by.
    var challenges: [UInt8]
    /// Of the table of sessions.
    var sessions: [UInt8]
    /// Of the client that asks Apple about devices: which tokens were used.
    var tokens: [UInt8]
    /// The keys of clients' TLS tickets.
    var tickets: [UInt8]
    /// What operators have ordered about rollouts, as its file has it.
    var orders: [UInt8]
    /// The servers that operators drain.
    var drained: [String]

    /// The most servers that can be drained; a configuration has fewer.
    private static let drainedMax = 1 << 16

    var bytes: [UInt8] {
        var out = ByteWriter()
        out.block(challenges)
        out.block(sessions)
        out.block(tokens)
        out.block(tickets)
        out.block(orders)
        out.word(UInt64(drained.count))
        for server in drained { out.text(server) }
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
        orders = try bytes.block()
        let count = try bytes.word()
        guard count <= UInt64(Self.drainedMax) else { throw ByteReader.Fault() }
        drained = []
        for _ in 0..<count { drained.append(try bytes.text()) }
        try bytes.end()
    }
}

extension GatewayServer {
    /// What goes over to the next process. The event loops stand still, and no orders are taken.
    func handoverState(_ orders: RolloutOrders) -> HandoverState {
        HandoverState(
            challenges: judging.issuer.state,
            sessions: judging.sessions.state,
            tokens: parts.apple.devices.state,
            tickets: tickets.state,
            orders: orders.json,
            drained: parts.directory.registry.drained
        )
    }

    /// The orders of the process before, whose drained servers are drained here, too; `nil` without
    /// one. It may have an order that its file has not.
    static func orders(
        of predecessor: Predecessor?,
        _ registry: OriginRegistry
    ) throws(GatewayError) -> RolloutOrders? {
        guard let handed = predecessor?.state?.handed else { return nil }
        for server in handed.drained { registry.drain(server) }
        do throws(JSONError) {
            return try RolloutOrders(json: handed.orders.span)
        } catch {
            throw Predecessor.garbled
        }
    }

    /// Takes over what needs no store, where there is a process before.
    func takeRest(of predecessor: Predecessor?) throws(GatewayError) {
        guard let handed = predecessor?.state?.handed else { return }
        guard parts.apple.devices.take(handed.tokens),
            tickets.take(handed.tickets, now: ControlPlane.monotonicSeconds)
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
