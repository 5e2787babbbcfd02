import AppAttest
import Challenges
import ClientStreams
import Cryptography
import HTTPWire
import KeyStore
import Lanes
import Origins
import Rules
import Telemetry
import Verification

extension Exchange {
    /// Judges what the head shows, then forwards, refuses, or holds the content.
    func judge(_ octets: Span<UInt8>) {
        takeArrived()
        switch rule.mode {
        case .off:
            writeOriginHead(octets, framing: proxy.heads.request.framing)
            return forward()
        case .deny: return decide(Ruling(.refuse(.noRule)))
        case .observe, .enforce: break
        }
        let before = (proxy.judge.verifications, MonotonicClock.nanoseconds)
        let content = held?.memory ?? arrived
        let opening = proxy.judge.open(
            proxy.heads.request,
            octets,
            rule: rule,
            now: UnixTime(seconds: proxy.wallSeconds),
            mayVerify: mayVerify(now: before.1),
            content: content.span
        )
        switch opening {
        case .ruled(let ruling):
            count(ruling, since: before)
            writeOriginHead(octets, framing: proxy.heads.request.framing)
            expectedDigest = ruling.expectedDigest
            if expectedDigest != nil { digest = SHA256.Stream() }
            decide(ruling)
        case .hold(let proof):
            countVerifications(since: before)
            writeOriginHead(octets, framing: nil)
            self.proof = proof
            // Without a stated digest nothing is verified so far: whose key it is, is not known.
            isEnforced = isEnforced(signer: proof.isVerified ? proof.keyID : nil)
            hold()
        }
    }

    /// The content is held and complete.
    func judgeHeld(_ held: HeldBody) {
        guard let proof else { preconditionFailure("Exchange: content held without a proof") }
        self.proof = nil
        let before = (proxy.judge.verifications, MonotonicClock.nanoseconds)
        let wasVerified = proof.isVerified
        let ruling = proxy.judge.close(
            proof,
            content: held.digest(),
            text: { held.text() },
            start: { held.start },
            rule: rule,
            now: UnixTime(seconds: proxy.wallSeconds),
            mayVerify: mayVerify(now: before.1)
        )
        count(ruling, since: before)
        if wasVerified, case .refuse = ruling.verdict { addFailure(now: before.1) }
        HeadWriter.field("Content-Length", UInt64(held.count), into: &originHead)
        originFraming = .length(UInt64(held.count))
        decide(ruling)
    }

    /// Counts what the ruling cost. A verification that led to no admission is the address's, also
    /// one of a recorded request: it costs as much as one of a bad signature.
    private func count(_ ruling: Ruling, since before: (count: UInt64, nanoseconds: UInt64)) {
        if ruling.verdict == .refuse(.addressThrottled) {
            proxy.tally.add(.addressVerificationsRefused)
        }
        guard countVerifications(since: before) > 0 else { return }
        if case .refuse = ruling.verdict { addFailure(now: before.nanoseconds) }
    }

    @discardableResult
    private func countVerifications(since before: (count: UInt64, nanoseconds: UInt64)) -> UInt64 {
        let done = proxy.judge.verifications &- before.count
        guard done > 0 else { return 0 }
        proxy.tally.add(.verifications, done)
        proxy.tally.add(
            .verification,
            nanoseconds: MonotonicClock.nanoseconds &- before.nanoseconds
        )
        return done
    }

    /// Mode × rollout × verdict.
    func decide(_ ruling: Ruling) {
        self.ruling = ruling
        isJudged = true
        isEnforced = isEnforced(signer: ruling.signer)
        let decision = Decision(ruling, rule: rule, isEnforced: isEnforced)
        switch decision {
        case .refuse(let refusal):
            countVerdict()
            if refusal == .addressThrottled { refuseForAddress() } else { refuse(refusal) }
        case .forward:
            guard let ticket = ruling.awaitedTicket(isEnforced: isEnforced) else { return admit() }
            proxy.tally.add(.commitWaits)
            proxy.commitQueue.wait(for: ticket, self, now: MonotonicClock.nanoseconds)
        }
    }

    /// The content changes the verdict, or makes it before all of it was judged.
    func changeVerdict(_ verdict: Verdict) {
        if !isJudged, let proof { ruling = Ruling(verdict, keyID: proof.keyID) }
        isJudged = true
        ruling.verdict = verdict
        countVerdict()
    }

    /// Counts the verdict as it stands.
    func countVerdict() {
        proxy.tally.addVerdict(
            rule: rule.index,
            slot: VerdictSlot.index(ruling.verdict, isEnforced: isEnforced, isTest: ruling.isTest)
        )
    }

    /// The commit that the request waited for has ended.
    func commitEnded(_ decision: ConsumeDecision) {
        ruling.settle(decision)
        if ruling.verdict == .pass { return admit() }
        if case .refuse = ruling.verdict { addFailure(now: MonotonicClock.nanoseconds) }
        decide(ruling)
    }

    private func admit() {
        countVerdict()
        writeVerdict()
        if let held { replay(held) } else { forward() }
    }

    /// Whether the rollout includes the client.
    ///
    /// - `signer`: the key that has signed the request. A key id that is only named could be chosen
    ///   so that it falls outside; such a request goes by the client's address.
    private func isEnforced(signer: KeyID?) -> Bool {
        switch rule.mode {
        case .off, .observe: return false
        case .deny: return true
        case .enforce: break
        }
        let now = UnixTime(seconds: proxy.wallSeconds)
        if rule.rollout.subject == .key, let signer {
            return rule.rollout.enforces(signer.digest.bytes.span, at: now)
        }
        return rule.rollout.enforces(clientAddress.octets.span, at: now)
    }

    /// Answers with the problem document of a refusal.
    func refuse(_ refusal: Refusal) {
        if problem.isEmpty { problem = refusal.rawValue }
        let challenge =
            refusal.row.nextStep == .signAgain
            ? proxy.enrolment.challenge(.assertion, now: proxy.wallSeconds) : nil
        let wait = refusal == .addressThrottled ? Int(addressWait / 1_000_000_000) + 1 : 1
        answer(LocalAnswer(Problem(refusal, challenge: challenge, retryAfter: wait)))
    }
}
