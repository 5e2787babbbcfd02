import AppAttest
import Challenges
import Cryptography
import Enforcement
import RequestBinding
import Rules
import SoftwareAuthenticator
import Store
import Synchronization
import Testing

/// A line of the table of decisions.
struct DecisionRow: Sendable, CustomTestStringConvertible {
    let mode: Mode
    let isEnforced: Bool
    let onError: DependencyErrorRule
    let verdict: Verdict
    let expected: Decision

    var testDescription: String {
        "\(mode.rawValue) \(isEnforced) \(onError.rawValue) \(verdict.word)"
    }

    /// Written from the design: a denial is one whatever the verdict; else only enforcement
    /// refuses, and an error only where the rule says so.
    static let all: [DecisionRow] = Mode.allCases.flatMap { mode in
        [false, true].flatMap { isEnforced in
            DependencyErrorRule.allCases.flatMap { onError in
                [Verdict.pass, .refuse(.signatureMismatch), .failure(.store)].map { verdict in
                    var expected = Decision.forward
                    if mode == .enforce, isEnforced {
                        if verdict == .refuse(.signatureMismatch) {
                            expected = .refuse(.signatureMismatch)
                        }
                        if verdict == .failure(.store), onError == .refuse {
                            expected = .refuse(.storeUnavailable)
                        }
                    }
                    if mode == .deny { expected = .refuse(.noRule) }
                    return DecisionRow(
                        mode: mode,
                        isEnforced: isEnforced,
                        onError: onError,
                        verdict: verdict,
                        expected: expected
                    )
                }
            }
        }
    }
}

/// A journal in which another process has changed something that can't be read.
private final class UnreadableJournal: KeyJournal {
    private let memory = MemoryJournal()
    private let isBroken = Atomic(false)

    var changeCount: UInt64 {
        memory.changeCount + (isBroken.load(ordering: .relaxed) ? 1 : 0)
    }

    func breakDown() { isBroken.store(true, ordering: .relaxed) }

    func load(apps: AppNumbers, into body: ([KeyRow]) -> Void) throws(JournalError)
        -> JournalRevision
    { try memory.load(apps: apps, into: body) }

    func commit(_ batch: JournalBatch) throws(JournalError) -> [EnrolledRow] {
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
        let decision = Decision(Ruling(row.verdict), rule: rule, isEnforced: row.isEnforced)
        #expect(decision == row.expected)
    }

    @Test(arguments: Refusal.allCases)
    func `no refusal is forwarded because of on_error`(refusal: Refusal) {
        let rule = Trial.rule { $0.onError = .forward }
        let decision = Decision(Ruling(.refuse(refusal)), rule: rule, isEnforced: true)
        #expect(decision == .refuse(refusal))
    }

    @Test func `an excuse forwards a refusal only`() {
        var ruling = Ruling(.refuse(.unsupported))
        ruling.isExcused = true
        #expect(Decision(ruling, rule: Trial.rule(), isEnforced: true) == .forward)
    }

    @Test func `what observes judges and consumes as what enforces`() throws {
        for mode in [Mode.observe, .enforce] {
            var trial = try Trial()
            var key = trial.enrolledKey()
            let rule = Trial.rule(mode)
            let request = try trial.request()
            #expect(try trial.send(request, by: &key, rule).verdict == .pass)
            let again = try trial.send(request, by: &key, rule, damage: .counterRepeated)
            #expect(again.verdict == .refuse(.counterReplayed))
            let spent = try trial.send(request, by: &key, rule)
            #expect(spent.verdict == .refuse(.challengeSpent))
        }
    }

    @Test func `a store without room is a failure and spends nothing`() throws {
        var trial = try Trial(changesMax: 0)
        var key = trial.enrolledKey()
        let request = try trial.request()
        let ruling = try trial.send(request, by: &key)
        #expect(ruling.verdict == .failure(.store))
        #expect(ruling.verdict.word == "error")
        #expect(ruling.verdict.reason == "store-unavailable")
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
        #expect(try trial.counters(key).highest == .zero)
    }

    @Test func `a bad assertion is a refusal although the store has no room`() throws {
        var trial = try Trial(changesMax: 0)
        var key = trial.enrolledKey()
        let ruling = try trial.send(try trial.request(), by: &key, damage: .signature)
        #expect(ruling.verdict == .refuse(.signatureMismatch))
    }

    @Test func `a store that can't say who is revoked is a failure`() throws {
        let journal = UnreadableJournal()
        let keys = try KeyTable(journal: journal)
        var trial = try Trial()
        trial.judge = Judge(apps: trial.policies, keys: keys, challenges: trial.issuer)
        var key = Trial.device().makeKey()
        #expect(try trial.send(try trial.request(), by: &key).verdict == .refuse(.keyUnknown))
        journal.breakDown()
        #expect(try trial.send(try trial.request(), by: &key).verdict == .failure(.store))
    }
}
