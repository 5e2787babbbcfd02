import AppAttest
import EventLoops
import HTTPWire
import KeyStore
import Rules
import Telemetry
import Verification

/// Lets the event loop's judge judge a request once, and counts the cost.
struct Judging {
    private let exchange: Exchange
    /// Monotonic nanoseconds.
    private let beganAt = MonotonicClock.nanoseconds
    /// The number of signatures that the judge had verified before.
    private let verifiedBefore: UInt64

    init(_ exchange: Exchange) {
        self.exchange = exchange
        verifiedBefore = exchange.proxy.judge.verifications
        exchange.proxy.judge.tick = beganAt
    }

    private var proxy: ProxyLoop { exchange.proxy }

    /// Judges the head, and writes the head for the origin.
    func judge(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) -> Flow.Action {
        let rule = exchange.flow.rule
        let opening = proxy.judge.open(
            head,
            bytes,
            rule: rule,
            now: UnixTime(seconds: proxy.wallSeconds),
            mayVerify: exchange.mayVerify(now: beganAt),
            content: exchange.content.arrived.span,
            seesContent: exchange.flow.seesContent,
            isExact: exchange.isExact,
            isCut: exchange.isCut
        )
        if rule.asksDevice, opening.mayPass { exchange.device = DeviceVisit(head, bytes) }
        if rule.namesTokens { exchange.tokens = ShownTokens(head, bytes, rule) }
        switch consume opening {
        case .judged(var verdict):
            if verdict.appVersion == nil { noteClaimedVersion(head, bytes) }
            if exchange.flow.seeksKey(verdict) {
                exchange.keptHead = bytes.withUnsafeBufferPointer { Array($0) }
                return judged(verdict)
            }
            if verdict.awaitsKey { verdict.settleWithoutCommit() }
            count(verdict)
            if case .relay = exchange.flow.purpose {
                let framing = exchange.flow.facts.framing
                exchange.originHead.begin(head, bytes, for: exchange, framing: framing)
            }
            if verdict.expectedDigest != nil { exchange.content = .hashed(StreamedDigest()) }
            return judged(verdict)
        case .hold(let proof):
            noteClaimedVersion(head, bytes)
            countVerifications()
            if case .relay = exchange.flow.purpose {
                exchange.originHead.begin(head, bytes, for: exchange, framing: nil)
            }
            let held = HeldBody(exchange.heldBounds, key: proof.keyID)
            exchange.content = .unjudged(held, proof)
            // Without a stated digest nothing is verified so far, so the key is not known.
            let provisional = proof.provisional
            return exchange.flow.contentAwaited(provisional, enforcement(of: provisional, by: rule))
        }
    }

    /// Decides about a request that rules dispute. Its proof is not judged: no signature says for
    /// which of the rules it was made. So the client's address decides about a rollout.
    func settle(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        disputed dispute: DisputedRoute
    ) -> Flow.Action {
        let verdict = Verdict(.refuse(Refusal(dispute.reason)))
        let rule = dispute.deciding { enforcement(of: verdict, by: $0) == .enforced }
        exchange.flow.disputed(by: rule)
        noteClaimedVersion(head, bytes)
        // A rule that denies has no origin, and refuses.
        if enforcement(of: verdict, by: rule) == .observed, case .relay = exchange.flow.purpose {
            let framing = exchange.flow.facts.framing
            exchange.originHead.begin(head, bytes, for: exchange, framing: framing)
        }
        return judged(verdict)
    }

    /// Judges a head that was kept while the store was asked for its key.
    func judgeKeptHead() -> Flow.Action {
        guard exchange.client != nil else { return .none }
        let bytes = exchange.keptHead
        exchange.keptHead = []
        let heads = proxy.scratch.askedHeads
        do throws(Malformed) {
            let limits = exchange.settings.limits.requestHead
            try heads.request.read(bytes.span, isSecure: exchange.peer.isSecure, limits: limits)
        } catch {
            preconditionFailure("Judging: a head that was read can't be read again")
        }
        return judge(heads.request, bytes.span)
    }

