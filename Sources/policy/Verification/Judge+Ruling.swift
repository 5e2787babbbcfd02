import AppAttest
import Challenges
import Cryptography
import HTTPWire
import KeyStore
import RequestBinding
import Rules

// From a claim and the hash of what it should sign to a ruling.
extension Judge {
    /// Checks in this order: the key; whether a signature may be verified; steps 3 and 4 of Apple's
    /// "Verify the assertion" (signature, App ID); the environment; the content's announced length;
    /// step 5 (counter); step 6 (challenge); steps 7 and 8 (category, version). Counter and
    /// challenge are consumed last, in one step. What the store fails to say comes behind all of
    /// them, so that nothing wrong is forwarded because the store fails.
    mutating func rule(
        _ proof: Proof,
        _ clientDataHash: SHA256Digest,
        rule: Rule,
        now: UnixTime,
        length: BodyFraming
    ) -> Ruling {
        var (ruling, claim) = verify(proof, clientDataHash, rule, length)
        if let claim { consume(claim, proof, rule: rule, now: now, &ruling) }
        return ruling
    }

    /// What was found out about a request whose content is still to come.
    enum Examination {
        case refused(Ruling)
        /// Counter and challenge are good now; ``admit(_:_:rule:now:)`` consumes them.
        case good(VerifiedAssertion)
    }

    /// Checks the same and consumes nothing: the content has not come yet.
    mutating func examine(
        _ proof: Proof,
        _ clientDataHash: SHA256Digest,
        rule: Rule,
        now: UnixTime,
        length: BodyFraming
    ) -> Examination {
        var (ruling, claim) = verify(proof, clientDataHash, rule, length)
        guard let claim else { return .refused(ruling) }
        let serial = check(claim, proof, rule: rule, now: now, &ruling)
        guard ruling.verdict == .pass else { return .refused(ruling) }
        let fault = counterFault(proof.keyID, claim.verified.counter, serial, rule)
        guard let fault else { return .good(claim.verified) }
        ruling.verdict = fault
        return .refused(ruling)
    }

    /// What speaks against counter and challenge now; nothing is consumed. What a failing store
    /// can't say is asked again later, where the rule forwards on errors.
    private func counterFault(
        _ keyID: KeyID,
        _ counter: SignCounter,
        _ serial: ChallengeSerial?,
        _ rule: Rule
    ) -> Verdict? {
        let decision = peek(keyID, counter, serial, rule)
        if decision == .unavailable, rule.onError == .forward { return nil }
        return Self.verdict(of: decision)
    }

    private func peek(
        _ keyID: KeyID,
        _ counter: SignCounter,
        _ serial: ChallengeSerial?,
        _ rule: Rule
    ) -> ConsumeDecision {
        keys.peek(
            keyID,
            counter: counter,
            rule: rule.counter.store,
            challenge: serial,
            issuer: challenges
        )
    }

    /// Admits a request that was examined: its content has come since and is what was signed. The
    /// key may have been revoked meanwhile, the challenge have expired or been spent.
    mutating func admit(
        _ verified: VerifiedAssertion,
        _ proof: Proof,
        rule: Rule,
        now: UnixTime
    ) -> Ruling {
        var ruling = Ruling(.pass, keyID: proof.keyID)
        ruling.standing = .signed
        guard let key = find(proof.keyID, rule, &ruling) else { return ruling }
        guard admits(key.stored.environment, key.app) else {
            ruling.verdict = .refuse(.environmentMismatch)
            return ruling
        }
        let claim = Claim(verified: verified, builds: key.app.builds)
        consume(claim, proof, rule: rule, now: now, &ruling)
        return ruling
    }

    /// What was verified of a request, and the builds of the app that are admitted.
    private struct Claim {
        let verified: VerifiedAssertion
        let builds: BuildPolicy
    }

