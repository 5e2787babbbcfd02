package import AppAttest
import Cryptography
import HTTPWire
import KeyStore
import RequestBinding
package import Rules
import Tokens

// From a proof and the hash of what it should sign to a verdict.
extension Judge {
    /// Checks in this order: the key; whether a signature may be verified; steps 3 and 4 of Apple's
    /// "Verify the assertion" (signature, App ID); the environment; the content's announced length;
    /// step 5 (counter); step 6 (challenge); the key's age; steps 7 and 8 (category, version); the
    /// risk; the rule's rate. Counter and challenge are consumed last, in one step. A failure of
    /// the store is reported after all of these, so that a wrong request is not forwarded because
    /// the store fails.
    ///
    /// A session has a code instead of the signature, and a sequence number instead of the counter.
    /// It uses no verification of the address's limit, and writes nothing to the store.
    ///
    /// - signed: what the client must have signed, as
    ///   ``ClientDataWriter/digest(_:_:for:content:of:)`` says.
    mutating func rule(
        _ proof: Proof,
        over signed: SHA256Digest,
        rule: Rule,
        length: BodyFraming
    ) -> Verdict {
        var verdict = proof.verdict(.pass)
        if let checked = verify(proof, over: signed, rule: rule, length: length, &verdict) {
            conclude(checked, of: proof, rule: rule, &verdict)
        }
        return verdict
    }

    /// Concludes about a request whose signature is good: looks whether a challenge that had to be
    /// in the content was there, makes the other checks, and takes counter and challenge.
    mutating func conclude(
        _ checked: CheckedProof,
        of proof: Proof,
        rule: Rule,
        _ verdict: inout Verdict
    ) {
        if rule.challengePointer != nil, rule.challenge == .required, proof.challenge == nil {
            verdict.outcome = .refuse(.challengeMissing)
        } else {
            consume(checked, of: proof, rule: rule, &verdict)
        }
    }

    /// The result for a request whose content is still to come.
    enum ProvisionalVerdict {
        case refused(Verdict)
        /// Counter and challenge are good now; ``admit(_:of:rule:)`` consumes them.
        case good(VerifiedEvidence)
    }

    /// Makes the checks of ``rule(_:over:rule:length:)`` and consumes nothing: the content has not
    /// come yet.
    mutating func examine(
        _ proof: Proof,
        over signed: SHA256Digest,
        rule: Rule,
        length: BodyFraming
    ) -> ProvisionalVerdict {
        var verdict = proof.verdict(.pass)
        guard let checked = verify(proof, over: signed, rule: rule, length: length, &verdict) else {
            return .refused(verdict)
        }
        let serial = check(checked, of: proof, rule: rule, &verdict)
        guard verdict.outcome == .pass else { return .refused(verdict) }
        if let fault = useFault(proof, using: serial, rule: rule, isOutdated: checked.isOutdated) {
            verdict.outcome = fault
        } else if let rate = rule.rate,
            let wait = rates.wait(proof.keyID, rate, now: circumstances.tick)
        {
            verdict.refuse(
                overRateFor: wait,
                isForgiven: rates.forgives(proof.keyID, now: circumstances.tick)
            )
        }
        return verdict.outcome == .pass ? .good(checked.verified) : .refused(verdict)
    }

    /// The fault of counter and challenge, or of the sequence number, now; nothing is consumed.
    /// What a failing store can't say is checked again later, where the rule forwards on errors.
    private func useFault(
        _ proof: Proof,
        using serial: ChallengeSerial?,
        rule: Rule,
        isOutdated: Bool
    ) -> Verdict.Outcome? {
        let fault = peek(proof, using: serial, rule: rule, isOutdated: isOutdated)
        if case .failure = fault, rule.onError == .forward { return nil }
        return fault
    }

    /// - isOutdated: whether the store may know more of the key, such as its revocation.
    private func peek(
        _ proof: Proof,
        using serial: ChallengeSerial?,
        rule: Rule,
        isOutdated: Bool
    ) -> Verdict.Outcome? {
        switch proof.evidence {
        case .assertion(let evidence):
            Self.outcome(of: decider.peek(evidence.use(of: proof, with: serial, under: rule)))
        case .session(let evidence): evidence.fault(isOutdated: isOutdated, decider)
        }
    }

