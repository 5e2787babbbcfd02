import AppAttest
import Cryptography
import Expectations
import KeyStore
import RequestBinding
import Rules
import SoftwareAuthenticator
import Synchronization
import Testing
import Tokens
import Verification

/// A line of the table of decisions.
struct DecisionRow: Sendable, CustomTestStringConvertible {
    let mode: Mode
    let isEnforced: Bool
    let onError: DependencyErrorRule
    let level: Verdict.ProofLevel
    let outcome: Verdict.Outcome
    let expected: Decision

    var verdict: Verdict {
        var verdict = Verdict(outcome)
        verdict.level = level
        return verdict
    }

    var testDescription: String {
        "\(mode.rawValue) \(isEnforced) \(onError.rawValue) \(level) \(outcome.word)"
    }

    /// Written from the design: a denial is one whatever the verdict; else only enforcement
    /// refuses, and an error only where the rule says so, or where more is wrong than that.
    static let all: [DecisionRow] = [Verdict.ProofLevel.claimed, .signed, .complete].flatMap(rows)

    private static func rows(_ level: Verdict.ProofLevel) -> [DecisionRow] {
        Mode.allCases.flatMap { rows($0, level) }
    }

    private static func rows(_ mode: Mode, _ level: Verdict.ProofLevel) -> [DecisionRow] {
        [false, true].flatMap { isEnforced in
            DependencyErrorRule.allCases.flatMap { onError in
                let outcomes: [Verdict.Outcome] = [
                    .pass, .refuse(.signatureMismatch), .failure(.store),
                ]
                return outcomes.map { outcome in
                    var expected = Decision.forward
                    if mode == .enforce, isEnforced {
                        if outcome == .refuse(.signatureMismatch) {
                            expected = .refuse(.signatureMismatch)
                        }
                        if outcome == .failure(.store),
                            onError == .refuse || level != .complete
                        {
                            expected = .refuse(.storeUnavailable)
                        }
                    }
                    if mode == .deny { expected = .refuse(.noRule) }
                    return DecisionRow(
                        mode: mode,
                        isEnforced: isEnforced,
                        onError: onError,
                        level: level,
                        outcome: outcome,
                        expected: expected
                    )
                }
            }
        }
    }
}

/// A journal in which another process has changed something that can't be read.
final class UnreadableJournal: KeyJournal {
    private let memory: MemoryJournal
    private let follower = Mutex<(@Sendable () -> JournalError?)?>(nil)

    init(_ memory: MemoryJournal = MemoryJournal()) { self.memory = memory }

    func follow(_ body: @escaping @Sendable () -> JournalError?) {
        follower.withLock { $0 = body }
    }

    var decides: DecisionMoment { memory.decides }

    func breakDown() { _ = follower.withLock { $0 }?() }

    func load(apps: AppNumbers, into body: ([KeyRow]) -> Void) throws(JournalError)
        -> JournalRevision
    { try memory.load(apps: apps, into: body) }

    func enrolmentSecret() throws(JournalError) -> [UInt8]? { nil }

    func commit(_ batch: JournalBatch) throws(JournalError) -> CommitAnswer {
        try memory.commit(batch)
    }

    func changes(
        since revision: JournalRevision,
        into body: ([KeyRow]) -> Void
    ) throws(JournalError) -> JournalRevision {
        throw JournalError(.unusable, "broken on purpose")
    }

    func settle() throws(JournalError) {}

    func close() {}
}

@Suite struct DecisionTests {
    @Test(arguments: DecisionRow.all)
    func `mode, rollout and verdict decide`(row: DecisionRow) {
        let rule = Trial.rule(row.mode) { $0.onError = row.onError }
        let decision = Decision(row.verdict, rule: rule, isEnforced: row.isEnforced)
        expectEqual(decision, row.expected)
    }

    @Test(arguments: Refusal.allCases)
    func `no refusal is forwarded because of on_error`(refusal: Refusal) {
        let rule = Trial.rule { $0.onError = .forward }
        let decision = Decision(Verdict(.refuse(refusal)), rule: rule, isEnforced: true)
        expectEqual(decision, .refuse(refusal))
    }

