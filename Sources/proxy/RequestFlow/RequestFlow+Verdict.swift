package import KeyStore
import Rules
package import Verification

// The verdict and what follows from it.
extension RequestFlow {
    /// The verdict is known: of the head, or of content that was held.
    package mutating func ruled(_ ruling: Ruling, _ enforcement: Enforcement) -> Action {
        switch state {
        case .judging(let content): return decide(ruling, enforcement, content)
        case .arriving, .locating, .calling, .collecting, .serving, .routing, .taking, .holding,
            .awaitingCommit, .connecting, .sending, .responding, .skipping, .over:
            impossible("ruled")
        }
    }

    /// Nothing in the head speaks against the request, and the verdict needs its content.
    ///
    /// - provisional: a ruling that names the key; its standing says whether the key has signed.
    package mutating func contentAwaited(
        _ provisional: Ruling,
        _ enforcement: Enforcement
    ) -> Action {
        switch state {
        case .judging(.unread):
            judgement = .provisional(provisional, enforcement)
            state = .holding(.judged)
            return .hold
        case .judging, .arriving, .locating, .calling, .collecting, .serving, .routing, .taking,
            .holding, .awaitingCommit, .connecting, .sending, .responding, .skipping, .over:
            impossible("contentAwaited")
        }
    }

    /// The commit that the request waited for has ended.
    package mutating func committed(_ decision: ConsumeDecision) -> Action {
        commitEnded { $0.settle(decision) }
    }

    /// The commit that the request waits for has not ended in time. Nothing more is said of it.
    package mutating func commitTimedOut() -> Action {
        commitEnded { $0.settleWithoutCommit() }
    }

    private mutating func commitEnded(_ settle: (inout Ruling) -> Void) -> Action {
        switch state {
        case .awaitingCommit(let content):
            guard case .given(var ruling, let enforcement) = judgement else {
                impossible("a commit ended without a verdict")
            }
            settle(&ruling)
            return decide(ruling, enforcement, content)
        case .skipping, .over: return .none  // Late: the client has gone.
        case .arriving, .locating, .calling, .collecting, .serving, .routing, .taking, .judging,
            .holding, .connecting, .sending, .responding:
            impossible("a commit ended")
        }
    }

    /// Mode × rollout × verdict.
    mutating func decide(
        _ ruling: Ruling,
        _ enforcement: Enforcement,
        _ content: Content
    ) -> Action {
        judgement = .given(ruling, enforcement)
        let isEnforced = if case .enforced = enforcement { true } else { false }
        switch Decision(ruling, rule: rule, isEnforced: isEnforced) {
        case .refuse(let refusal): return answer(.refused(refusal))
        case .forward: break
        }
        if let ticket = ruling.awaitedTicket(isEnforced: isEnforced) {
            state = .awaitingCommit(content)
            return .awaitCommit(ticket)
        }
        switch rule.goal {
        case .session:
            state = .serving
            return .serve
        case .origin:
            let told: Told = judgement.isPass ? .pass : .anything
            state = .connecting(Approach(content: content, attempt: .first, told: told))
            return .admit
        }
    }

    /// The content changes the verdict, or makes it before all of it was judged.
    ///
    /// - Returns: whether the request is refused for it.
    mutating func changeVerdict(to refusal: Refusal) -> Enforcement {
        switch judgement {
        case .none: return .observed
        case .provisional(var ruling, let enforcement), .given(var ruling, let enforcement):
            ruling.verdict = .refuse(refusal)
            judgement = .given(ruling, enforcement)
            return enforcement
        }
    }
}
