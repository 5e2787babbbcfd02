import AppAttest
import Dispatch
import Expectations
import Foundation
import KeyStore
import LoopbackKit
import Synchronization
import TestSupport
import Testing
import Tokens

@testable import PostgreSQLKeyStore

/// What holds when gateways meet at the same rows at the same moment.
@Suite struct FleetTests {
    private static let gateways = 6

    private let settings: PostgreSQLSettings
    private let journals: [PostgreSQLKeyJournal]
    private let rows: [KeyRow]

    init() throws {
        let settings = try DatabaseServer.shared.get().makeStore()
        self.settings = settings
        journals = try (0..<Self.gateways).map { _ in
            try PostgreSQLKeyJournal(settings, clock: { 0 })
        }
        let records = (1...12).map { KeyRecord.sample($0) }
        rows = try journals[0].commit(JournalBatch(enrolments: records)).enrolments.compactMap(
            \.?.key
        )
    }

    private func use(
        _ key: Int,
        _ counter: UInt32?,
        _ rule: StoreCounterRule = .strict,
        _ challenge: ChallengeSerial? = nil
    ) -> CounterAdvance {
        CounterAdvance(
            CounterUse(
                of: rows[key].keyID,
                counter: counter.map { SignCounter(rawValue: $0) },
                rule: rule,
                challenge: challenge
            ),
            row: rows[key].row,
            usedAt: 1
        )
    }

    /// Calls `body` for all gateways side by side, and gathers what they answer.
    private func together<Value: Sendable>(
        _ body: @Sendable (Int) throws -> Value
    ) throws -> [Value] {
        let results = Mutex<[Result<Value, any Error>]>([])
        DispatchQueue.concurrentPerform(iterations: Self.gateways) { gateway in
            let result = Result { try body(gateway) }
            results.withLock { $0.append(result) }
        }
        return try results.withLock { try $0.map { try $0.get() } }
    }

    @Test func `of many gateways that race with one assertion exactly one is admitted`() throws {
        let issuer = ChallengeIssuer()
        for counter in UInt32(1)...60 {
            let text = issuer.issue(.assertion, now: 0)
            guard
                case .valid(let challenge) = issuer.examine(
                    text.span,
                    purpose: .assertion,
                    now: 0
                )
            else { throw StoreContract.Unexpected("a fresh challenge is not valid") }
            let answers = try together { gateway in
                let use = use(0, counter, .window(8), challenge)
                return try journals[gateway].commit(JournalBatch(uses: [use])).uses[0]
            }
            expectEqual(answers.filter { $0 == .used }.count, 1)
        }
        let stored = try #require(try PostgreSQLKeyArchive(settings).record(rows[0].keyID))
        expectEqual(stored.counters.highest.rawValue, 60)
    }

    @Test
    func `gateways whose batches share keys and challenges use each once, and no batch fails`()
        throws
    {
        let issuer = ChallengeIssuer()
        let challenges = try (0..<40).map { _ in
            guard
                case .valid(let challenge) = issuer.examine(
                    issuer.issue(.assertion, now: 0).span,
                    purpose: .assertion,
                    now: 0
                )
            else { throw StoreContract.Unexpected("a fresh challenge is not valid") }
            return challenge
        }
        let used = try together { gateway in
            var generator = SeededGenerator(seed: UInt64(gateway))
            var used: [CounterAdvance] = []
            for round in UInt32(0)..<40 {
                let uses = (0..<24).map { _ in
                    use(
                        Int.random(in: 0..<rows.count, using: &generator),
                        round + UInt32.random(in: 1...6, using: &generator),
                        .window(64),
                        challenges.randomElement(using: &generator)
                    )
                }
                let answers = try journals[gateway].commit(JournalBatch(uses: uses)).uses
                used += zip(uses, answers).filter { $0.1 == .used }.map(\.0)
            }
            return used
        }
        let all = used.flatMap(\.self)
        expectEqual(Set(all.map(\.challenge)).count, all.count)
        expectEqual(Set(all.map { "\($0.row) \($0.counter?.rawValue ?? 0)" }).count, all.count)
        expectEqual(all.count, challenges.count)
    }

    @Test func `a window in the database is the window in memory`() throws {
        var generator = SeededGenerator(seed: 7)
        for key in 0..<8 {
            let rule: StoreCounterRule =
                key == 0 ? .strict : .window([1, 2, 8, 63, 64, 64, 64][key - 1])
            var state = CounterState()
            var center: UInt32 = 0
            for _ in 0..<120 {
                let low = center > 70 ? center - 70 : 0
                let counter = SignCounter(
                    rawValue: UInt32.random(in: low...(center + 70), using: &generator)
                )
                let isFree = state.admits(counter, rule)
                if isFree { state.use(counter) }
                center = state.highest.rawValue
                let answer = try journals[0].commit(
                    JournalBatch(uses: [use(key, counter.rawValue, rule)])
                ).uses[0]
                expectEqual(answer, isFree ? .used : .refused(.replayed))
            }
            let stored = try #require(try PostgreSQLKeyArchive(settings).record(rows[key].keyID))
            expectEqual(stored.counters, state)
        }
    }