    @Test(arguments: Refusal.allCases)
    func `a rule that denies says why it refuses only where rules dispute the request`(
        refusal: Refusal
    ) {
        let isDisputed = DisputedRoute.Reason.allCases.contains { Refusal($0) == refusal }
        let decision = Decision(
            Verdict(.refuse(refusal)),
            rule: Trial.rule(.deny),
            isEnforced: true
        )
        expectEqual(decision, .refuse(isDisputed ? refusal : .noRule))
    }

    @Test func `an excuse forwards a refusal only`() {
        var verdict = Verdict(.refuse(.unsupported))
        verdict.isExcused = true
        expectEqual(Decision(verdict, rule: Trial.rule(), isEnforced: true), .forward)
    }

    @Test func `what observes judges and consumes as what enforces`() throws {
        for mode in [Mode.observe, .enforce] {
            var trial = try Trial()
            var key = trial.enrolledKey()
            let rule = Trial.rule(mode)
            let request = try trial.request()
            try expectEqual(trial.send(request, by: &key, rule).outcome, .pass)
            let again = try trial.send(request, by: &key, rule, damage: .counterRepeated)
            expectEqual(again.outcome, .refuse(.counterReplayed))
            let spent = try trial.send(request, by: &key, rule)
            expectEqual(spent.outcome, .refuse(.challengeSpent))
        }
    }

    @Test func `a store without room is a failure and spends nothing`() throws {
        var trial = try Trial(changesMax: 0)
        var key = trial.enrolledKey()
        let request = try trial.request()
        let verdict = try trial.send(request, by: &key)
        expectEqual(verdict.outcome, .failure(.store))
        expectEqual(verdict.outcome.word, "error")
        expectEqual(verdict.outcome.reason, "store-unavailable")
        let challenge = Array((request.challenge ?? "").utf8)
        let examined = trial.issuer.examine(
            challenge.span,
            purpose: .assertion,
            now: trial.now.seconds
        )
        guard case .valid = examined else {
            Issue.record("spent")
            return
        }
        try expectEqual(trial.counters(key).highest, .zero)
    }

    @Test func `a bad assertion is a refusal although the store has no room`() throws {
        var trial = try Trial(changesMax: 0)
        var key = trial.enrolledKey()
        let verdict = try trial.send(try trial.request(), by: &key, damage: .signature)
        expectEqual(verdict.outcome, .refuse(.signatureMismatch))
    }

    @Test func `a store that can't say who is revoked is a failure`() throws {
        let journal = UnreadableJournal()
        let keys = try KeyTable(journal: journal)
        var trial = try Trial()
        trial.judge = Judge(
            apps: trial.policies,
            decider: Decider(
                keys: keys,
                challenges: trial.issuer,
                sessions: trial.sessions
            )
        )
        var key = Trial.device().makeKey()
        try expectEqual(trial.send(try trial.request(), by: &key).outcome, .refuse(.keyUnknown))
        journal.breakDown()
        try expectEqual(trial.send(try trial.request(), by: &key).outcome, .failure(.store))
    }

    /// A trial whose store has failed since its keys were read, and one of them.
    private func failing() throws -> (trial: Trial, key: SoftwareKey) {
        var trial = try Trial()
        let key = trial.enrolledKey()
        try trial.breakStore()
        return (trial, key)
    }

    private static let forwarding: [Rule] = [
        Trial.rule { $0.onError = .forward },
        Trial.rule {
            $0.onError = .forward
            $0.body = .held(limit: .mebibytes(1), memory: .kibibytes(1))
        },
    ]

    private func decision(_ verdict: Verdict, _ rule: Rule) -> Decision {
        Decision(verdict, rule: rule, isEnforced: true)
    }

