import Encodings
import EventLoops
import KeyStore
import Parties
import Proxy
import Tokens

/// A part that decides about requests from its own memory. At a hand-over the successor gets that
/// memory, and then decides for both processes: see `Upgrade`.
protocol Transferable: Sendable {
    /// What the successor needs. Secret: it goes to that process alone. Nothing may change
    /// afterwards until the hand-over has succeeded or failed.
    var state: [UInt8] { get }
    /// From now on this part asks the successor, which has read ``state``.
    func handOver(to successor: any Successor)
    /// Answers a query of the predecessor; `nil` for a query about another part.
    func answer(_ question: [UInt8]) -> [UInt8]?
}

extension ChallengeIssuer: Transferable {}
extension SessionTable: Transferable {}
extension DeviceCheckClient: Transferable {}

/// What one process of a gateway hands over to its successor: all that decides whether a request
/// is a replay, the keys of clients' tickets, and the servers that operators have drained.
struct TransferredParts: Sendable {
    let keys: KeyTable
    let challenges: ChallengeIssuer
    let sessions: SessionTable
    let devices: DeviceCheckClient
    let tickets: TicketKeys
    let registry: OriginRegistry

    private var deciders: [any Transferable] { [challenges, sessions, devices] }

    /// The state for the successor. The event loops are quiesced.
    ///
    /// - orders: those of operators, which are accepted no more.
    func state(orders: [UInt8]) -> HandoverState {
        HandoverState(
            challenges: challenges.state,
            sessions: sessions.state,
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

    /// From now on the successor decides.
    func handOver(to successor: any Successor) {
        keys.handOver(to: successor)
        for decider in deciders { decider.handOver(to: successor) }
    }

    /// Answers the predecessor's queries. The function is called for one query after the other.
    func answering() -> Predecessor.Answering {
        let (service, deciders) = (SuccessorService(keys, challenges), deciders)
        return { question, reply in
            // Each is asked once: an answer means that its effect is done.
            for decider in deciders {
                if let answer = decider.answer(question) { return reply(answer) }
            }
            service.answer(question, reply)
        }
    }
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
