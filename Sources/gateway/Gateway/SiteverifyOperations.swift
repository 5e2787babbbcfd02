import ConfigurationReading
import Dispatch
import EventLoops
import HTTPSCalls
import KeyStore
import Logging
import OutboundCalls
import Proxy
import Services
import Signatures
import SiteverifyServices
import Synchronization
import Verification

/// Tests for people: asks their services about the tokens of requests, and remembers the tokens
/// that were used.
///
/// It runs on the event loops and on the queue of the client that makes the calls, and never waits.
/// No line of the log has a token or a secret.
final class SiteverifyOperations: Sendable {
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

    /// Seconds for which the store remembers a token. The services take one for some minutes.
    private static let lifetime: Int64 = 3_600
    /// The time that a request waits for the store after the service has answered.
    private static let storeTime = DispatchTimeInterval.seconds(5)

    private let calls: CallClient<SiteverifyCalls>
    private let store: KeyTable
    private let log: Logger
    private let queue = DispatchQueue(label: "portcullis.tests")
    private let state = Mutex(State())

    /// - wallClock: milliseconds since 1970.
    init(
        _ services: [SiteverifySettings],
        _ store: KeyTable,
        _ https: HTTPSCalls,
        _ log: Logger,
        _ wallClock: @escaping @Sendable () -> Int64
    ) {
        calls = CallClient("siteverify", services, https, wallClock: wallClock)
        self.store = store
        self.log = log
        calls.watch { [log] notice, detail in Self.tell(notice, detail, log) }
    }

    /// A reload is about to serve this configuration. Used tokens stay used.
    func loaded(_ services: [SiteverifySettings]) { calls.reload(services) }

    /// Replies to all waiting requests that no call is made any more.
    func stop(_ ended: @escaping @Sendable () -> Void) { calls.stop(ended) }

    // MARK: Requests

    fileprivate func check(
        _ token: ShownToken,
        _ settings: SiteverifySettings,
        _ found: @escaping @Sendable (TokenFinding) -> Void
    ) -> TokenChecking {
        guard SiteverifyCall.isToken(token.text) else {
            return known(.malformed, "malformed", settings)
        }
        // The name is no part of a token: a zero byte ends it.
        let digest = SHA256.digest(of: Array(settings.name.utf8) + [0] + token.text)
        let client = TokenClient(nil, at: token.address)
        switch begin(digest, client, settings) {
        case .begun: break
        case .used: return known(.spent, "used-here", settings)
        case .crowded: return known(.throttled, "crowded", settings)
        case .full: return known(.unavailable, "tokens-full", settings)
        }
        let call = SiteverifyCall(
            proof: settings.name,
            token: token.text,
            address: token.address,
            timeout: settings.timeout
        )
        let end = token.now.seconds + Self.lifetime
        calls.send(call) { [self] reply in
            let verdict = SiteverifyVerdict(reply, settings)
            finish(digest, client, settings, isSpent: verdict == .good)
            count(verdict.word, settings)
            guard verdict == .good else {
                tell(verdict, settings)
                return found(TokenFinding(verdict))
            }
            spend(SpentToken(digest, end: end), found)
        }
        return .later
    }

    private func known(
        _ finding: TokenFinding,
        _ word: String,
        _ settings: SiteverifySettings
    ) -> TokenChecking {
        count(word, settings)
        return .known(finding)
    }

    private func begin(
        _ digest: SHA256Digest,
        _ client: TokenClient,
        _ settings: SiteverifySettings
    ) -> UsedTokens.Beginning {
        state.withLock { state in
            let limits = settings.used
            var used = state.used.removeValue(forKey: settings.name) ?? UsedTokens(limits)
            defer { state.used[settings.name] = used }
            used.raise(tokensMax: limits.tokensMax)
            return used.begin(digest, of: client, now: Self.seconds)
        }
    }

    private func finish(
        _ digest: SHA256Digest,
        _ client: TokenClient,
        _ settings: SiteverifySettings,
        isSpent: Bool
    ) {
        state.withLock { state in
            state.used[settings.name]?.end(
                digest,
                of: client,
                isSpent: isSpent,
                now: Self.seconds
            )
        }
    }

    /// Spends a good token through the store, so that it is good once whatever crashes, and in a
    /// fleet. The services promise the same, but their promise can't be checked here.
    private func spend(
        _ token: SpentToken,
        _ found: @escaping @Sendable (TokenFinding) -> Void
    ) {
        let first = FirstAnswer(found)
        store.spend(token) { outcome in
            switch outcome {
            case .fresh: first.give(.good)
            case .spent: first.give(.spent)
            case .failed: first.give(.unavailable)
            }
        }
        queue.asyncAfter(deadline: .now() + Self.storeTime) { first.give(.unavailable) }
    }

