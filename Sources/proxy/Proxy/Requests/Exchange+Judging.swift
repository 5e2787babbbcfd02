import AppAttest
import ClientStreams
import Cryptography
import HTTPWire
import KeyStore
import Lanes
import Rules
import Sessions
import Telemetry
import Verification

// The verdict.
extension Exchange {
    /// Judges what the head shows, and writes the head for the origin.
    func judgeHead(
        _ head: borrowing RequestHead,
        _ octets: Span<UInt8>
    ) -> Flow.Action {
        let before = (proxy.judge.verifications, MonotonicClock.nanoseconds)
        let opening = proxy.judge.open(
            head,
            octets,
            rule: flow.rule,
            now: UnixTime(seconds: proxy.wallSeconds),
            mayVerify: mayVerify(now: before.1),
            content: content.arrived.span
        )
        if flow.rule.asksDevice, opening.mayPass { device = DeviceVisit(head, octets) }
        noteClaimedVersion(head, octets, opening)
        switch opening {
        case .ruled(let ruling) where flow.seeksKey(ruling):
            keptHead = octets.withUnsafeBufferPointer { Array($0) }
            return flow.ruled(ruling, enforcement(of: ruling))
        case .ruled(var ruling):
            if ruling.awaitsKey { ruling.settleWithoutCommit() }
            count(ruling, since: before)
            switch flow.purpose {
            case .relay: writeOriginHead(head, octets, framing: flow.facts.framing)
            case .decision, .service: break
            }
            if ruling.expectedDigest != nil { content = .hashed(ContentDigest()) }
            return flow.ruled(ruling, enforcement(of: ruling))
        case .hold(let proof):
            countVerifications(since: before)
            writeOriginHead(head, octets, framing: nil)
            content = .unjudged(HeldBody(heldBounds, key: proof.keyID), proof)
            // Without a stated digest nothing is verified so far: whose key it is, is not known.
            let provisional = proof.provisional
            return flow.contentAwaited(provisional, enforcement(of: provisional))
        }
    }

    /// Keeps what the client claims of its app, as far as no device has signed it.
    private func noteClaimedVersion(
        _ head: borrowing RequestHead,
        _ octets: Span<UInt8>,
        _ opening: Opening
    ) {
        if case .ruled(let ruling) = opening, ruling.appVersion != nil { return }
        record.claimedVersion = head.fields.appBuild(octets).flatMap { AppVersion(octets, $0) }
    }

    /// Judges content that is held and complete.
    func judgeContent() -> Flow.Action {
        guard case .unjudged(let held, let proof) = content else {
            preconditionFailure("Exchange: content held without a proof")
        }
        client?.stopDeadline()
        let before = (proxy.judge.verifications, MonotonicClock.nanoseconds)
        var ruling = proxy.judge.close(
            proof,
            content: held.digest(),
            start: held.start,
            text: { held.text() },
            rule: flow.rule,
            now: UnixTime(seconds: proxy.wallSeconds),
            mayVerify: mayVerify(now: before.1)
        )
        if flow.seeksKey(ruling) { return flow.ruled(ruling, enforcement(of: ruling)) }
        if ruling.awaitsKey { ruling.settleWithoutCommit() }
        content = .held(held)
        count(ruling, since: before)
        if proof.hasCostSignature, case .refuse = ruling.verdict { addFailure(now: before.1) }
        HeadWriter.field("Content-Length", UInt64(held.count), into: &originHead)
        return flow.ruled(ruling, enforcement(of: ruling))
    }

    /// Judges the end of streamed content.
    func judgeEnd() -> Flow.Action {
        switch judgedEnd() {
        case .send: return .sendContent(.last)
        case .stop(let action): return action
        case .collect, .hold, .append, .sendHashed, .judgeEnd:
            preconditionFailure("Exchange: the end of content that is held was judged")
        }
    }

    func judgedEnd() -> Flow.Take { flow.endJudged(endFault) }

    /// What speaks against the end of streamed content: another digest than the head states, or
    /// that the key was revoked or deleted after the head was judged; `nil` for nothing.
    private var endFault: Verdict? {
        guard case .given(let ruling, _) = flow.judgement else { return nil }
        if let expected = ruling.expectedDigest {
            guard case .hashed(let digest) = content else {
                preconditionFailure("Exchange: no digest is expected")
            }
            guard digest.stream.digest() == expected else {
                proxy.tally.add(.digestMismatches)
                return .refuse(.digestMismatch)
            }
        }
        return flow.judgement.admittedKey.flatMap {
            proxy.judge.keyCheck.fault(of: $0, rule: flow.rule)
        }
    }

    /// Waits for a commit. Then ``committed(_:)`` or ``commitTimedOut()``.
    func awaitCommit(_ ticket: CommitTicket) {
        proxy.wait(for: ticket, self)
    }

    /// The commit that the request waits for has not ended in time.
    func commitTimedOut() { perform(flow.commitTimedOut()) }

    /// The commit that the request waited for has ended. The client may have gone meanwhile.
    func committed(_ decision: ConsumeDecision) {
        if case .refused = decision { addFailure(now: MonotonicClock.nanoseconds) }
        perform(flow.committed(decision))
    }

    /// Forwards, with the verdict.
    func admit() -> Flow.Action {
        // What is still to come may change the verdict.
        if flow.isUploaded { Audit(self).countVerdict() }
        writeVerdict()
        return forward()
    }

    /// Forwards what is held without a verdict about all of it.
    func releaseContent() -> Flow.Action {
        guard let held = content.heldBody else { return .none }
        if case .unjudged(_, let proof) = content, proof.hasCostSignature {
            // A signature was verified, and nothing was admitted.
            addFailure(now: MonotonicClock.nanoseconds)
        }
        content = .held(held)
        HeadWriter.framing(flow.facts.framing, into: &originHead)
        client?.stopDeadline()
        writeVerdict()
        return forward()
    }

    private func enforcement(of ruling: Ruling) -> Enforcement {
        Enforcement(
            flow.rule,
            signer: ruling.signer,
            address: account.address,
            at: UnixTime(seconds: proxy.wallSeconds)
        )
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
}

extension Exchange {
    /// Judges a head that was kept.
    func judgeKeptHead() -> Flow.Action {
        guard let client else { return .none }
        let octets = keptHead
        keptHead = []
        let heads = proxy.scratch.askedHeads
        do throws(Malformed) {
            let limits = settings.clientLimits.head
            try heads.request.read(octets.span, isSecure: client.isSecure, limits: limits)
        } catch {
            preconditionFailure("Exchange: a head that was read can't be read again")
        }
        return judgeHead(heads.request, octets.span)
    }
}
