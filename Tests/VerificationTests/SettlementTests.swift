import AppAttest
import Expectations
import KeyStore
import RequestBinding
import Rules
import SoftwareAuthenticator
import TestSupport
import Testing
import Verification

/// What the store's decision about counter and challenge makes of a verdict.
@Suite struct SettlementTests {
    struct Row: CustomTestStringConvertible {
        let decision: ConsumeDecision
        let outcome: Verdict.Outcome
        let level: Verdict.ProofLevel

        var testDescription: String { "\(decision)" }

        static let all = [
            Row(decision: .admitted, outcome: .pass, level: .complete),
            Row(decision: .unassured, outcome: .failure(.store), level: .complete),
            Row(decision: .unavailable, outcome: .failure(.store), level: .signed),
            refused(.unknown, .keyUnknown),
            refused(.revoked, .keyRevoked),
            refused(.replayed, .counterReplayed),
            refused(.challengeSpent, .challengeSpent),
            refused(.challengesExhausted, .challengesExhausted),
        ]

        static func refused(_ refusal: ConsumeRefusal, _ expected: Refusal) -> Row {
            Row(decision: .refused(refusal), outcome: .refuse(expected), level: .signed)
        }
    }

    /// The line form without a challenge: a counter alone stops replays.
    private static let bare = Trial.rule { demands in
        demands.signing = .lines([.method, .target], headers: [])
        demands.challenge = .none
        demands.body = .none
    }

    @Test(arguments: Row.all)
    func `a decision of the store is a verdict`(row: Row) {
        var verdict = Verdict(.pass)
        verdict.level = .signed
        verdict.settle(row.decision)
        expectEqual(verdict.outcome, row.outcome)
        expectEqual(verdict.level, row.level)
        expectEqual(verdict.pending, .nothing)
    }

    @Test func `a pass that a table in memory has decided is awaited by enforced requests alone`()
        throws
    {
        var trial = try Trial()
        var key = trial.enrolledKey()
        let verdict = try trial.send(try trial.request(content: ""), by: &key, Self.bare)
        expectEqual(verdict.outcome, .pass)
        expectEqual(verdict.level, .complete)
        #expect(verdict.awaitedTicket(isEnforced: true) != nil)
        expectEqual(verdict.awaitedTicket(isEnforced: false), nil)
    }

    @Test func `a verdict that a commit decides is awaited by every request`() throws {
        var trial = try Trial()
        var key = Trial.device().makeKey()
        let store = DecidingJournal()
        store.add(
            KeyRecord(
                keyID: key.keyID,
                appID: Trial.appID,
                environment: .production,
                publicKey: key.publicKey,
                enrolledAt: nil
            )
        )
        let keys = try KeyTable(journal: store)
        trial.judge = Judge(
            apps: trial.policies,
            decider: Decider(
                keys: keys,
                challenges: trial.issuer,
                sessions: trial.sessions
            )
        )
        // A required challenge that is signed waits for no disk, but for the decision.
        for rule in [Self.bare, Trial.rule()] {
            let verdict = try trial.send(try trial.request(content: ""), by: &key, rule)
            expectEqual(verdict.outcome, .pass)
            expectEqual(verdict.level, .signed)
            #expect(verdict.awaitedTicket(isEnforced: true) != nil)
            #expect(verdict.awaitedTicket(isEnforced: false) != nil)
        }
    }
}
