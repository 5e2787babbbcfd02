import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One request's life: which proof it carries, and what its answers mean.
///
/// ```
/// began ──▶ with proof or without ──▶ answered ──▶ deliver
///   ▲                                    │
///   └──────────────── again ─────────────┘   at most `maximumAttempts` times
/// ```
///
/// A request that is sent without proof to ask what its route signs takes nothing from the tries,
/// nor does one that is sent while its key is being enrolled, or while that is held: its time ends
/// both.
///
/// A refusal may be of a copy: something on the way sent the request twice, and the answer to the
/// first is lost. A request that may run once only ends then. See ``mayHaveRun``.
///
/// The driver performs the effects in their order, then the step.
struct RequestMachine: Sendable {
    /// What the request is to carry.
    enum Want: Equatable, Sendable {
        case assertion(SigningRequirement)
        /// A session's signature; an assertion where there is no session and the route takes one.
        case session(SigningRequirement)
        case nothing(SentProof.Absence)
    }

    /// What an answer says.
    struct Answer: Equatable, Sendable {
        let status: Int
        /// What the gateway refused, where the answer is its own.
        var refusal: GatewayRefusal?
        /// How long the gateway wants the client to wait, in seconds.
        var retryAfter: Double?
        /// What it says about the route.
        var lesson: RouteLesson?
        /// What would be next if the rule enforced.
        var next: GatewayRefusal.Next?
        /// The key that this is about, where the answer says so.
        var nextKeyID: String?
        /// Why, where the answer says so.
        var nextReason: String?
    }

    /// What is changed because of an answer.
    enum Effect: Equatable, Sendable {
        case learn(RouteLesson)
        /// The route compares counters strictly.
        case expectStrict
        /// The proof was not found where it was put: the route has the usual names, and the
        /// challenge in its field.
        case expectUsualPlaces
        /// The route takes no sessions.
        case expectAssertions
        /// The route asks for a device token.
        case expectDeviceToken
        case forgetKey(String, reason: String)
        case forgetChallenges
        case forgetSession
        /// Enrols a key beside everything else.
        case enrol
    }

    /// What is done with an answer.
    enum Step: Equatable, Sendable {
        /// It is the caller's.
        case deliver
        /// The request is sent again, with what it wants then.
        case again
        /// The same at a time: when an enrolment may begin, or the gateway wants it.
        case againAfter(Date)
    }

    struct Verdict: Equatable, Sendable {
        var effects: [Effect] = []
        var step: Step
    }

    /// What the next try does, whatever is known of the route.
    private enum Insistence { case none, onNothing, onAssertion }

    /// How far it came, so that it can go on in another process.
    struct Progress: Hashable, Sendable, Codable {
        fileprivate var tries = 0
        /// How often it was asked what the route signs.
        fileprivate var questions = 0
        fileprivate var hasAskedBare = false
        fileprivate var hasForgottenKey = false
        fileprivate var hasBeenRefused = false
        /// How often it was sent while its key was being enrolled.
        fileprivate var unfinished = 0
        /// How often it was sent while no enrolment was tried; `nil` for never, and from earlier
        /// versions.
        fileprivate var held: Int?

        fileprivate mutating func count(_ proof: SentProof) {
            switch proof {
            case .none(.routeUnknown), .none(.notAsked): questions += 1
            case .none(.enrolling): unfinished += 1
            case .none(.enrolmentHeld): held = (held ?? 0) + 1
            case .assertion, .session, .none: tries += 1
            }
        }
    }

    private(set) var progress: Progress
    private let limits: PortcullisLimits
    private let usesSessions: Bool
    /// Whether the origin may run the request more than once: its method is idempotent (RFC 9110
    /// §9.2.2), or it has an `Idempotency-Key`.
    private let isRepeatable: Bool
    private var insistence = Insistence.none
    /// What was signed last.
    private var asked: SigningRequirement?
    /// Whether the last answer refused a copy of a request that may run once only: the origin may
    /// have run it already.
    private(set) var mayHaveRun = false
    /// How much longer it waits.
    var patience: Patience
    /// Whether it is never sent without a proof, not even to ask.
    var requiresProof = false
    /// Whether the request waits until its key is enrolled. One that its rule forwards in any case
    /// goes at once, and the key is enrolled beside it.
    private(set) var waitsForKey = true

    /// How often one request is sent while its key is being enrolled. More than one such answer
    /// comes where enrolments end before their time, as with a reset.
    static let unfinishedMax = 8
    /// How often one request is sent while no enrolment is tried. Each time is half a second apart
    /// at least.
    static let heldMax = 16
    /// The reasons for which a proof is refused that was used before. A copy is refused for one of
    /// them before its device token is looked up.
    private static let signsOfACopy: Set = [
        "counter-replayed", "challenge-spent", "session-replayed",
    ]

