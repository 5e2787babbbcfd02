import Expectations
import HTTPWire
import KeyStore
import Rules
import Services
import Testing
import Verification

@testable import Proxy

/// What a transcript tells the machine.
enum Event {
    case decides(AskedContent)
    case declined(Reply)
    case malformed(Malformed.Reason)
    case asked(contentMax: UInt64)
    case askedByRule
    case routed
    case took(UInt64)
    case unjudged
    case denied
    case judged(Verdict, Enforcement = .enforced)
    case contentAwaited(Enforcement = .enforced)
    case committed(ConsumeDecision)
    case commitTimedOut
    case deviceAnswered(DeviceFinding)
    case tokenAnswered(TokenProof, TokenFinding)
    case contentReady
    case received(Int, isLast: Bool = false)
    case holdFailed(Refusal)
    case contentRead(isLast: Bool)
    case contentMalformed(Malformed.Reason)
    case contentTimedOut
    case endJudged(Verdict.Outcome?)
    case contentSent
    case connected(
        Via = .reused,
        inMemory: UInt64 = 0,
        clientSent: Leg.Arrival = .partial,
        retriesMax: Int = 0,
        mayRefuse: Bool = false
    )
    case connectFailed(OriginFailure)
    case headSent
    case heldSent(Int)
    case heldUnreadable
    case originQueued
    case originDrained
    case writeFailed(isUntouched: Bool)
    case lastWordsRead(Leg.Heard, Leg.RetryBudget = .left)
    case originBroke(Leg.Heard, Leg.RetryBudget = .left)
    case originRefused(Leg.RetryBudget = .left)
    case originTimedOut(
        client: Output,
        Leg.Heard = .nothing,
        Leg.RetryBudget = .left
    )
    case responseBegan(ResponseKind)
    case tunnelBegan
    case responseEnded
    case responseMalformed(OriginFailure)
    case served
    case storingTimedOut
    case clientBroke
    case clientClosed
}

/// What the machine says to an event.
enum Reaction: Equatable {
    case does(Flow.Action)
    case takes(Flow.Take, changesVerdict: Bool)
    case closesClient(Bool)
    case nothing
}

extension Event {
    /// Tells the machine.
    func happen(to flow: inout Flow, _ rule: Rule) -> Reaction {
        let before = flow.verdictState.refusal
        let take: Flow.Take
        switch self {
        case .received(let count, let isLast):
            take = flow.contentReceived(count, isLast: isLast)
        case .holdFailed(let refusal): take = flow.holdFailed(refusal)
        case .endJudged(let fault): take = flow.endJudged(fault)
        default: return reaction(of: &flow, rule)
        }
        // A verdict that stops the request is counted with the answer.
        if case .stop = take { return .takes(take, changesVerdict: false) }
        let isChanged = flow.verdictState.refusal != before
        if isChanged { expectEqual(flow.verdictState.count, .due) }
        return .takes(take, changesVerdict: isChanged)
    }

    private func reaction(of flow: inout Flow, _ rule: Rule) -> Reaction {
        switch self {
        case .clientBroke: return .closesClient(flow.clientBroke())
        case .originQueued: flow.originQueued()
        case .tunnelBegan: flow.tunnelBegan()
        case .decides(let content): flow.decides(.forwardAuth, content)
        case .askedByRule: flow.asked(by: rule)
        case .routed: flow.routed(to: rule)
        case .took(let count):
            let place = Content.place(ofWhole: count, by: rule)
            if place != .unread { flow.took(count, as: place) }
        default: return .does(action(of: &flow, rule))
        }
        return .nothing
    }

    private func action(of flow: inout Flow, _ rule: Rule) -> Flow.Action {
        switch self {
        case .declined(let reply): flow.declined(reply)
        case .malformed(let reason): flow.malformed(reason)
        case .asked(let contentMax): flow.asked(contentMax: contentMax)
        case .unjudged: flow.unjudged()
        case .denied: flow.judged(Verdict(.refuse(.noRule)), .enforced)
        case .judged(let verdict, let enforcement): flow.judged(verdict, enforcement)
        case .contentAwaited(let enforcement): flow.contentAwaited(Verdict(.pass), enforcement)
        case .committed(let decision): flow.committed(decision)
        case .commitTimedOut: flow.commitTimedOut()
        case .deviceAnswered(let finding): flow.answered(.device(finding))
        case .tokenAnswered(let proof, let finding): flow.answered(.token(proof, finding))
        case .contentReady: flow.contentReady()
        case .contentRead(let isLast): flow.contentRead(isLast: isLast)
        case .contentMalformed(let reason): flow.contentMalformed(reason)
        case .contentTimedOut: flow.contentTimedOut()
        case .contentSent: flow.contentSent()
        default: originAction(of: &flow)
        }
    }

    private func originAction(of flow: inout Flow) -> Flow.Action {
        switch self {
        case .connected(let via, let inMemory, let clientSent, let retriesMax, let mayRefuse):
            flow.connected(
                via,
                inMemory: inMemory,
                clientSent: clientSent,
                retriesMax: retriesMax,
                mayRefuse: mayRefuse
            )
        case .connectFailed(let failure): flow.connectFailed(failure)
        case .headSent: flow.headSent()
        case .heldSent(let count): flow.heldSent(count)
        case .heldUnreadable: flow.heldUnreadable()
        case .originDrained: flow.originDrained()
        case .writeFailed(let isUntouched): flow.writeFailed(isUntouched: isUntouched)
        case .lastWordsRead(let heard, let budget): flow.lastWordsRead(heard, budget)
        case .originBroke(let heard, let budget): flow.originBroke(heard, budget)
        case .originRefused(let budget): flow.originRefused(budget)
        case .originTimedOut(let client, let heard, let budget):
            flow.originTimedOut(client: client, heard, budget)
        case .responseBegan(let kind): flow.responseBegan(kind)
        case .responseEnded: flow.responseEnded()
        case .responseMalformed(let failure): flow.responseMalformed(failure)
        case .served: flow.served()
        case .storingTimedOut: flow.storingTimedOut()
        case .clientClosed: flow.clientClosed()
        default: preconditionFailure("Event: \(self) has no action")
        }
    }
}