    /// The checks before counter and challenge. No claim, and a verdict, when one fails.
    private mutating func verify(
        _ proof: Proof,
        _ clientDataHash: SHA256Digest,
        _ rule: Rule,
        _ length: BodyFraming
    ) -> (ruling: Ruling, claim: Claim?) {
        var ruling = Ruling(.pass, keyID: proof.keyID)
        guard let key = find(proof.keyID, rule, &ruling) else { return (ruling, nil) }
        guard mayVerify else {
            ruling.verdict = .refuse(.addressThrottled)
            return (ruling, nil)
        }
        let verified: VerifiedAssertion
        do throws(AssertionRefusal) {
            verifications &+= 1
            verified = try proof.assertion.verified(
                clientDataHash: clientDataHash.bytes.span,
                key: key.stored.publicKey,
                app: key.app.hash
            )
        } catch {
            ruling.verdict = .refuse(Refusal(error.reason))
            // The App ID is checked behind the signature.
            if error.reason == .appMismatch { ruling.standing = .signed }
            return (ruling, nil)
        }
        ruling.standing = .signed
        guard admits(key.stored.environment, key.app) else {
            ruling.verdict = .refuse(.environmentMismatch)
            return (ruling, nil)
        }
        if isTooLong(length, rule) {
            ruling.verdict = .refuse(.contentTooLarge)
            return (ruling, nil)
        }
        return (ruling, Claim(verified: verified, builds: key.app.builds))
    }

    /// What can be said before content is held: the key, the announced length, and whether counter
    /// and challenge are good now. `nil` when nothing speaks against the request.
    ///
    /// - `clientWaits`: the client keeps its content back until it is asked for it. Otherwise the
    ///   content comes anyway and is judged in the order of ``rule(_:_:rule:now:length:)``, in
    ///   which the signature stands before counter and challenge.
    func lookAhead(
        _ proof: Proof,
        rule: Rule,
        now: UnixTime,
        length: BodyFraming,
        clientWaits: Bool
    ) -> Ruling? {
        var ruling = Ruling(.pass, keyID: proof.keyID)
        guard let key = find(proof.keyID, rule, &ruling) else { return ruling }
        guard mayVerify else {
            ruling.verdict = .refuse(.addressThrottled)
            return ruling
        }
        if isTooLong(length, rule) {
            ruling.verdict = .refuse(.contentTooLarge)
            return ruling
        }
        // No content is held for an answer that is known.
        if key.isOutdated, rule.onError == .refuse {
            ruling.verdict = .failure(.store)
            return ruling
        }
        guard clientWaits else { return nil }
        let challenge = examine(proof.challenge, rule: rule, now: now)
        let serial: ChallengeSerial? =
            if case .success(let serial) = challenge { serial } else { nil }
        if let fault = counterFault(proof.keyID, proof.assertion.counter, serial, rule) {
            ruling.verdict = fault
            return ruling
        }
        guard case .failure(let fault) = challenge else { return nil }
        ruling.verdict = .refuse(fault.refusal)
        return ruling
    }

    private func isTooLong(_ framing: BodyFraming, _ rule: Rule) -> Bool {
        guard case .length(let length) = framing, let limit = rule.body.limit else { return false }
        return length > UInt64(limit.rawValue)
    }

    /// The key, when it may be used at all and the rule admits its app.
    private func find(_ keyID: KeyID, _ rule: Rule, _ ruling: inout Ruling) -> (
        stored: StoredKey, app: AppPolicy, isOutdated: Bool
    )? {
        let stored: StoredKey
        var isOutdated = false
        switch keys.find(keyID) {
        case .unavailable:
            ruling.verdict = .failure(.store)
            return nil
        case .unknown:
            ruling.verdict = .refuse(.keyUnknown)
            return nil
        case .known(let key): stored = key
        case .outdated(let key): (stored, isOutdated) = (key, true)
        }
        ruling.environment = stored.environment
        guard !stored.isRevoked else {
            ruling.verdict = .refuse(.keyRevoked)
            return nil
        }
        guard let app = apps[stored.app] else {
            ruling.verdict = .refuse(.appMismatch)
            return nil
        }
        ruling.appID = app.id
        guard admissions.admits(stored.app, app, rule: rule) else {
            ruling.verdict = .refuse(.appMismatch)
            return nil
        }
        return (stored, app, isOutdated)
    }

    private func admits(_ environment: KeyEnvironment, _ policy: AppPolicy) -> Bool {
        switch environment {
        case .production: policy.environments.contains(.production)
        case .development: policy.environments.contains(.development)
        case .test: policy.isTest
        }
    }

    private struct ChallengeFault: Error { let refusal: Refusal }

