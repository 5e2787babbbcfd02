import AppAttest
import EventLoops
import HTTPWire
import KeyStore
import Rules
import Telemetry
import Verification

/// Lets the event loop's judge judge a request, and counts the cost.
///
/// There are two steps: the head is judged while its bytes are there, and what had to wait is
/// judged after the wait.
struct Judging {
    /// The most rules beside the deciding one at which a disputed request counts.
    private static let disputantsMax = 16

    private let exchange: ExchangeState

    init(_ exchange: ExchangeState) { self.exchange = exchange }

    private var proxy: ProxyLoop { exchange.proxy }

    /// What the judge had done before it was asked.
    private struct Cost {
        /// Monotonic nanoseconds.
        let beganAt = MonotonicClock.nanoseconds
        /// The number of signatures that it had verified.
        let verifiedBefore: UInt64
    }

    /// - tick: monotonic nanoseconds.
    private func circumstances(at tick: UInt64) -> RequestCircumstances {
        let now = UnixTime(seconds: proxy.wallSeconds)
        var circumstances = RequestCircumstances(now: now, tick: tick)
        circumstances.mayVerify = exchange.mayVerify(now: tick)
        circumstances.seesContent = exchange.flow.seesContent
        circumstances.isExact = exchange.isExact
        circumstances.isCut = exchange.isCut
        return circumstances
    }

    // MARK: The first step

    /// Judges the head. If the request goes on, writes the head for the origin.
    func judge(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) -> Flow.Action {
        let cost = Cost(verifiedBefore: proxy.judge.verifications)
        let rule = exchange.flow.rule
        let opening = proxy.judge.open(
            head,
            bytes,
            rule: rule,
            content: exchange.content.arrived.span,
            in: circumstances(at: cost.beganAt)
        )
        if rule.asksDevice, opening.mayPass { exchange.device = DeviceVisit(head, bytes) }
        if rule.namesTokens { exchange.tokens = ShownTokens(head, bytes, for: rule) }
        let action: Flow.Action
        switch consume opening {
        case .judged(let verdict):
            if verdict.appVersion == nil { noteClaimedVersion(head, bytes) }
            if exchange.flow.seeksKey(verdict) {
                exchange.keptHead = bytes.withUnsafeBufferPointer { Array($0) }
                return judged(verdict, cost)
            }
            if verdict.expectedDigest != nil { exchange.content = .hashed(StreamedDigest()) }
            action = judged(verdict, cost)
        case .hold(let proof):
            noteClaimedVersion(head, bytes)
            count(cost)
            let held = HeldBody(exchange.heldBounds, key: proof.keyID)
            exchange.content = .unjudged(held, proof)
            // Without a stated digest nothing is verified so far, so the key is not known.
            let provisional = proof.provisional
            action = exchange.flow.contentAwaited(provisional, enforcement(of: provisional, rule))
        }
        exchange.writeHead(head, bytes)
        return action
    }

    /// Decides about a request that rules dispute. Its proof is not judged: no signature says for
    /// which of the rules it was made. So the client's address decides about a rollout.
    func settle(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        disputed dispute: DisputedRoute
    ) -> Flow.Action {
        let verdict = Verdict(.refuse(Refusal(dispute.reason)))
        let rule = dispute.deciding { enforcement(of: verdict, $0) == .enforced }
        exchange.flow.disputed(by: rule)
        noteClaimedVersion(head, bytes)
        let enforced = enforcement(of: verdict, rule)
        if enforced != .enforced {
            exchange.record.disputants = dispute.others(than: rule, atMost: Self.disputantsMax)
        }
        let action = exchange.flow.judged(verdict, enforced)
        exchange.writeHead(head, bytes)
        return action
    }

    // MARK: The second step

    /// What a request has waited for.
    enum Wait {
        /// The store was asked for its key.
        case key
        /// Its content, which is held, has come.
        case content
        /// The store's decision; `nil` where that has not come in time.
        case commit(ConsumeDecision?)
    }

    /// Goes on after a wait.
    func resume(after wait: Wait) -> Flow.Action {
        switch wait {
        case .key: judgeKeptHead()
        case .content: judgeContent()
        case .commit(nil): exchange.flow.commitTimedOut()
        case .commit(let decision?): take(decision)
        }
    }

