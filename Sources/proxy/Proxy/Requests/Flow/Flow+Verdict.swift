import AppAttest
import Cryptography
import HTTPWire
import KeyStore
import Rules
import Verification

// The verdict and what follows from it.
extension Flow {
    /// The verdict is known: of the head, or of content that was held.
    mutating func ruled(_ ruling: Ruling, _ enforcement: Enforcement) -> Action {
        guard case .judging(let content) = state else { impossible("ruled") }
        return decide(ruling, enforcement, content)
    }

    /// Nothing in the head speaks against the request, and the verdict needs its content.
    ///
    /// - provisional: a ruling that names the key; its standing says whether the key has signed.
    mutating func contentAwaited(
        _ provisional: Ruling,
        _ enforcement: Enforcement
    ) -> Action {
        guard case .judging(.unread) = state else { impossible("contentAwaited") }
        judgement = .provisional(provisional, enforcement)
        state = .holding(.held)
        return .hold
    }

    /// The commit that the request waited for has ended.
    mutating func committed(_ decision: ConsumeDecision) -> Action {
        judgeAnew() ?? commitEnded { $0.settle(decision) }
    }

    /// The commit that the request waits for has not ended in time. Nothing more is said of it.
    mutating func commitTimedOut() -> Action {
        judgeAnew() ?? commitEnded { $0.settleWithoutCommit() }
    }

    /// The store was asked for the key. Whatever it has answered, the head is judged anew, or the
    /// content that is held; `nil` where something else was waited for.
    private mutating func judgeAnew() -> Action? {
        guard case .awaitingCommit(let content) = state, case .given(let ruling, _) = judgement,
            ruling.awaitsKey
        else { return nil }
        state = .judging(content)
        return content == .held ? .judgeContent : .judgeHead
    }

    private mutating func commitEnded(_ settle: (inout Ruling) -> Void) -> Action {
        if isOver { return .none }  // Late: the client has gone.
        guard case .awaitingCommit(let content) = state,
            case .given(var ruling, let enforcement) = judgement
        else { impossible("a commit ended") }
        settle(&ruling)
        return decide(ruling, enforcement, content)
    }

    /// It is known what Apple says of the device, or that it says nothing.
    mutating func deviceAnswered(_ finding: DeviceFinding) -> Action {
        if isOver { return .none }  // Late: the client has gone.
        guard case .awaitingDevice(let content) = state,
            case .given(var ruling, let enforcement) = judgement, let device = rule.device
        else { impossible("deviceAnswered") }
        ruling.settle(finding, device)
        judgement = .given(ruling, enforcement)
        if let refusal = refusal(of: ruling, enforcement) { return answer(.refused(refusal)) }
        return forward(content)
    }

    /// Mode × rollout × verdict. What is refused by it waits for nothing; the device is asked about
    /// last, so that a request which is refused anyway costs no call to Apple.
    mutating func decide(
        _ ruling: Ruling,
        _ enforcement: Enforcement,
        _ content: Content
    ) -> Action {
        judgement = .given(ruling, enforcement)
        if case .key(let ticket) = ruling.pending {
            hasSoughtKey = true
            state = .awaitingCommit(content)
            return .awaitCommit(ticket)
        }
        if let refusal = refusal(of: ruling, enforcement) { return answer(.refused(refusal)) }
        let isEnforced = if case .enforced = enforcement { true } else { false }
        if let ticket = ruling.awaitedTicket(isEnforced: isEnforced) {
            state = .awaitingCommit(content)
            return .awaitCommit(ticket)
        }
        guard rule.asksDevice, ruling.awaitsDevice else { return forward(content) }
        state = .awaitingDevice(content)
        return .askDevice
    }

    /// Why the request is answered here; `nil` where it goes on.
    private func refusal(of ruling: Ruling, _ enforcement: Enforcement) -> Refusal? {
        let isEnforced = if case .enforced = enforcement { true } else { false }
        return switch Decision(ruling, rule: rule, isEnforced: isEnforced) {
        case .refuse(let refusal): refusal
        case .forward: nil
        }
    }

