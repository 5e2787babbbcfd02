package import AppAttest
import EventLoops
package import HTTPWire
package import Rules
import Telemetry
package import Verification

// Queries about a request, which other parties answer at once or later.
extension Exchange {
    /// Asks the party that knows the answer.
    func ask(_ query: RequestQuery) -> Flow.Action {
        switch query {
        case .device: askDevice()
        case .token(let proof): askToken(proof)
        }
    }

    /// Takes an answer on any thread. The client may have gone by then, or the time may be over.
    func answerLater() -> @Sendable (QueryAnswer) -> Void {
        let since = MonotonicClock.nanoseconds
        let loop = loop
        let waiting = LoopBound(self, on: loop)
        return { answer in
            loop.perform { waiting.value.answered(answer, since: since) }
        }
    }

    private func answered(_ answer: QueryAnswer, since: UInt64) {
        switch answer {
        case .device(let finding): note(finding, since: since)
        case .token(let proof, let finding):
            proxy.commits.stored(self)
            note(finding, of: proof, since: since)
        }
        perform(flow.answered(answer))
    }

    /// Has a token checked. Where the answer comes later, the request waits for as long as for a
    /// commit at most, unless the proof names a time of its own.
    private func askToken(_ proof: TokenProof) -> Flow.Action {
        guard let tokens else {
            preconditionFailure("Exchange: a query about a token that was not read")
        }
        let since = MonotonicClock.nanoseconds
        func answer(_ finding: TokenFinding) -> Flow.Action {
            note(finding, of: proof, since: since)
            return flow.answered(.token(proof, finding))
        }
        let text: [UInt8]
        switch tokens.showing(proof, flow.rule) {
        case .nothing: return answer(.missing)
        case .unreadable: return answer(.malformed)
        case .text(let shown): text = shown
        }
        guard mayVerify(now: since) else { return answer(.throttled) }
        // A gateway without the proof's check knows nothing of its tokens.
        guard settings.tokenChecks.indices.contains(proof.index) else {
            return answer(.unavailable)
        }
        let shown = ShownToken(
            text: text,
            proof: proof,
            rule: flow.rule.id,
            host: record.asked.host,
            address: hasAddress ? account.address : nil,
            now: UnixTime(seconds: proxy.wallSeconds)
        )
        let later = answerLater()
        let checking = settings.tokenChecks[proof.index].check(shown) { later(.token(proof, $0)) }
        switch checking {
        case .known(let finding): return answer(finding)
        case .later: break
        case .afterCommit: proxy.commits.waitToStore(self)
        }
        return .none
    }

    /// A token that was checked in vain counts against the client's address: a stranger's tokens
    /// cost as much as good ones.
    private func note(_ finding: TokenFinding, of proof: TokenProof, since: UInt64) {
        let now = MonotonicClock.nanoseconds
        switch finding {
        case .missing: return
        case .good: break
        case .invalid, .spent: addFailure(now: now)
        case .malformed, .expired, .refused, .throttled, .unavailable: break
        }
        proxy.tally.add(.tokenCheck, nanoseconds: now &- since)
    }
}

/// A token that a request shows.
package struct ShownToken: Sendable {
    /// 1…``Verification/ShownTokens/bytesMax`` bytes, as they came.
    package let text: [UInt8]
    package let proof: TokenProof
    /// The id of the request's rule.
    package let rule: String
    /// The request's host, as the client wrote it.
    package let host: [UInt8]
    /// The client's address; `nil` where it is unknown.
    package let address: IPAddress?
    package let now: UnixTime

    package init(
        text: [UInt8],
        proof: TokenProof,
        rule: String,
        host: [UInt8],
        address: IPAddress?,
        now: UnixTime
    ) {
        self.text = text
        self.proof = proof
        self.rule = rule
        self.host = host
        self.address = address
        self.now = now
    }
}

/// What is known of a token when its check returns.
package enum TokenChecking: Hashable, Sendable {
    /// The result. No other follows.
    case known(TokenFinding)
    /// The result follows, within a time that the check bounds.
    case later
    /// The result follows a commit of the store. The request waits for ``Timeouts/commit`` at most.
    case afterCommit
}

/// Checks the tokens of one proof of the section `proofs`, for all event loops.
package protocol TokenChecker: Sendable {
    /// Checks a token, and uses it up where it is good once.
    ///
    /// - found: called exactly once, on any thread, unless the result is known at once.
    func check(
        _ token: ShownToken,
        _ found: @escaping @Sendable (TokenFinding) -> Void
    ) -> TokenChecking
}