    @Test func `counters that were used in memory are merged as memory merges them`() throws {
        var generator = SeededGenerator(seed: 8)
        var states = [CounterState](repeating: CounterState(), count: rows.count)
        for _ in 0..<60 {
            let changes = rows.indices.map { key in
                let change = CounterState(
                    highest: SignCounter(rawValue: UInt32.random(in: 0...160, using: &generator)),
                    seen: UInt64.random(in: 0...UInt64.max, using: &generator)
                )
                states[key].merge(change)
                return CounterChange(row: rows[key].row, counters: change, usedAt: 5)
            }
            _ = try journals[0].commit(JournalBatch(changes: changes))
        }
        let archive = try PostgreSQLKeyArchive(settings)
        for key in rows.indices {
            try expectEqual(archive.record(rows[key].keyID)?.counters, states[key])
        }
    }

    @Test func `a key that was revoked, restored or deleted is so for every gateway's next use`()
        throws
    {
        let archive = try PostgreSQLKeyArchive(settings)
        func answers(_ counter: UInt32) throws -> Set<UseAnswer> {
            Set(
                try together { gateway in
                    let use = use(3, counter + UInt32(gateway), .window(64))
                    return try journals[gateway].commit(JournalBatch(uses: [use])).uses[0]
                }
            )
        }
        let note = ChangeNote(now: 9, by: "test", why: "lost")
        try expectEqual(answers(1), [.used])
        try expectEqual(archive.revoke(rows[3].keyID, note), .revoked)
        try expectEqual(answers(100), [.refused(.revoked)])
        try expectEqual(archive.revoke(rows[3].keyID, note), .alreadyRevoked(at: 9))
        try expectEqual(archive.restore(rows[3].keyID, note), .restored)
        try expectEqual(answers(200), [.used])
        try expectEqual(archive.delete(rows[3].keyID, note), .deleted)
        try expectEqual(answers(300), [.refused(.unknown)])
        try expectEqual(
            archive.changes(of: rows[3].keyID, limit: 9).map(\.action),
            [.deleted, .restored, .revoked]
        )
    }

    @Test func `of the changes of keys the last ones are kept`() throws {
        let archive = try PostgreSQLKeyArchive(settings)
        let keyID = rows[4].keyID
        try expectEqual(archive.revoke(keyID, ChangeNote(now: 8)), .revoked)
        let link = DatabaseLink(settings)
        defer { link.close() }
        let past = "UPDATE key_changes SET id = id - \(2 * KeyChange.keptMax)"
        _ = try link.ask([DatabaseStatement(past)])
        try expectEqual(archive.changes(of: keyID, limit: 9).map(\.action), [.revoked])
        try expectEqual(archive.restore(keyID, ChangeNote(now: 9)), .restored)
        try expectEqual(archive.changes(of: keyID, limit: 9).map(\.action), [.restored])
    }

    @Test func `a counter that comes late does not say when a deleted key was used`() throws {
        let archive = try PostgreSQLKeyArchive(settings)
        let keyID = rows[9].keyID
        try expectEqual(archive.delete(keyID, ChangeNote(now: 9)), .deleted)
        let change = CounterChange(
            row: rows[9].row,
            counters: CounterState(highest: SignCounter(rawValue: 5)),
            usedAt: 5
        )
        _ = try journals[0].commit(JournalBatch(changes: [change]))
        let stored = try #require(try archive.record(keyID))
        expectEqual(stored.status, .deleted(at: 9))
        expectEqual(stored.counters.highest.rawValue, 5)
        expectEqual(stored.lastUsedAt, nil)
    }

    @Test func `a key that a standby had not got never uses the one that has its number now`()
        throws
    {
        let link = DatabaseLink(settings)
        _ = try link.ask([
            DatabaseStatement("DELETE FROM renewals"), DatabaseStatement("DELETE FROM receipts"),
            DatabaseStatement("DELETE FROM chains"),
            DatabaseStatement("DELETE FROM keys WHERE id = $1", [.number(rows[6].row)]),
            DatabaseStatement(
                "UPDATE keys SET id = $1 WHERE id = $2",
                [.number(rows[6].row), .number(rows[7].row)]
            ),
        ])
        link.close()
        let lost = use(6, 9)
        let other = CounterAdvance(
            CounterUse(
                of: rows[7].keyID,
                counter: SignCounter(rawValue: 1),
                rule: .strict,
                challenge: nil
            ),
            row: rows[6].row,
            usedAt: 1
        )
        // Each has its own key id, wherever it stands in the batch.
        let answers = try journals[0].commit(JournalBatch(uses: [use(8, 1), lost, other])).uses
        expectEqual(answers, [.used, .refused(.unknown), .used])
        let stored = try #require(try PostgreSQLKeyArchive(settings).record(rows[7].keyID))
        expectEqual(stored.counters.highest.rawValue, 1)
    }