    init(
        limits: PortcullisLimits,
        usesSessions: Bool,
        isRepeatable: Bool,
        patience: Patience,
        progress: Progress = Progress()
    ) {
        (self.limits, self.usesSessions) = (limits, usesSessions)
        self.isRepeatable = isRepeatable
        (self.patience, self.progress) = (patience, progress)
    }

    /// Whether a request may run more than once, by what it says of itself.
    static func isRepeatable(_ request: URLRequest) -> Bool {
        switch request.httpMethod ?? "GET" {
        case "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE": true
        default: request.value(forHTTPHeaderField: "Idempotency-Key")?.isEmpty == false
        }
    }

    // MARK: Before it is sent

    /// What the request is to carry, now.
    ///
    /// - Parameters:
    ///   - knowledge: what is known of its route.
    ///   - isOwnOrigin: whether it goes to the gateway.
    ///   - observes: whether the gateway said that the route's rule only observes.
    /// - Returns: the proof, as far as it can be had.
    mutating func began(
        _ knowledge: RouteTable.Knowledge,
        isOwnOrigin: Bool,
        observes: Bool = false
    ) -> Want {
        waitsForKey = !observes || progress.hasBeenRefused || requiresProof
        asked = nil
        guard isOwnOrigin else { return .nothing(.otherOrigin) }
        if insistence == .onNothing { return .nothing(.routeUnknown) }
        switch knowledge {
        case .unknown: return .nothing(.routeUnknown)
        case .asksNothing: return .nothing(.notAsked)
        case .asks(let requirement):
            asked = requirement
            if usesSessions, insistence != .onAssertion, requirement.takesSession {
                return .session(requirement)
            }
            let isFit = requirement.accepts.contains(.assertion)
            return isFit ? .assertion(requirement) : .nothing(.requestUnfit)
        }
    }

    // MARK: After it was answered

    /// What an answer means.
    mutating func answered(
        _ answer: Answer,
        to proof: SentProof,
        deviceToken: DeviceTokenOutcome = .notAsked,
        now: Date
    ) -> Verdict {
        (insistence, mayHaveRun) = (.none, false)
        progress.count(proof)
        if case .none(.otherOrigin) = proof { return Verdict(step: .deliver) }
        if let refusal = answer.refusal {
            progress.hasBeenRefused = true
            if isOfACopy(refusal, proof) {
                mayHaveRun = true
                let learned = answer.lesson.map { [Effect.learn($0)] } ?? []
                let forgotten = effects(of: refusal.reason, proof)
                return Verdict(effects: learned + forgotten, step: .deliver)
            }
            return refusedToken(refusal.reason, deviceToken)
                ?? refused(refusal, in: answer, to: proof, now: now)
        }
        var verdict = Verdict(step: .deliver)
        if let lesson = answer.lesson { verdict.effects.append(.learn(lesson)) }
        // An observing rule says what it would have refused. An answer that speaks of another key
        // than the request's comes out of a cache.
        if answer.next == .enrol, answer.nextKeyID == nil || answer.nextKeyID == proof.keyID {
            if let keyID = proof.keyID {
                verdict.effects.append(.forgetKey(keyID, reason: "observed"))
            }
            verdict.effects.append(.enrol)
        }
        // So that the second request has a proof. The effect does nothing where a key is there.
        if answer.next == .signAgain, proof == .none(.routeUnknown) {
            verdict.effects.append(.enrol)
        }
        // Without that, an ended session would be used for as long as it was to live.
        if answer.next == .signAgain, case .session = proof, let reason = answer.nextReason {
            verdict.effects += effects(of: reason, proof)
            // The gateway has started again. The next request does not wait for another session,
            // and its challenge must not be of before.
            if reason == "session-unknown" { verdict.effects.append(.forgetChallenges) }
        }
        return verdict
    }

    /// What is done with a request that must not be sent without a proof, and has none.
    ///
    /// - Returns: `deliver` to give it up.
    mutating func remained(without absence: SentProof.Absence, now: Date) -> Step {
        progress.count(.none(absence))
        guard mayRepeat else { return .deliver }
        return repetition(of: .none(absence), nil, now: now)
    }

    /// Whether a refusal says that this proof came before, and another execution would be one too
    /// many. A counter below another one is refused for the same reason, and did not run: the two
    /// can't be told apart.
    private func isOfACopy(_ refusal: GatewayRefusal, _ proof: SentProof) -> Bool {
        !isRepeatable && proof.keyID != nil && Self.signsOfACopy.contains(refusal.reason)
    }

    /// With one try, a request can still ask, once, before it.
    private var mayRepeat: Bool {
        let tries = limits.maximumAttempts
        return progress.tries < tries && progress.questions < max(tries, 2)
            && progress.unfinished < Self.unfinishedMax && (progress.held ?? 0) < Self.heldMax
    }

