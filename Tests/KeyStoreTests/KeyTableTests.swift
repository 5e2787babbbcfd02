import AppAttest
import Cryptography
import Expectations
import Synchronization
import TestSupport
import Testing

@testable import KeyStore

@Suite struct KeyTableTests {
    @Test func `twenty thousand keys are found, and take at most 200 bytes each`() throws {
        let journal = MemoryJournal()
        let key = P256PrivateKey(seed: [1].span).publicKey
        let ids = (0..<20_000).map { KeyID(SHA256.digest(of: Array("\($0)".utf8))) }
        for id in ids {
            journal.add(
                KeyRecord(
                    keyID: id,
                    appID: "ABCDE12345.com.example.shop",
                    environment: .test,
                    publicKey: key,
                    enrolledAt: nil
                )
            )
        }
        let table = try KeyTable(journal: journal)
        expectEqual(table.count, ids.count)
        for id in ids {
            guard case .known(let stored) = table.find(id) else {
                Issue.record("a key is missing")
                return
            }
            expectEqual(stored.environment, .test)
        }
        #expect(table.bytes / ids.count <= 200)
        guard case .unknown = table.find(KeyID(SHA256.digest(of: [1]))) else {
            Issue.record("a key that is not there is found")
            return
        }
    }

    @Test func `a key that its store has lost, and has stored again, has its new number`() throws {
        let journal = MemoryJournal()
        journal.add(.sample(1))
        let table = try KeyTable(journal: journal)
        let lost = try #require(journal.row(KeyRecord.sample(1).keyID))
        let again = KeyRow(
            row: lost.row + 7,
            keyID: lost.keyID,
            publicKey: lost.publicKey,
            app: lost.app,
            environment: lost.environment,
            counters: lost.counters,
            standing: lost.standing
        )
        table.apply(asked: again)
        guard case .known(let stored) = table.find(lost.keyID) else {
            Issue.record("the key is missing")
            return
        }
        expectEqual(stored.row, again.row)
    }

    @Test func `nothing of a deleted key comes back by a row that was read before`() throws {
        let journal = MemoryJournal()
        journal.add(.sample(1))
        let table = try KeyTable(journal: journal)
        let id = KeyRecord.sample(1).keyID
        let before = try #require(journal.row(id))
        func row(_ standing: KeyStanding, counter: UInt32) -> KeyRow {
            KeyRow(
                row: before.row,
                keyID: id,
                publicKey: before.publicKey,
                app: before.app,
                environment: before.environment,
                counters: CounterState(highest: SignCounter(rawValue: counter)),
                standing: standing,
                context: [1],
                risk: KeyRisk(metric: 3, at: 86_400)
            )
        }
        let place = KeyTable.place(of: id)
        func entry() throws -> KeyEntry {
            try table.shards[place.shard].keys.withLock { keys in
                keys[try #require(keys.find(id, hash: place.hash))]
            }
        }
        table.take([row(.active, counter: 5)])
        try expectEqual(entry().counters.highest.rawValue, 5)
        table.take([row(.deleted, counter: 6)])
        for _ in 0..<2 {
            let left = try entry()
            expectEqual(left.publicKey, .ofErasedKeys)
            expectEqual(left.counters, CounterState())
            expectEqual(left.risk, .unknown)
            #expect(!left.hasContext)
            guard case .unknown = table.find(id) else {
                Issue.record("a deleted key is found")
                return
            }
            table.apply(asked: row(.active, counter: 7))
            table.take([row(.deleted, counter: 8)])
        }
    }

    @Test func `an entry takes 128 bytes, the risk metric and its day included`() {
        expectEqual(MemoryLayout<KeyEntry>.stride, 128)
        expectEqual(MemoryLayout<KeyRisk>.size, 4)
    }

    @Test func `a metric is of its day, and unknown before it came and when it is old`() {
        let day = 86_400 as Int64
        expectEqual(KeyRisk.unknown.metric, nil)
        expectEqual(KeyRisk(metric: nil, at: 20_000 * day).metric, nil)
        expectEqual(KeyRisk(metric: 3, at: nil), .unknown)
        let risk = KeyRisk(metric: 3, at: 20_000 * day + 5)
        expectEqual(risk.metric, 3)
        expectEqual(risk.day, 20_000)
        expectEqual(risk.metric(at: 20_090 * day, daysMax: 90), 3)
        expectEqual(risk.metric(at: 20_091 * day, daysMax: 90), nil)
        // What no limit of a rule reaches is kept as the highest.
        expectEqual(KeyRisk(metric: 1_000_000, at: day).metric, 65_534)
        expectEqual(KeyRisk(metric: .max, at: .max).day, .max)
        expectEqual(KeyRisk(metric: 1, at: -5), .unknown)
        #expect(risk.isNewer(than: .unknown) && !KeyRisk.unknown.isNewer(than: risk))
    }

    @Test func `a metric that was imported with a date of the future is not known for ever`() {
        let day = 86_400 as Int64
        let future = KeyRisk(metric: 3, at: 40_000 * day)
        expectEqual(future.metric(at: 20_000 * day, daysMax: 90), nil)
        expectEqual(future.metric(at: 39_999 * day, daysMax: 90), 3)
        // A renewed receipt takes its place.
        let renewed = KeyRisk(metric: 5, at: 20_000 * day)
        #expect(!future.isNewer(than: renewed, at: 20_000 * day))
        #expect(future.isNewer(than: renewed, at: 40_000 * day))
    }

    @Test func `key ids that count up, as an import may bring them, are found as well`() throws {
        let journal = MemoryJournal()
        let key = P256PrivateKey(seed: [1].span).publicKey
        let ids = (0..<2_000).compactMap { number -> KeyID? in
            var bytes = [UInt8](repeating: 0, count: 32)
            bytes[30] = UInt8(number / 256)
            bytes[31] = UInt8(number % 256)
            return KeyID(bytes: bytes)
        }
        let table = try KeyTable(journal: journal)
        for id in ids {
            journal.add(
                KeyRecord(
                    keyID: id,
                    appID: "A.b",
                    environment: .production,
                    publicKey: key,
                    enrolledAt: nil
                )
            )
        }
        #expect(ids.allSatisfy { if case .known = table.find($0) { true } else { false } })
    }

    @Test func `revoked keys are counted once`() throws {
        let journal = MemoryJournal()
        journal.add(.sample(1))
        journal.add(.sample(2))
        #expect(journal.revoke(KeyRecord.sample(2).keyID, at: 5))
        let table = try KeyTable(journal: journal)
        expectEqual(table.revokedCount, 1)
        #expect(journal.revoke(KeyRecord.sample(1).keyID, at: 6))
        #expect(journal.revoke(KeyRecord.sample(1).keyID, at: 7))
        _ = table.find(KeyRecord.sample(1).keyID)
        expectEqual(table.revokedCount, 2)
        expectEqual(table.count, 2)
    }

    @Test func `numbers of environments are those on disk`() {
        expectEqual(KeyEnvironment.allCases.map(\.number), [1, 2, 3])
        expectEqual(KeyEnvironment.allCases.map(\.rawValue), ["production", "development", "test"])
        expectEqual(KeyEnvironment(number: 0), nil)
        expectEqual(KeyEnvironment(number: 4), nil)
    }
}