    /// Admits a request that was examined before its content came. The content is what was signed.
    /// Meanwhile the key may have been revoked, and the challenge may have expired or been spent.
    mutating func admit(
        _ verified: VerifiedEvidence,
        of proof: Proof,
        rule: Rule
    ) -> Verdict {
        var verdict = proof.verdict(.pass)
        verdict.level = .signed
        verdict.appVersion = verified.build.bundleVersion.flatMap(AppVersion.init)
        guard let key = keyCheck.find(proof, for: rule, &verdict) else { return verdict }
        guard KeyCheck.admits(key.stored.environment, key.app.policy) else {
            verdict.outcome = .refuse(.environmentMismatch)
            return verdict
        }
        let checked = CheckedProof(verified, key)
        if let signed = proof.signed { verdict.bind(proof, to: signed, for: rule) }
        consume(checked, of: proof, rule: rule, &verdict)
        return verdict
    }

    /// The results of the first checks: what was verified, the app, the device's known state, the
    /// key's place in the store, and whether the store may know more of it.
    struct CheckedProof {
        let verified: VerifiedEvidence
        let app: KnownApp
        /// The day of the key's enrolment, in days since 1970; 0 where it is not known.
        let attestedDay: Int64
        let risk: KeyRisk
        let row: Int64?
        let isOutdated: Bool

        init(
            _ verified: VerifiedEvidence,
            _ key: (stored: StoredKey, app: KnownApp, isOutdated: Bool)
        ) {
            self.verified = verified
            app = key.app
            attestedDay = key.stored.attestedDay ?? 0
            risk = key.stored.risk
            row = key.stored.row
            isOutdated = key.isOutdated
        }
    }

    /// The checks before counter and challenge. If one fails, the result is `nil`, and the verdict
    /// is final.
    mutating func verify(
        _ proof: Proof,
        over signed: SHA256Digest,
        rule: Rule,
        length: BodyFraming,
        _ verdict: inout Verdict
    ) -> CheckedProof? {
        guard let key = keyCheck.find(proof, for: rule, &verdict) else { return nil }
        let verified: VerifiedEvidence?
        switch proof.evidence {
        case .assertion(let evidence):
            verified = verify(
                evidence,
                over: signed,
                by: key.stored,
                of: key.app.policy,
                &verdict
            )
        case .session(let evidence):
            verified = evidence.verified(signed)
            if verified == nil { verdict.outcome = .refuse(.sessionMismatch) }
        }
        guard let verified else { return nil }
        verdict.level = .signed
        verdict.appVersion = verified.build.bundleVersion.flatMap(AppVersion.init)
        guard KeyCheck.admits(key.stored.environment, key.app.policy) else {
            verdict.outcome = .refuse(.environmentMismatch)
            return nil
        }
        if isTooLong(length, rule) {
            verdict.outcome = .refuse(.contentTooLarge)
            return nil
        }
        verdict.bind(proof, to: signed, for: rule)
        return CheckedProof(verified, key)
    }

    private mutating func verify(
        _ evidence: KeyEvidence,
        over clientDataHash: SHA256Digest,
        by key: StoredKey,
        of app: AppPolicy,
        _ verdict: inout Verdict
    ) -> VerifiedEvidence? {
        guard circumstances.mayVerify else {
            verdict.outcome = .refuse(.addressThrottled)
            return nil
        }
        do throws(AssertionRefusal) {
            verifications &+= 1
            return try evidence.verified(
                clientDataHash: clientDataHash,
                key: key.publicKey,
                app: app
            )
        } catch {
            verdict.outcome = .refuse(Refusal(error.reason))
            // The App ID is checked after the signature.
            if error.reason == .appMismatch { verdict.level = .signed }
            return nil
        }
    }

    func isTooLong(_ framing: BodyFraming, _ rule: Rule) -> Bool {
        guard case .length(let length) = framing, let limit = rule.body.limit else { return false }
        return length > UInt64(limit.rawValue)
    }

