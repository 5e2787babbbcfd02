import HTTPWire
import KeyStore
import Rules
import Verification

@testable import Proxy

/// What a transcript tells the machine.
enum Event {
    case headRead
    case headMalformed(Malformed.Reason)
    case requestCounted
    case addressThrottled
    case located(Destination)
    case serviceRefused
    case callCounted
    case routed(whole: UInt64?)
    case unroutable(Malformed.Reason)
    case contentTaken(UInt64)
    case ruled(Ruling, Enforcement = .enforced)
    case contentAwaited(Enforcement = .enforced)
    case committed(ConsumeDecision)
    case commitTimedOut
    case deviceAnswered(DeviceFinding)
    case contentReady
    case received(Int, isLast: Bool = false)
    case holdFailed(Refusal)
    case contentRead(isLast: Bool)
    case contentMalformed(Malformed.Reason)
    case contentTimedOut
    case endJudged(Verdict?)
    case contentSent
    case contentSkipped(isWhole: Bool)
    case connected(
        Via = .reused,
        inMemory: UInt64 = 0,
        clientSent: Flow.Arrival = .partial,
        retriesMax: Int = 0
    )
    case connectFailed(ConnectFault)
    case headSent
    case heldSent(Int)
    case heldUnreadable
    case originQueued
    case originDrained
    case writeFailed(isUntouched: Bool)
    case lastWordsRead(Flow.Heard, Flow.RetryBudget = .left)
    case originBroke(Flow.Heard, Flow.RetryBudget = .left)
    case originTimedOut(
        client: Output,
        Flow.Heard = .nothing,
        Flow.RetryBudget = .left
    )
    case responseBegan(ResponseKind)
    case tunnelBegan
    case responseEnded
    case responseMalformed(OriginFault)
    case served
    case storingTimedOut
    case clientBroke
    case clientClosed
}

/// What the machine says to an event.
enum Reaction: Equatable {
    case does(Flow.Action)
    case takes(Flow.Take.Place, Flow.Take.News)
    case closesClient(Bool)
    case nothing

    fileprivate init(_ take: Flow.Take) { self = .takes(take.place, take.news) }
}

extension Event {
    /// Tells the machine.
    func happen(to flow: inout Flow, _ rule: Rule) -> Reaction {
        switch self {
        case .received(let count, let isLast):
            Reaction(flow.contentReceived(count, isLast: isLast))
        case .holdFailed(let refusal): Reaction(flow.holdFailed(refusal))
        case .endJudged(let fault): Reaction(flow.endJudged(fault))
        case .clientBroke: .closesClient(flow.clientBroke())
        case .originQueued:
            {
                flow.originQueued()
                return .nothing
            }()
        case .tunnelBegan:
            {
                flow.tunnelBegan()
                return .nothing
            }()
        default: .does(action(of: &flow, rule))
        }
    }

    private func action(of flow: inout Flow, _ rule: Rule) -> Flow.Action {
        switch self {
        case .headRead: flow.headRead()
        case .headMalformed(let reason): flow.headMalformed(reason)
        case .requestCounted: flow.requestCounted()
        case .addressThrottled: flow.addressThrottled()
        case .located(let destination): flow.located(destination)
        case .serviceRefused: flow.serviceRefused()
        case .callCounted: flow.callCounted()
        case .routed(let whole): flow.routed(to: rule, whole: whole)
        case .unroutable(let reason): flow.unroutable(rule, reason)
        case .contentTaken(let count): flow.contentTaken(count)
        case .ruled(let ruling, let enforcement): flow.ruled(ruling, enforcement)
        case .contentAwaited(let enforcement): flow.contentAwaited(Ruling(.pass), enforcement)
        case .committed(let decision): flow.committed(decision)
        case .commitTimedOut: flow.commitTimedOut()
        case .deviceAnswered(let finding): flow.deviceAnswered(finding)
        case .contentReady: flow.contentReady()
        case .contentRead(let isLast): flow.contentRead(isLast: isLast)
        case .contentMalformed(let reason): flow.contentMalformed(reason)
        case .contentTimedOut: flow.contentTimedOut()
        case .contentSent: flow.contentSent()
        case .contentSkipped(let isWhole): flow.contentSkipped(isWhole: isWhole)
        default: originAction(of: &flow)
        }
    }

    private func originAction(of flow: inout Flow) -> Flow.Action {
        switch self {
        case .connected(let via, let inMemory, let clientSent, let retriesMax):
            flow.connected(
                via,
                inMemory: inMemory,
                clientSent: clientSent,
                retriesMax: retriesMax
            )
        case .connectFailed(let fault): flow.connectFailed(fault)
        case .headSent: flow.headSent()
        case .heldSent(let count): flow.heldSent(count)
        case .heldUnreadable: flow.heldUnreadable()
        case .originDrained: flow.originDrained()
        case .writeFailed(let isUntouched): flow.writeFailed(isUntouched: isUntouched)
        case .lastWordsRead(let heard, let budget): flow.lastWordsRead(heard, budget)
        case .originBroke(let heard, let budget): flow.originBroke(heard, budget)
        case .originTimedOut(let client, let heard, let budget):
            flow.originTimedOut(client: client, heard, budget)
        case .responseBegan(let kind): flow.responseBegan(kind)
        case .responseEnded: flow.responseEnded()
        case .responseMalformed(let fault): flow.responseMalformed(fault)
        case .served: flow.served()
        case .storingTimedOut: flow.storingTimedOut()
        case .clientClosed: flow.clientClosed()
        default: preconditionFailure("Event: \(self) has no action")
        }
    }
}