    /// Nothing is waited for any more.
    private mutating func forward(_ content: Content) -> Action {
        switch purpose {
        case .service:
            state = .serving
            return .serve
        case .decision: return answer(.allowed)
        case .relay:
            connect(content)
            return .admit
        }
    }

    /// Looks for a server. The verdict is counted once it is final: content may change it.
    mutating func connect(_ content: Content) {
        if verdictCount == .none { verdictCount = .due }
        let told: Told = judgement.isPass ? .pass : .anything
        state = .connecting(Approach(content: content, attempt: .first, told: told))
    }

    /// The content changes the verdict, or makes it before all of it was judged.
    ///
    /// - Returns: whether the request is refused for it.
    mutating func changeVerdict(to refusal: Refusal) -> Enforcement {
        changeVerdict(to: .refuse(refusal))
    }

    /// The same, to any verdict.
    mutating func changeVerdict(to verdict: Verdict) -> Enforcement {
        switch judgement {
        case .none: return .observed
        case .provisional(var ruling, let enforcement), .given(var ruling, let enforcement):
            ruling.verdict = verdict
            judgement = .given(ruling, enforcement)
            if enforcement == .observed, verdictCount == .none { verdictCount = .due }
            return enforcement
        }
    }
}

/// What is known of a request's verdict.
enum Judgement: Sendable {
    /// Nothing: it was not judged, or needs no verdict.
    case none
    /// The head is good as far as it goes, and the content has to come.
    case provisional(Ruling, Enforcement)
    /// The verdict.
    case given(Ruling, Enforcement)

    /// The verdict and whether it is enforced, once there is one.
    var verdict: (ruling: Ruling, enforcement: Enforcement)? {
        switch self {
        case .none, .provisional: nil
        case .given(let ruling, let enforcement): (ruling, enforcement)
        }
    }

    /// Whether the assertion was used: its counter, or its challenge.
    var isProven: Bool {
        switch self {
        case .none, .provisional: false
        case .given(let ruling, _):
            if case .complete = ruling.standing { true } else { false }
        }
    }

    /// The key whose assertion, or session, the request was admitted by; `nil` where there is none.
    var admittedKey: KeyID? {
        guard isProven, refusal == nil, let (ruling, _) = verdict else { return nil }
        return ruling.keyID
    }

    /// The refusal that the verdict is, whether or not it is enforced.
    var refusal: Refusal? {
        switch self {
        case .none, .provisional: nil
        case .given(let ruling, _): ruling.refusal
        }
    }

    /// Whether the verdict is a pass.
    var isPass: Bool {
        switch self {
        case .none, .provisional: false
        case .given(let ruling, _):
            if case .pass = ruling.verdict { true } else { false }
        }
    }
}

/// Whether a verdict that is no pass refuses the request.
enum Enforcement: Equatable, Sendable {
    case observed
    case enforced

    /// Whether rule and rollout include the client.
    ///
    /// - signer: the key that has signed the request; `nil` when none is known to have. A key id
    ///   that is only named could be chosen so that it falls outside; such a request goes by the
    ///   client's address.
    init(_ rule: Rule, signer: KeyID?, address: IPAddress, at now: UnixTime) {
        switch rule.mode {
        case .off, .observe:
            self = .observed
            return
        case .deny:
            self = .enforced
            return
        case .enforce: break
        }
        let includes: Bool
        if let key = Self.key(rule, signer) {
            includes = rule.rollout.enforces(key.digest.bytes.span, at: now)
        } else {
            includes = rule.rollout.enforces(address.bytes.span, at: now)
        }
        self = includes ? .enforced : .observed
    }

    /// Where a request stands in the rollout of its rule, whatever mode and share say today.
    ///
    /// - signer, address: as above.
    static func bucket(_ rule: Rule, signer: KeyID?, address: IPAddress) -> Bucket {
        if let key = key(rule, signer) {
            rule.rollout.bucket(of: key.digest.bytes.span)
        } else {
            rule.rollout.bucket(of: address.bytes.span)
        }
    }

    /// The key that the rollout goes by; `nil` where it goes by the address.
    private static func key(_ rule: Rule, _ signer: KeyID?) -> KeyID? {
        switch rule.rollout.subject {
        case .key: signer
        case .address: nil
        }
    }
}
