import AppAttest
import Challenges
import KeyStore
import RequestBinding
import Rules

// What a good request with an assertion uses up: counter and challenge.
extension Judge {
    /// Uses counter and challenge in one step of the store, now or when it has committed.
    func consume(
        _ counter: SignCounter,
        _ serial: ChallengeSerial?,
        _ keyID: KeyID,
        _ row: Int64?,
        rule: Rule,
        now: UnixTime,
        _ ruling: inout Ruling
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
}

extension CounterRule {
    /// The rule as the store takes it.
    var store: StoreCounterRule {
        switch self {
        case .strict: .strict
        case .window(let width): .window(width)
        }
    }
}