    /// Judges held content that is complete.
    func judgeContent() -> Flow.Action {
        guard case .unjudged(let held, let proof) = exchange.content else {
            preconditionFailure("Judging: content held without a proof")
        }
        exchange.client?.stopDeadline()
        var verdict = proxy.judge.close(
            proof,
            content: held.digest(),
            start: held.start,
            text: { held.text() },
            rule: exchange.flow.rule,
            now: UnixTime(seconds: proxy.wallSeconds),
            mayVerify: exchange.mayVerify(now: beganAt)
        )
        if exchange.flow.seeksKey(verdict) { return judged(verdict) }
        if verdict.awaitsKey { verdict.settleWithoutCommit() }
        exchange.content = .held(held)
        count(verdict)
        if proof.hasCostSignature, verdict.isInVain { exchange.addFailure(now: beganAt) }
        if case .relay = exchange.flow.purpose {
            HeadWriter.field("Content-Length", UInt64(held.count), into: &exchange.originHead.bytes)
        }
        return judged(verdict)
    }

    /// The fault at the end of streamed content: a digest that differs from the head's, or a key
    /// that was revoked or deleted after the head was judged; `nil` for none.
    static func faultAtEnd(of exchange: Exchange) -> Verdict.Outcome? {
        if let expected = exchange.flow.verdictState.expectedDigest {
            guard case .hashed(let digest) = exchange.content else {
                preconditionFailure("Judging: no digest is expected")
            }
            guard digest.stream.digest() == expected else {
                exchange.proxy.tally.add(.digestMismatches)
                return .refuse(.digestMismatch)
            }
        }
        return exchange.flow.verdictState.admittedKey.flatMap {
            exchange.proxy.judge.keyCheck.fault(of: $0, rule: exchange.flow.rule)
        }
    }

    /// The store has found that a request is a replay, after it was counted. It counts against the
    /// address, and no longer against the device.
    static func refused(atCommitOf exchange: Exchange) {
        exchange.addFailure(now: MonotonicClock.nanoseconds)
        let note = exchange.flow.verdictState.rate
        let keyID = exchange.flow.verdictState.keyID
        exchange.proxy.judge.takeBack(note, of: keyID, exchange.flow.rule)
    }

    private func judged(_ verdict: Verdict) -> Flow.Action {
        exchange.flow.judged(verdict, enforcement(of: verdict, by: exchange.flow.rule))
    }

    private func enforcement(of verdict: Verdict, by rule: Rule) -> Enforcement {
        Enforcement(
            rule,
            signer: verdict.signer,
            address: exchange.account.address,
            at: UnixTime(seconds: proxy.wallSeconds)
        )
    }

    /// Keeps what the client claims about its app, where no device has signed it.
    private func noteClaimedVersion(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) {
        let version = head.fields.appBuild(bytes).flatMap { AppVersion(bytes, $0) }
        exchange.record.claims.version = version
    }

    /// Counts the cost of the verdict. A verification without an admission is counted against the
    /// address, also that of a recorded request: it costs as much as that of a bad signature. Some
    /// requests of a device that is over its rate are forgiven.
    private func count(_ verdict: Verdict) {
        if verdict.outcome == .refuse(.addressThrottled) {
            proxy.tally.add(.addressVerificationsRefused)
        }
        guard countVerifications() > 0, verdict.isInVain else { return }
        exchange.addFailure(now: beganAt)
    }

    /// Notes how long the judge took.
    @discardableResult
    private func countVerifications() -> UInt64 {
        let now = MonotonicClock.nanoseconds
        exchange.record.add(.judging, since: beganAt, until: now)
        let done = proxy.judge.verifications &- verifiedBefore
        guard done > 0 else { return 0 }
        proxy.tally.add(.verifications, done)
        proxy.tally.add(.verification, nanoseconds: now &- beganAt)
        return done
    }
}

extension Exchange {
    /// Whether a proxy that sends the content with its question has not sent all of it.
    fileprivate var isCut: Bool { !flow.seesContent && peer.decides?.content == .whole }

    /// Whether the target and the field lines are the client's own bytes. In Envoy's questions over
    /// HTTP they are not.
    fileprivate var isExact: Bool {
        guard case .decision(let form, _) = flow.purpose else { return true }
        return switch form {
        case .authRequest, .forwardAuth: true
        case .extAuthz: false
        case .extAuthzGRPC: client?.asked?.isExact ?? false
        }
    }
}