    /// What a refusal of the device token means, where a new token helps.
    ///
    /// Everything else that the rule asks holds by then, so that the request had a proof.
    private func refusedToken(_ reason: String, _ deviceToken: DeviceTokenOutcome) -> Verdict? {
        let step = mayRepeat ? Step.again : .deliver
        switch (reason, deviceToken) {
        // The plan, or what was learned, is older than the rule.
        case ("device-token-missing", .notAsked):
            return Verdict(effects: [.expectDeviceToken], step: step)
        // Something between sent the request twice.
        case ("device-token-used", .sent): return Verdict(step: step)
        default: return nil
        }
    }

    private mutating func refused(
        _ refusal: GatewayRefusal,
        in answer: Answer,
        to proof: SentProof,
        now: Date
    ) -> Verdict {
        var verdict = Verdict(step: .deliver)
        if let lesson = answer.lesson {
            if isMisplaced(proof, refusal.reason, as: lesson) {
                verdict.effects.append(.expectUsualPlaces)
            }
            verdict.effects.append(.learn(lesson))
        }
        if refusal.reason == "signature-mismatch" {
            verdict.step = mismatched(proof, answer.lesson)
            return verdict
        }
        switch refusal.next {
        case .enrol:
            guard let keyID = proof.keyID else { break }
            verdict.effects.append(.forgetKey(keyID, reason: refusal.reason))
            // A second key for one request would not be the last.
            if mayRepeat, !progress.hasForgottenKey { verdict.step = .again }
            progress.hasForgottenKey = true
        case .signAgain:
            verdict.effects += effects(of: refusal.reason, proof)
            if mayRepeat { verdict.step = repetition(of: proof, answer.lesson, now: now) }
        case .retryLater:
            // Refused before it was forwarded, so that sending it again does nothing twice.
            // The fraction is jitter: the field has whole seconds.
            guard mayRepeat, let seconds = answer.retryAfter,
                seconds.rounded(.down) <= min(limits.retryWait.seconds, patience.left)
            else { break }
            verdict.step = .againAfter(now.addingTimeInterval(seconds))
        case .fixClient:
            // An older gateway of the fleet takes no key id beside a session.
            guard case .session = proof, refusal.reason == "assertion-malformed", mayRepeat
            else { break }
            insistence = .onAssertion
            verdict.effects.append(.forgetSession)
            verdict.step = .again
        case .getToken, .none: break
        }
        return verdict
    }

    /// Whether the gateway has not seen a proof, or a challenge, that the request carried, and does
    /// not say where it looks: the names that are known are older than the rule.
    private func isMisplaced(_ proof: SentProof, _ reason: String, as lesson: RouteLesson) -> Bool {
        guard case .assertion = proof else { return false }
        switch reason {
        case "assertion-missing": return lesson.fields == nil
        case "challenge-missing": return lesson.fields == nil && lesson.challengePointer == nil
        default: return false
        }
    }

    private mutating func effects(of reason: String, _ proof: SentProof) -> [Effect] {
        switch reason {
        case "challenge-unknown", "challenge-expired": return [.forgetChallenges]
        case "counter-replayed": return [.expectStrict]
        case "session-refused":
            insistence = .onAssertion
            return [.expectAssertions]
        case "session-unknown", "session-expired", "session-mismatch":
            insistence = .onAssertion
            return [.forgetSession]
        default: return []
        }
    }

    /// Whether a request that was told to sign again can carry more than it did.
    private func repetition(of proof: SentProof, _ lesson: RouteLesson?, now: Date) -> Step {
        guard case .none(let absence) = proof else { return .again }
        switch absence {
        case .routeUnknown, .notAsked: return lesson?.form == nil ? .deliver : .again
        case .enrolling: return patience.left > 0 ? .again : .deliver
        case .challengeUnavailable: return .again
        case .enrolmentHeld(let hold):
            // The rule insists, so a short wait is better than a failure.
            let wait = hold.until.timeIntervalSince(now)
            let longest = min(limits.enrolmentWait.seconds, patience.left)
            return wait <= longest ? .againAfter(hold.until) : .deliver
        case .otherOrigin, .unsupported, .serviceFailed, .storeUnavailable, .requestUnfit, .closed:
            return .deliver
        }
    }

    /// Not what the rule signs: the plan may be outdated. The refusal says what the rule signs; an
    /// older gateway's does not, and says it to a request without proof. Either helps once.
    private mutating func mismatched(_ proof: SentProof, _ lesson: RouteLesson?) -> Step {
        guard case .assertion = proof, !progress.hasAskedBare, mayRepeat else { return .deliver }
        if let lesson, lesson.form != nil {
            // The same bytes would be signed again.
            if let asked, lesson.requirement(over: asked) == asked { return .deliver }
        } else {
            guard !requiresProof else { return .deliver }
            insistence = .onNothing
        }
        progress.hasAskedBare = true
        return .again
    }
}