    @Test(arguments: forwarding)
    func `with reads that fail on_error forwards what is good, and nothing that is wrong`(
        rule: Rule
    ) throws {
        var (trial, key) = try failing()
        let request = try trial.request()

        let forged = try trial.send(request, by: &key, rule, damage: .signature)
        expectEqual(decision(forged, rule), .refuse(.signatureMismatch))
        let other = try trial.send(request, by: &key, rule, damage: .otherApp)
        expectEqual(decision(other, rule), .refuse(.appMismatch))
        var stranger = Trial.device().makeKey()
        let unknown = try trial.send(request, by: &stranger, rule)
        expectEqual(unknown.outcome, .failure(.store))
        expectEqual(decision(unknown, rule), .refuse(.storeUnavailable))
        var made = request
        made.challenge = try trial.challenge(.enrolment)
        let challenged = try trial.send(made, by: &key, rule)
        expectEqual(decision(challenged, rule), .refuse(.challengeUnknown))

        try expectOneForward(of: request, by: &key, rule, &trial)
    }

    /// While the store fails, an assertion is forwarded once, and neither counter nor challenge
    /// serves again.
    private func expectOneForward(
        of request: SoftwareKey.Request,
        by key: inout SoftwareKey,
        _ rule: Rule,
        _ trial: inout Trial
    ) throws {
        let good = try trial.send(request, by: &key, rule)
        expectEqual(good.outcome, .failure(.store))
        expectEqual(decision(good, rule), .forward)
        let again = try trial.send(try trial.request(), by: &key, rule, damage: .counterRepeated)
        expectEqual(decision(again, rule), .refuse(.counterReplayed))
        let spent = try trial.send(request, by: &key, rule)
        expectEqual(decision(spent, rule), .refuse(.challengeSpent))
    }

    @Test func `a store without room lets on_error forward an assertion once`() throws {
        let rule = Self.forwarding[0]
        var trial = try Trial(changesMax: 0)
        var key = trial.enrolledKey()
        let request = try trial.request()
        try expectOneForward(of: request, by: &key, rule, &trial)
    }

    @Test func `where no more spent challenges can be remembered nobody is admitted`() throws {
        for rule in [Trial.rule()] + Self.forwarding {
            var trial = try Trial()
            let issuer = ChallengeIssuer(capacity: 1)
            trial.judge = Judge(
                apps: trial.policies,
                decider: Decider(
                    keys: trial.keys,
                    challenges: issuer,
                    sessions: trial.sessions
                )
            )
            var key = trial.enrolledKey()
            var requests: [SoftwareKey.Request] = []
            for _ in 0..<2 {
                var request = try trial.request()
                for _ in 0..<448 {
                    let text = issuer.issue(.assertion, now: trial.now.seconds)
                    request.challenge = String(decoding: text, as: UTF8.self)
                }
                requests.append(request)
            }
            try expectEqual(trial.send(requests[0], by: &key, rule).outcome, .pass)
            let full = try trial.send(requests[1], by: &key, rule)
            expectEqual(decision(full, rule), .refuse(.challengesExhausted))
            try expectEqual(trial.counters(key).highest.rawValue, 1)
        }
    }

    @Test func `only the key that has signed is the signer`() throws {
        var (trial, key) = (try Trial(), Trial.device().makeKey())
        try expectEqual(trial.send(try trial.request(), by: &key).signer, nil, "unknown")
        key = trial.enrolledKey()
        try expectEqual(trial.send(try trial.request(), by: &key, damage: .signature).signer, nil)
        let missing = try trial.send(try trial.request(), by: &key) {
            $0.remove("App-Attest-Challenge")
        }
        expectEqual(missing.signer, nil)
        let request = try trial.request()
        try expectEqual(trial.send(request, by: &key).signer, key.keyID)
        try expectEqual(trial.send(request, by: &key).signer, key.keyID, "a spent challenge")
        let replayed = try trial.send(try trial.request(), by: &key, damage: .counterRepeated)
        expectEqual(replayed.signer, key.keyID)
        _ = trial.journal.revoke(key.keyID, at: 1)
        try expectEqual(trial.send(try trial.request(), by: &key).signer, nil, "revoked")
    }
}
