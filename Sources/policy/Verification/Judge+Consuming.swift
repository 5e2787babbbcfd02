import AppAttest
import KeyStore
import RequestBinding
import Rules
import Tokens

// Uses up counter and challenge of a good request with an assertion.
extension Judge {
    /// Uses counter and challenge in one step of the store, at once or at its commit.
    func consume(
        _ counter: SignCounter,
        _ serial: ChallengeSerial?,
        _ keyID: KeyID,
        _ row: Int64?,
        rule: Rule,
        now: UnixTime,
        _ verdict: inout Verdict
    ) {
        let outcome = keys.consume(
            keyID,
            row: row,
            counter: counter,
            rule: rule.counter.store,
            challenge: serial,
            issuer: challenges,
            now: now.seconds,
            durability: survivesCrash(rule) ? .behind : .awaited,
            whenFailing: rule.onError == .forward ? .useInMemory : .decline
        )
        switch outcome {
        case .decided(let decision): verdict.settle(decision)
        case .pending(let ticket):
            switch keys.decides {
            case .inMemory:
                verdict.settle(.admitted)
                verdict.pending = .durability(ticket)
            case .atCommit: verdict.pending = .verdict(ticket)
            }
        }
    }

    /// Whether a replay is stopped after a crash although the counter is not on disk. The challenge
    /// stops it, where the line form signs it and the rule requires it: it dies with the process.
    /// An assertion of another form could be sent to a rule that asks for no challenge.
    private func survivesCrash(_ rule: Rule) -> Bool {
        guard rule.challenge == .required, case .lines(let parts, _) = rule.signing else {
            return false
        }
        return parts.contains(.challenge)
    }
}

extension CounterRule {
    /// The rule in the store's form.
    var store: StoreCounterRule {
        switch self {
        case .strict: .strict
        case .window(let width): .window(width)
        }
    }
}
