import Dispatch
import EventLoops
package import KeyStore
import Logging
package import OutboundCalls
package import Signatures
import Synchronization
package import Verification

/// The calls to services that know the tokens of `proofs`, and the tokens that were used.
///
/// It runs on the event loops and on the queue of the client that makes the calls, and never waits.
/// No line of the log has a token or a secret.
package final class ProofCalls<Party: CalledParty>: Sendable
where Party.Call.Host == String, Party.Call.Kind == String, Party.Call.Family == String {
    private struct State {
        /// By the names of the proofs.
        var used: [String: UsedTokens] = [:]
        var outcomes: [Outcome: UInt64] = [:]
        var pace = NoticePace<Outcome>()
    }

    private struct Outcome: Hashable {
        let proof: String
        let word: String
    }

    /// The time that a request waits for the store after the service has answered.
    private static var storeTime: DispatchTimeInterval { .seconds(5) }

    private let calls: CallClient<Party>
    private let decider: Decider
    private let log: Logger
    private let queue: DispatchQueue
    private let state = Mutex(State())

    /// - name: of the queues, for debuggers.
    package init(named name: String, _ settings: Party.Settings, _ context: PartyContext) {
        calls = CallClient(
            named: name,
            settings,
            over: context.transport,
            wallClock: context.wallClock
        )
        queue = DispatchQueue(label: "portcullis.\(name).store")
        (decider, log) = (context.decider, context.log)
        calls.watch { [log] notice, detail in Self.tell(notice, detail, in: log) }
    }

    /// A reload is about to serve this configuration. Used tokens stay used.
    package func loaded(_ settings: Party.Settings) { calls.reload(settings) }

    /// Replies to all waiting requests that no call is made any more.
    package func stop(_ ended: @escaping @Sendable () -> Void) { calls.stop(ended) }

    /// As ``CallClient/send(_:_:)``.
    package func send(_ call: Party.Call, _ done: @escaping @Sendable (CallReply) -> Void) {
        calls.send(call, done)
    }

    // MARK: Used tokens

    /// A token that its service is about to be asked about.
    package struct Shown: Sendable {
        package let proof: String
        package let client: TokenClient
        package let digest: SHA256Digest

        package init(_ text: [UInt8], of proof: String, _ client: TokenClient) {
            (self.proof, self.client) = (proof, client)
            // The name is no part of a token: a zero byte ends it.
            digest = SHA256.digest(of: Array(proof.utf8) + [0] + text)
        }
    }

    /// A token is to be asked about.
    ///
    /// - Returns: what is known of it without a call; `nil` when the service is to be asked.
    package func begin(_ token: Shown, _ limits: UsedTokens.Limits) -> TokenChecking? {
        let beginning = state.withLock { state in
            var used = state.used.removeValue(forKey: token.proof) ?? UsedTokens(limits)
            defer { state.used[token.proof] = used }
            used.raise(tokensMax: limits.tokensMax)
            return used.begin(token.digest, of: token.client, now: MonotonicClock.seconds)
        }
        switch beginning {
        case .begun: return nil
        case .used: return known(.spent, "used-here", of: token.proof)
        case .crowded: return known(.throttled, "crowded", of: token.proof)
        case .full: return known(.unavailable, "tokens-full", of: token.proof)
        }
    }

    /// A token of which nothing has to be asked.
    package func known(_ finding: TokenFinding, _ word: String, of proof: String) -> TokenChecking {
        count(word, of: proof)
        return .known(finding)
    }

    /// What ``begin(_:_:)`` has begun has ended.
    package func finish(_ token: Shown, isSpent: Bool) {
        state.withLock { state in
            state.used[token.proof]?.end(
                token.digest,
                of: token.client,
                isSpent: isSpent,
                now: MonotonicClock.seconds
            )
        }
    }

    /// Spends a good token through the store, so that it is good once whatever crashes, and in a
    /// fleet. The services promise the same, but their promise can't be checked here.
    ///
    /// - fresh: the finding when it was not spent before.
    package func spend(
        _ token: SpentToken,
        fresh: TokenFinding,
        _ found: @escaping @Sendable (TokenFinding) -> Void
    ) {
        let first = FirstAnswer(found)
        decider.spend(token) { outcome in
            switch outcome {
            case .fresh: first.give(fresh)
            case .spent: first.give(.spent)
            case .failed: first.give(.unavailable)
            }
        }
        queue.asyncAfter(deadline: .now() + Self.storeTime) { first.give(.unavailable) }
    }

    // MARK: For operators

    /// Counts what was found of a token.
    package func count(_ word: String, of proof: String) {
        state.withLock { $0.outcomes[Outcome(proof: proof, word: word), default: 0] &+= 1 }
    }

    /// Reports what an operator has to mend; `nil` for nothing.
    package func tell(_ word: String, of proof: String, next: String?) {
        guard let next else { return }
        let untold = state.withLock {
            $0.pace.untold(of: Outcome(proof: proof, word: word), now: MonotonicClock.nanoseconds)
        }
        guard let untold else { return }
        let more = untold > 0 ? ", and \(untold) more times since this was last told" : ""
        log.warning("proof \(proof): \(word)\(more); next: \(next)")
    }

    private static func tell(
        _ notice: CallNotice<Party.Call>,
        _ detail: String?,
        in log: Logger
    ) {
        switch notice {
        case .ended(let proof, let reply, _):
            guard let detail else { return }
            log.debug("proof \(proof): \(reply), \(detail)")
        case .breaker(let proof, .open):
            log.error(
                """
                proof \(proof): its service is left alone for a while, since calls failed one \
                after the other or it asked for it; on_error decides about requests meanwhile
                """
            )
        case .breaker(let proof, .halfOpen):
            log.info("proof \(proof): one call tries whether its service works again")
        case .breaker(let proof, .closed): log.notice("proof \(proof): its service works again")
        }
    }

    /// The state of the calls, for the admin pages.
    package var facts: ProofCallFacts {
        var facts: ProofCallFacts = calls.read { machine in
            var facts = ProofCallFacts()
            facts.services = machine.standing.map { proof, line in
                CallLineFacts(
                    labels: [("proof", proof)],
                    waiting: line.waitingCount,
                    underWay: line.underWayCount,
                    breaker: line.condition.rawValue
                )
            }
            facts.ends = machine.tally.sortedEnds.map { end, count in
                ProofCallFacts.Count(proof: end.kind, word: end.status, count: count)
            }
            facts.durations = machine.standing.compactMap { proof, _ in
                machine.tally.durations[proof].map { (proof, $0) }
            }
            return facts
        }
        let (outcomes, used) = state.withLock { ($0.outcomes, $0.used.mapValues(\.count)) }
        facts.verdicts = outcomes.map { outcome, count in
            ProofCallFacts.Count(proof: outcome.proof, word: outcome.word, count: count)
        }.sorted { ($0.proof, $0.word) < ($1.proof, $1.word) }
        facts.usedTokens = used.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        return facts
    }
}