    /// The checks that are possible before content is held: the key, the announced length, and
    /// whether counter and challenge are good now. `nil` when none finds a fault.
    ///
    /// - `clientWaits`: the client sends its content only when asked. Otherwise the content comes
    ///   anyway and is judged in the order of ``rule(_:over:rule:length:)``, in which the
    ///   signature comes before counter and challenge.
    func lookAhead(
        _ proof: Proof,
        rule: Rule,
        length: BodyFraming,
        clientWaits: Bool
    ) -> Verdict? {
        var verdict = proof.verdict(.pass)
        guard let key = keyCheck.find(proof, for: rule, &verdict) else { return verdict }
        guard circumstances.mayVerify || proof.kind == .session else {
            verdict.outcome = .refuse(.addressThrottled)
            return verdict
        }
        if isTooLong(length, rule) {
            verdict.outcome = .refuse(.contentTooLarge)
            return verdict
        }
        // No content is held when the verdict is known.
        if key.isOutdated, rule.onError == .refuse {
            verdict.outcome = .failure(.store)
            return verdict
        }
        guard clientWaits else { return nil }
        let challenge = examine(proof, rule: rule)
        let serial: ChallengeSerial? =
            if case .success(let serial) = challenge { serial } else { nil }
        if let fault = useFault(proof, using: serial, rule: rule, isOutdated: key.isOutdated) {
            verdict.outcome = fault
            return verdict
        }
        guard case .failure(let fault) = challenge else { return nil }
        verdict.outcome = .refuse(fault.refusal)
        return verdict
    }

    private struct ChallengeFault: Error {
        let refusal: Refusal
        var note: ChallengeNote?
    }

    /// Step 6, without spending. For a session: whether it has expired meanwhile.
    private func examine(
        _ proof: Proof,
        rule: Rule
    ) -> Result<ChallengeSerial?, ChallengeFault> {
        if case .session(let evidence) = proof.evidence {
            return evidence.session.isOver(at: circumstances.now.seconds)
                ? .failure(ChallengeFault(refusal: .sessionExpired)) : .success(nil)
        }
        guard rule.challenge != .none, let text = proof.challenge else { return .success(nil) }
        switch decider.examine(text.span, purpose: .assertion, now: circumstances.now.seconds) {
        case .valid(let serial): return .success(serial)
        case .unknown: return .failure(ChallengeFault(refusal: .challengeUnknown))
        case .foreign:
            return .failure(ChallengeFault(refusal: .challengeUnknown, note: .unknownSecret))
        case .expired: return .failure(ChallengeFault(refusal: .challengeExpired))
        case .spent: return .failure(ChallengeFault(refusal: .challengeSpent))
        }
    }

    /// Challenge, build, risk. The verdict stays `pass`, or the function checks the counter without
    /// taking it, and the first fault in the order of the steps becomes the verdict.
    private func check(
        _ checked: CheckedProof,
        of proof: Proof,
        rule: Rule,
        _ verdict: inout Verdict
    ) -> ChallengeSerial? {
        let challenge = examine(proof, rule: rule)
        let serial: ChallengeSerial? =
            if case .success(let serial) = challenge { serial } else { nil }
        var fault = riskFault(checked, of: proof, rule: rule, &verdict)
        switch checked.app.policy.builds.judge(checked.verified.build) {
        case .none: break
        case .category: fault = .categoryRefused
        case .version: fault = .versionRefused
        }
        // `keyDaysMax` days after its enrolment the key has to be replaced.
        if let days = checked.app.policy.android?.settings.keyDaysMax,
            circumstances.now.seconds / 86_400 - checked.attestedDay > days
        {
            fault = .keyExpired
        }
        if case .failure(let earlier) = challenge {
            fault = earlier.refusal
            verdict.challengeNote = earlier.note
        }
        if let fault {
            let earlier = peek(proof, using: serial, rule: rule, isOutdated: checked.isOutdated)
            if case .refuse = earlier, let earlier {
                verdict.outcome = earlier
            } else {
                verdict.outcome = .refuse(fault)
            }
        }
        return serial
    }