    /// The next rise of the floor may come at once.
    private func passMinute() throws {
        let link = DatabaseLink(settings)
        _ = try link.ask([DatabaseStatement("UPDATE challenge_floor SET raised_at = 0")])
        link.close()
    }

    @Test func `a gateway whose clock is two hours behind can't use a forgotten challenge again`()
        throws
    {
        let issuer = ChallengeIssuer()
        let challenge = try Self.challenge(issuer)
        func answer(_ counter: UInt32) throws -> UseAnswer {
            let use = use(4, counter, .strict, challenge)
            return try journals[0].commit(JournalBatch(uses: [use])).uses[0]
        }
        func count() throws -> Int64 {
            let select = DatabaseStatement("SELECT count(*) FROM spent_challenges")
            return try #require(try DatabaseLink(settings).ask([select]).first)[0].present(0)
        }
        func sweep(at second: Int64) throws {
            try passMinute()
            try PostgreSQLKeyJournal(settings, clock: { second }).settle()
        }
        try expectEqual(answer(1), .used)
        // An hour behind its end the floor is raised, and only the next time is it forgotten.
        try sweep(at: challenge.expiry + 3_599)
        try sweep(at: challenge.expiry + 3_600)
        try expectEqual(count(), 1)
        try expectEqual(answer(2), .refused(.challengeSpent))
        try sweep(at: 0)
        try expectEqual(count(), 0)
        // For this gateway it is good still. So it would be used, if the database believed it.
        try expectEqual(answer(2), .refused(.challengeSpent))
        let record = KeyRecord.sample(99)
        var batch = JournalBatch(enrolments: [record])
        batch.challenges = [challenge]
        let enrolled = try journals[0].commit(batch)
        #expect(enrolled.enrolments.count == 1 && enrolled.enrolments[0] == nil)
        try expectEqual(answer(3), .refused(.challengeSpent))
        let other = use(4, 2, .strict, try Self.challenge(issuer, now: challenge.expiry + 60))
        try expectEqual(journals[0].commit(JournalBatch(uses: [other])).uses, [.used])
    }

    @Test func `a gateway whose clock is a year ahead has no good challenge refused`() throws {
        let real = Int64(Date().timeIntervalSince1970)
        for _ in 0..<2 {
            try passMinute()
            try PostgreSQLKeyJournal(settings, clock: { real + 31_536_000 }).settle()
        }
        let challenge = try Self.challenge(ChallengeIssuer(), now: real)
        let use = use(5, 1, .strict, challenge)
        try expectEqual(journals[0].commit(JournalBatch(uses: [use])).uses, [.used])
    }

    @Test func `gateways that start together share one secret, and the next one before its use`()
        throws
    {
        func secrets(_ now: Int64) throws -> [SharedSecret] {
            let all = try together { gateway in
                try journals[gateway].sharedSecrets(now: now, lifetime: 3_600)
            }
            expectEqual(Set(all).count, 1)
            return try #require(all[0])
        }
        let first = try secrets(1_000_000)
        expectEqual(first.map(\.number), [1])
        #expect(first[0].usedFrom == 1_000_000 - 3_600 && first[0].goodUntil == .max)
        expectEqual(first[0].bytes.count, 32)
        try expectEqual(secrets(1_082_799), first)
        let second = try secrets(1_082_800)
        expectEqual(second.map(\.number), [1, 2])
        #expect(second[0].bytes == first[0].bytes && second[1].bytes != first[0].bytes)
        expectEqual(second[1].usedFrom, 1_082_800 + 60)
        expectEqual(second[0].goodUntil, 1_082_860 + 3_600 + 3_600)
        try expectEqual(secrets(1_090_059).map(\.number), [1, 2])
        try expectEqual(secrets(1_090_060).map(\.number), [2])
        // Days of a clock that jumps leave no more than a bounded number of rows.
        for day in Int64(20)..<80 { _ = try secrets(day * 86_500) }
        let select = DatabaseStatement("SELECT count(*) FROM shared_secrets")
        try expectEqual(DatabaseLink(settings).ask([select]).first?[0].present(0), 32)
    }

    private static func challenge(
        _ issuer: ChallengeIssuer,
        now: Int64 = 0
    ) throws -> ChallengeSerial {
        let text = issuer.issue(.assertion, now: now)
        guard
            case .valid(let challenge) = issuer.examine(
                text.span,
                purpose: .assertion,
                now: now
            )
        else { throw StoreContract.Unexpected("a fresh challenge is not valid") }
        return challenge
    }
}
