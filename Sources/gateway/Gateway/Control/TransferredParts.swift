import Encodings
import EventLoops
import KeyStore
import Parties
import Proxy
import Tokens

/// What one process of a gateway hands over to its successor: all that decides whether a request
/// is a replay, the keys of clients' tickets, and the servers that operators have drained.
struct TransferredParts: Sendable {
    let decider: Decider
    let devices: DeviceCheckClient
    let tickets: TicketKeys
    let registry: OriginRegistry

    /// The state for the successor. The event loops are quiesced. Secret: it goes to that process
    /// alone. Nothing may change afterwards until the hand-over has succeeded or failed.
    ///
    /// - orders: those of operators, which are accepted no more.
    func state(orders: [UInt8]) -> HandoverState {
        HandoverState(
            challenges: decider.challenges.state,
            sessions: decider.sessions.state,
            tokens: devices.state,
            tickets: tickets.state,
            orders: orders,
            drained: registry.drained
        )
    }

    /// Takes over the rest: the issuer, the sessions and the origins were made from their state.
    func take(_ handed: HandoverState) throws(GatewayError) {
        guard devices.take(handed.tokens),
            tickets.take(handed.tickets, now: ControlPlane.monotonicSeconds)
        else { throw Predecessor.garbled }
    }

    /// Answers the predecessor's questions.
    func answering() -> SuccessorService { SuccessorService(decider, tokens: devices) }
}

extension SessionTable {
    /// The open sessions: those of the predecessor, where there is one.
    static func goingOn(
        _ limits: Limits,
        from predecessor: Predecessor?
    ) throws(GatewayError) -> SessionTable {
        guard let state = predecessor?.state?.handed.sessions else { return SessionTable(limits) }
        do throws(ByteReader.Fault) {
            return try SessionTable(limits, goingOnFrom: state)
        } catch {
            throw Predecessor.garbled
        }
    }
}