    /// Seconds of a clock that never goes back.
    private static var seconds: Int64 {
        Int64(clamping: MonotonicClock.nanoseconds / 1_000_000_000)
    }

    // MARK: For operators

    private func count(_ word: String, _ settings: SiteverifySettings) {
        state.withLock {
            $0.outcomes[Outcome(proof: settings.name, word: word), default: 0] &+= 1
        }
    }

    /// Reports what an operator has to mend.
    private func tell(_ verdict: SiteverifyVerdict, _ settings: SiteverifySettings) {
        guard let next = verdict.next else { return }
        let (name, word) = (settings.name, verdict.word)
        let untold = state.withLock {
            $0.pace.untold(of: Outcome(proof: name, word: word), now: MonotonicClock.nanoseconds)
        }
        guard let untold else { return }
        let more = untold > 0 ? ", and \(untold) more times since this was last told" : ""
        log.warning("proof \(name): \(word)\(more); next: \(next)")
    }

    private static func tell(
        _ notice: CallNotice<SiteverifyCall>,
        _ detail: String?,
        _ log: Logger
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
    var facts: ProofCallFacts {
        var facts = calls.read { machine in
            ProofCallFacts(
                services: machine.standing.map { proof, line in
                    CallLineFacts(
                        labels: [("proof", proof)],
                        waiting: line.waitingCount,
                        underWay: line.underWayCount,
                        breaker: line.condition.rawValue
                    )
                },
                breakers: CallBreaker.Condition.allCases.map(\.rawValue),
                ends: machine.tally.sortedEnds.map { end, count in
                    ProofCallFacts.Count(proof: end.kind, word: end.status, count: count)
                },
                durations: machine.standing.compactMap { proof, _ in
                    machine.tally.durations[proof].map { (proof, $0) }
                }
            )
        }
        let (outcomes, used) = state.withLock { ($0.outcomes, $0.used.mapValues(\.count)) }
        facts.verdicts = outcomes.map { outcome, count in
            ProofCallFacts.Count(proof: outcome.proof, word: outcome.word, count: count)
        }.sorted { ($0.proof, $0.word) < ($1.proof, $1.word) }
        facts.usedTokens = used.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        return facts
    }
}

/// Checks the tokens of one service.
struct SiteverifyCheck: TokenChecker {
    let settings: SiteverifySettings
    let operations: SiteverifyOperations

    func check(
        _ token: ShownToken,
        _ found: @escaping @Sendable (TokenFinding) -> Void
    ) -> TokenChecking {
        operations.check(token, settings, found)
    }
}

extension TokenFinding {
    fileprivate init(_ verdict: SiteverifyVerdict) {
        self =
            switch verdict {
            case .good: .good
            case .failed: .unavailable
            case .refused(let refusal):
                switch refusal {
                case .invalid, .call, .otherKey, .browser, .unknownCode: .invalid
                case .expired: .expired
                case .used, .expiredOrUsed: .spent
                case .hostname, .action, .score, .noScore: .refused
                }
            }
    }
}

extension SiteverifyVerdict {
    /// The next step for the operator; `nil` where there is nothing to mend.
    var next: String? {
        switch self {
        case .good: nil
        case .refused(let refusal):
            switch refusal {
            case .call: "if it is so for all tokens, see url, site_key and action of the proof"
            case .noScore: "take out min_score and max_score: the key gives no score"
            case .unknownCode: "see what the service's documents say of new codes"
            case .invalid, .expired, .used, .expiredOrUsed, .browser, .otherKey, .hostname,
                .action, .score:
                nil
            }
        case .failed(let fault):
            switch fault {
            case .secretRefused: "see secret_file of the proof: the service does not accept it"
            case .callRefused: "see url of the proof; a redirect is not followed"
            case .tooMany: "lower rate of the proof, or raise the quota at the service"
            case .broken: "wait: the service has a fault"
            case .unreadable: "see what is between this machine and the service"
            case .unanswered(.queueFull), .unanswered(.queueTimeout):
                "raise rate, concurrent or queue of the proof"
            case .unanswered(.unreachable): "see this machine's names, routes and firewall"
            case .unanswered(.tls): "see roots of the proof, or this machine's certificates"
            case .unanswered(.timeout): "see the network, or raise timeout of the proof"
            case .unanswered(.broken), .unanswered(.garbled), .unanswered(.answerTooLong):
                "see what is between this machine and the service"
            case .unanswered(.breakerOpen), .unanswered(.stopping), .unanswered(.noCredential),
                .unanswered(.noHost):
                nil
            }
        }
    }
}