    /// Step 6, without spending.
    private func examine(
        _ text: [UInt8]?,
        rule: Rule,
        now: UnixTime
    ) -> Result<ChallengeSerial?, ChallengeFault> {
        guard rule.challenge != .none, let text else { return .success(nil) }
        switch challenges.examine(text.span, purpose: .assertion, now: now.seconds) {
        case .valid(let serial): return .success(serial)
        case .unknown: return .failure(ChallengeFault(refusal: .challengeUnknown))
        case .expired: return .failure(ChallengeFault(refusal: .challengeExpired))
        case .spent: return .failure(ChallengeFault(refusal: .challengeSpent))
        }
    }

    /// Challenge and build. The verdict stays `pass`, or the counter is looked at, not taken, and
    /// the first fault in the order of the steps becomes the verdict.
    private func check(
        _ claim: Claim,
        _ proof: Proof,
        rule: Rule,
        now: UnixTime,
        _ ruling: inout Ruling
    ) -> ChallengeSerial? {
        let challenge = examine(proof.challenge, rule: rule, now: now)
        let serial: ChallengeSerial? =
            if case .success(let serial) = challenge { serial } else { nil }
        var fault: Refusal?
        do throws(AssertionRefusal) {
            try claim.verified.checkBuild(claim.builds)
        } catch {
            fault = Refusal(error.reason)
        }
        if case .failure(let earlier) = challenge { fault = earlier.refusal }
        if let fault {
            let decision = peek(proof.keyID, claim.verified.counter, serial, rule)
            let verdict = decision == .unavailable ? nil : Self.verdict(of: decision)
            ruling.verdict = verdict ?? .refuse(fault)
        }
        return serial
    }

    /// Steps 5 and 6 and what stands behind them, and takes counter and challenge.
    private func consume(
        _ claim: Claim,
        _ proof: Proof,
        rule: Rule,
        now: UnixTime,
        _ ruling: inout Ruling
    ) {
        let serial = check(claim, proof, rule: rule, now: now, &ruling)
        guard ruling.verdict == .pass else { return }
        let outcome = keys.consume(
            proof.keyID,
            counter: claim.verified.counter,
            rule: rule.counter.store,
            challenge: serial,
            issuer: challenges,
            now: now.seconds,
            durability: survivesCrash(rule) ? .behind : .awaited,
            whenFailing: rule.onError == .forward ? .useInMemory : .decline
        )
        switch outcome {
        case .decided(let decision): ruling.settle(decision)
        case .pending(let ticket):
            switch keys.decides {
            case .inMemory:
                ruling.settle(.admitted)
                ruling.pending = .durability(ticket)
            case .atCommit: ruling.pending = .verdict(ticket)
            }
        }
    }

    /// Whether a replay is stopped after a crash without the counter on disk: the challenge, which
    /// the line form signs and the rule requires, dies with the process. An assertion of another
    /// form could be taken to a rule that asks for no challenge.
    private func survivesCrash(_ rule: Rule) -> Bool {
        guard rule.challenge == .required, case .lines(let parts, _) = rule.signing else {
            return false
        }
        return parts.contains(.challenge)
    }

    /// What speaks against a request after a look ahead; `nil` when nothing does.
    private static func verdict(of decision: ConsumeDecision) -> Verdict? {
        switch decision {
        case .admitted: nil
        case .refused(let refusal): .refuse(Refusal(refusal))
        case .unavailable, .unassured: .failure(.store)
        }
    }
}

extension Refusal {
    init(_ reason: AssertionRefusal.Reason) {
        switch reason {
        case .malformed: self = .assertionMalformed
        case .signatureMismatch: self = .signatureMismatch
        case .appMismatch: self = .appMismatch
        case .counterReplayed: self = .counterReplayed
        case .categoryRefused: self = .categoryRefused
        case .versionRefused: self = .versionRefused
        }
    }

    /// The refusal of a use of counter and challenge.
    init(_ refusal: ConsumeRefusal) {
        switch refusal {
        case .unknown: self = .keyUnknown
        case .revoked: self = .keyRevoked
        case .replayed: self = .counterReplayed
        case .challengeSpent: self = .challengeSpent
        case .challengesExhausted: self = .challengesExhausted
        }
    }
}