    private func judgeKeptHead() -> Flow.Action {
        guard exchange.client != nil else { return .none }
        let bytes = exchange.keptHead
        exchange.keptHead = []
        let heads = proxy.scratch.askedHeads
        guard heads.fault(in: bytes.span, of: exchange.peer, exchange.settings.limits) == nil else {
            preconditionFailure("Judging: a head that was read can't be read again")
        }
        return judge(heads.request, bytes.span)
    }

    /// Judges held content that is complete.
    private func judgeContent() -> Flow.Action {
        guard case .unjudged(let held, let proof) = exchange.content else {
            preconditionFailure("Judging: content held without a proof")
        }
        exchange.client?.stopDeadline()
        let cost = Cost(verifiedBefore: proxy.judge.verifications)
        let verdict = proxy.judge.close(
            proof,
            content: held,
            rule: exchange.flow.rule,
            in: circumstances(at: cost.beganAt)
        )
        if !exchange.flow.seeksKey(verdict) {
            exchange.content = .held(held)
            if proof.hasCostSignature, verdict.isInVain {
                exchange.addFailure(now: cost.beganAt)
            }
        }
        return judged(verdict, cost)
    }

    /// Takes the store's decision about counter and challenge. The client may have gone meanwhile.
    /// A replay, which was counted as a request, counts against the address, and no longer against
    /// the device.
    private func take(_ decision: ConsumeDecision) -> Flow.Action {
        let keyID = exchange.flow.verdictState.keyID
        let decision = proxy.judge.keyCheck.late(decision, of: keyID)
        if case .refused = decision {
            exchange.addFailure(now: MonotonicClock.nanoseconds)
            proxy.judge.takeBack(exchange.flow.verdictState.rate, of: keyID, exchange.flow.rule)
        }
        return exchange.flow.committed(decision)
    }

    /// The fault at the end of streamed content: a digest that differs from the head's, or a key
    /// that was revoked or deleted after the head was judged; `nil` for none.
    var faultAtEnd: Verdict.Outcome? {
        if let expected = exchange.flow.verdictState.expectedDigest {
            guard case .hashed(let digest) = exchange.content else {
                preconditionFailure("Judging: no digest is expected")
            }
            guard digest.stream.digest() == expected else {
                proxy.tally.add(.digestMismatches)
                return .refuse(.digestMismatch)
            }
        }
        return exchange.flow.verdictState.admittedKey.flatMap {
            proxy.judge.keyCheck.fault(of: $0, rule: exchange.flow.rule)
        }
    }

    // MARK: The verdict

    /// Counts the cost of a verdict, and gives it to the machine. Where the store is asked for the
    /// key first, the request is judged again.
    private func judged(_ found: consuming Verdict, _ cost: Cost) -> Flow.Action {
        var verdict = found
        if !exchange.flow.seeksKey(verdict) {
            if verdict.awaitsKey { verdict.settleWithoutCommit() }
            count(verdict, cost)
        }
        return exchange.flow.judged(verdict, enforcement(of: verdict, exchange.flow.rule))
    }

    private func enforcement(of verdict: Verdict, _ rule: Rule) -> Enforcement {
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
    private func count(_ verdict: Verdict, _ cost: Cost) {
        if verdict.outcome == .refuse(.addressThrottled) {
            proxy.tally.add(.addressVerificationsRefused)
        }
        guard count(cost) > 0, verdict.isInVain else { return }
        exchange.addFailure(now: cost.beganAt)
    }

    /// Notes how long the judge took.
    @discardableResult
    private func count(_ cost: Cost) -> UInt64 {
        let now = MonotonicClock.nanoseconds
        exchange.record.add(.judging, since: cost.beganAt, until: now)
        let done = proxy.judge.verifications &- cost.verifiedBefore
        guard done > 0 else { return 0 }
        proxy.tally.add(.verifications, done)
        proxy.tally.add(.verification, nanoseconds: now &- cost.beganAt)
        return done
    }
}

extension ExchangeState {
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