    /// The rule's refusal because of the device's risk. A finding that the rule only marks is
    /// noted.
    private func riskFault(
        _ checked: CheckedProof,
        of proof: Proof,
        rule: Rule,
        _ verdict: inout Verdict
    ) -> Refusal? {
        guard let risk = rule.risk else { return nil }
        let note = RiskNote(risk, checked.risk, now: circumstances.now)
        verdict.risk = note
        guard let mark = note.mark,
            risk.refuses(proof.keyID.digest.bytes.span, at: circumstances.now)
        else {
            return nil
        }
        return mark
    }

    /// Steps 5 and 6 and the following checks; takes counter and challenge.
    private func consume(
        _ checked: CheckedProof,
        of proof: Proof,
        rule: Rule,
        _ verdict: inout Verdict
    ) {
        let serial = check(checked, of: proof, rule: rule, &verdict)
        guard verdict.outcome == .pass else { return }
        // A replay is refused below, and costs the device nothing.
        if let rate = rule.rate,
            !isReplay(proof, using: serial, rule: rule, isOutdated: checked.isOutdated)
        {
            if let wait = rates.take(proof.keyID, rate, now: circumstances.tick) {
                let isForgiven = rates.forgives(proof.keyID, now: circumstances.tick)
                return verdict.refuse(overRateFor: wait, isForgiven: isForgiven)
            }
            verdict.rate = .counted
        }
        switch proof.evidence {
        case .session(let evidence):
            evidence.use(isOutdated: checked.isOutdated, for: rule, in: decider, &verdict)
            if case .refuse = verdict.outcome { takeBack(verdict.rate, of: proof.keyID, rule) }
        case .assertion(let evidence):
            var use = evidence.use(of: proof, with: serial, under: rule)
            use.row = checked.row
            consume(use, of: proof.keyID, rule: rule, &verdict)
            if verdict.outcome == .pass, rule.goal == .session {
                verdict.grant = SessionGrant(proof.keyID, checked.verified)
            }
        }
    }

    /// Whether counter, challenge or sequence number are known to be used.
    private func isReplay(
        _ proof: Proof,
        using serial: ChallengeSerial?,
        rule: Rule,
        isOutdated: Bool
    ) -> Bool {
        let fault = peek(proof, using: serial, rule: rule, isOutdated: isOutdated)
        return if case .refuse = fault { true } else { false }
    }

    /// A request turned out to be a replay. If its rule's rate has counted it, that is undone.
    package func takeBack(_ note: RateNote, of keyID: KeyID?, _ rule: Rule) {
        guard note == .counted, let rate = rule.rate, let keyID else { return }
        rates.giveBack(keyID, rate)
    }

    /// The fault of a request after a look ahead; `nil` when there is none.
    private static func outcome(of decision: ConsumeDecision) -> Verdict.Outcome? {
        switch decision {
        case .admitted: nil
        case .refused(let refusal): .refuse(Refusal(refusal))
        case .unavailable, .unassured: .failure(.store)
        }
    }
}

extension KeyEvidence {
    /// The use of its counter and of the request's challenge.
    fileprivate func use(
        of proof: Proof,
        with serial: ChallengeSerial?,
        under rule: Rule
    ) -> CounterUse {
        CounterUse(
            of: proof.keyID,
            counter: counter,
            rule: rule.counter.store,
            challenge: serial
        )
    }
}

extension Verdict {
    fileprivate mutating func refuse(overRateFor wait: UInt64, isForgiven: Bool) {
        outcome = .refuse(.keyThrottled)
        rate = .over(wait: wait)
        self.isForgiven = isForgiven
    }

    /// Notes what an integrity token has to be bound to, where the rule asks for one. Phones with
    /// Android alone have such tokens.
    fileprivate mutating func bind(_ proof: Proof, to signed: SHA256Digest, for rule: Rule) {
        guard rule.integrity != nil, proof.platform == .android else { return }
        tokens.binding = IntegrityBinding(
            package: appID,
            keyID: proof.keyID,
            clientDataHash: signed
        )
    }
}
