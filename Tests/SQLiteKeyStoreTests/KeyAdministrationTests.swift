import AppAttest
import Cryptography
import Expectations
import Foundation
import GRDB
import KeyStore
import TestSupport
import Testing

@testable import SQLiteKeyStore

@Suite struct KeyAdministrationTests {
    private let folder: TemporaryFolder
    private let keys: KeyAdministration

    init() throws {
        folder = try TemporaryFolder()
        keys = try KeyAdministration(path: folder.database, creates: true)
    }

    private func load(_ records: [KeyRecord]) throws {
        let text = records.map { KeyLine.text($0) + "\n" }.joined()
        let report = try keys.importLines(from: try folder.write(text, to: "load.jsonl"))
        expectEqual(report.inserted, records.count)
    }

    @Test func `keys are listed in the order of their ids, in pages`() throws {
        try load(KeyRecord.many(50))
        let all = try keys.scan(KeyFilter(), after: nil, limit: 100).records
        expectEqual(all.count, 50)
        let ids = all.map(\.keyID.bytes)
        expectEqual(ids, ids.sorted { $0.lexicographicallyPrecedes($1) })
        var paged: [KeyRecord] = []
        while true {
            let page = try keys.scan(KeyFilter(), after: paged.last?.keyID, limit: 7).records
            if page.isEmpty { break }
            paged += page
        }
        expectEqual(paged, all)
        var streamed: [KeyRecord] = []
        try keys.forEach { streamed.append($0) }
        expectEqual(streamed, all)
        try expectEqual(keys.count(), 50)
    }

    @Test func `a bounded expiry ends with the piece that reaches its bound`() throws {
        try load(KeyRecord.many(5_000))
        let note = ChangeNote(now: 5, by: "test")
        try expectEqual(keys.expireAll(unusedSince: .max, atMost: 1, note), 2_000)
        try expectEqual(keys.count(), 3_000)
        try expectEqual(keys.expireAll(unusedSince: .max, note), 3_000)
        try expectEqual(keys.count(), 0)
    }

    @Test func `filters choose by app, environment, status, source and last use`() throws {
        var one = KeyRecord.sample(1)
        one.lastUsedAt = 500
        var two = KeyRecord.sample(2)
        two.appID = "ABCDE12345.com.example.other"
        two.environment = .test
        two.source = .imported
        var three = KeyRecord.sample(3)
        three.status = .revoked(at: 77)
        try load([one, two, three])
        func ids(_ change: (inout KeyFilter) -> Void) throws -> Set<KeyID> {
            var filter = KeyFilter()
            change(&filter)
            return Set(try keys.scan(filter, after: nil, limit: 10).records.map(\.keyID))
        }
        try expectEqual(ids { $0.appID = one.appID }, [one.keyID, three.keyID])
        try expectEqual(ids { $0.environment = .test }, [two.keyID])
        try expectEqual(ids { $0.isRevoked = true }, [three.keyID])
        try expectEqual(ids { $0.isRevoked = false }, [one.keyID, two.keyID])
        try expectEqual(ids { $0.source = .imported }, [two.keyID])
        try expectEqual(ids { $0.unusedSince = 500 }, [two.keyID, three.keyID])
        try expectEqual(ids { $0.unusedSince = 501 }.count, 3)
        try expectEqual(
            ids {
                $0.appID = one.appID
                $0.isRevoked = true
            },
            [three.keyID]
        )
    }

    @Test func `a key that was used a moment ago is not listed as unused`() throws {
        let key = KeyRecord.sample(1)
        let journal = try SQLiteKeyJournal(path: folder.database)
        _ = try journal.load(apps: AppNumbers()) { _ in }
        let stored = try journal.commit(JournalBatch(enrolments: [key])).enrolments
        let row = try #require(stored[0]).key.row
        let change = CounterChange(
            row: row,
            counters: CounterState(highest: SignCounter(rawValue: 4)),
            usedAt: 900
        )
        _ = try journal.commit(JournalBatch(changes: [change]))
        var filter = KeyFilter()
        filter.unusedSince = 800
        #expect(try keys.scan(filter, after: nil, limit: 10).records.isEmpty)
        try expectEqual(keys.record(key.keyID)?.lastUsedAt, 900)
        try expectEqual(keys.record(key.keyID)?.counters.highest.rawValue, 4)
    }

    @Test func `a key is shown whole, and found by the name that logs give it`() throws {
        let key = KeyRecord.sample(1)
        try load([key, .sample(2)])
        try expectEqual(keys.record(key.keyID), key)
        try expectEqual(keys.record(.numbered(1)), nil)
        try expectEqual(keys.keyIDs(loggedAs: key.keyID.logName, deleted: .excluded), [key.keyID])
        #expect(try keys.keyIDs(loggedAs: "zz", deleted: .included).isEmpty)
    }

    @Test func `a key is revoked once, and the first time stays`() throws {
        let key = KeyRecord.sample(1)
        try load([key])
        try expectEqual(keys.revoke(key.keyID, ChangeNote(now: 100)), .revoked)
        try expectEqual(keys.revoke(key.keyID, ChangeNote(now: 200)), .alreadyRevoked(at: 100))
        try expectEqual(keys.revoke(.numbered(1), ChangeNote(now: 200)), .unknown)
        try expectEqual(keys.record(key.keyID)?.status, .revoked(at: 100))
    }

    @Test func `of a deleted key nothing is left but what keeps it from coming back`() throws {
        var key = KeyRecord.sample(1, counter: 7)
        key.context = [1]
        key.lastUsedAt = 1_700_000_500
        try load([key, .sample(2)])
        let note = ChangeNote(now: 100, by: "ann", why: "asked for")
        try expectEqual(keys.delete(key.keyID, note), .deleted)
        try expectEqual(keys.delete(key.keyID, ChangeNote(now: 200)), .alreadyDeleted(at: 100))
        try expectEqual(keys.delete(.numbered(1), note), .unknown)
        try expectEqual(keys.revoke(key.keyID, note), .unknown)
        try expectEqual(keys.restore(key.keyID, note), .unknown)
        try expectEqual(keys.askRenewal(of: key.keyID, now: 200), .unknown)
        let left = try #require(try keys.record(key.keyID))
        expectEqual(left.status, .deleted(at: 100))
        #expect(left.receipt == nil && left.context == nil)
        #expect(left.enrolledAt == nil && left.lastUsedAt == nil)
        expectEqual(left.counters.highest.rawValue, 7)
        try expectEqual(keys.count(), 1)
        let name = KeyName.short(key.keyID.logName)
        try expectEqual(keys.match(name), KeyMatch.none)
        try expectEqual(keys.match(name, deleted: .included), .one(key.keyID))
        try expectEqual(keys.scan(KeyFilter(), after: nil, limit: 9).records.count, 1)
        try expectEqual(keys.receiptCensus(at: 0).receipts, 1)
        // Not even by an import.
        let file = try folder.write(KeyLine.text(key), to: "again.jsonl")
        let report = try keys.importLines(from: file)
        #expect(!report.isImported)
        expectEqual(report.problems.map(\.text), ["the key was deleted, and stays so"])
    }

    @Test func `the log of counters does not say when a deleted key was used`() throws {
        let journal = try SQLiteKeyJournal(path: folder.database)
        _ = try journal.load(apps: AppNumbers()) { _ in }
        journal.follow { nil }
        let key = KeyRecord.sample(1)
        let stored = try journal.commit(JournalBatch(enrolments: [key])).enrolments
        let row = try #require(stored[0]).key.row
        let change = CounterChange(
            row: row,
            counters: CounterState(highest: SignCounter(rawValue: 5)),
            usedAt: 900
        )
        _ = try journal.commit(JournalBatch(changes: [change]))
        try expectEqual(keys.record(key.keyID)?.lastUsedAt, 900)
        try expectEqual(keys.delete(key.keyID, ChangeNote(now: 1_000)), .deleted)
        let left = try #require(try keys.record(key.keyID))
        expectEqual(left.status, .deleted(at: 1_000))
        expectEqual(left.counters.highest.rawValue, 5)
        expectEqual(left.lastUsedAt, nil)
    }

    @Test func `keys unused for long go, and those that nobody knows about stay`() throws {
        let journal = try SQLiteKeyJournal(path: folder.database)
        _ = try journal.load(apps: AppNumbers()) { _ in }
        journal.follow { nil }
        var records = KeyRecord.many(SQLiteSession.expiryPiece + 3)
        for number in records.indices { records[number].enrolledAt = 1_000 }
        // Enrolled late; used late; used a moment ago, as the log alone knows; of no known time.
        records[0].enrolledAt = 2_000
        records[1].lastUsedAt = 2_000
        records[3].enrolledAt = nil
        // An imported key of which only the use is known.
        (records[4].enrolledAt, records[4].lastUsedAt) = (nil, 1_000)
        try load(records)
        let stored = try journal.commit(JournalBatch(enrolments: [records[2]])).enrolments
        let row = try #require(stored[0]).key.row
        let change = CounterChange(row: row, counters: CounterState(), usedAt: 2_000)
        _ = try journal.commit(JournalBatch(changes: [change]))
        let note = ChangeNote(now: 3_000, by: "ann")
        try expectEqual(keys.expireAll(unusedSince: 2_000, note), records.count - 4)
        try expectEqual(keys.expireAll(unusedSince: 2_000, note), 0)
        let left = Set(try keys.scan(KeyFilter(), after: nil, limit: 9).records.map(\.keyID))
        expectEqual(left, Set(records.prefix(4).map(\.keyID)))
        let changes = try keys.changes(of: nil, limit: 9)
        expectEqual(changes, [KeyChange(.expired, of: nil, keys: records.count - 4, note)])
    }

    @Test func `who changed a key, when and why is kept, the newest first`() throws {
        let (key, other) = (KeyRecord.sample(1).keyID, KeyRecord.sample(2).keyID)
        try load([.sample(1), .sample(2)])
        let notes = [
            ChangeNote(now: 1, by: "ann", why: "stolen"), ChangeNote(now: 2, by: "bob"),
            ChangeNote(now: 3, by: "ann", why: "for good"),
        ]
        try expectEqual(keys.restore(key, notes[0]), .active)
        _ = try keys.revoke(key, notes[0])
        _ = try keys.revoke(other, notes[1])
        try expectEqual(keys.restore(key, notes[1]), .restored)
        _ = try keys.delete(key, notes[2])
        let all = [
            KeyChange(.deleted, of: key, keys: 1, notes[2]),
            KeyChange(.restored, of: key, keys: 1, notes[1]),
            KeyChange(.revoked, of: other, keys: 1, notes[1]),
            KeyChange(.revoked, of: key, keys: 1, notes[0]),
        ]
        try expectEqual(keys.changes(of: nil, limit: 9), all)
        try expectEqual(keys.changes(of: nil, limit: 1), [all[0]])
        try expectEqual(keys.changes(of: key, limit: 9), [all[0], all[1], all[3]])
    }

    @Test func `what is exported and imported elsewhere is the same`() throws {
        var records = (1...5).map { KeyRecord.sample($0, counter: UInt32($0) * 1_000) }
        records[0].status = .revoked(at: 1_700_000_001)
        records[1].source = .imported
        records[1].enrolledAt = nil
        records[2].lastUsedAt = 1_700_000_002
        records[3].receipt = nil
        records[3].counters = CounterState(highest: SignCounter(rawValue: .max), seen: 0x8001)
        records += [.phone(6), .phone(7), .phone(8)]
        records[6].chain?.certificatesIssued = nil
        records[6].chain?.listed = "8f00 REVOKED"
        records[6].status = .revoked(at: 1_700_000_003)
        records[7].chain = nil
        try load(records)
        var bytes: [UInt8] = []
        try expectEqual(keys.export { bytes += $0 }, 8)
        let other = try TemporaryFolder()
        let copy = try KeyAdministration(path: other.database, creates: true)
        let file = try other.write(String(decoding: bytes, as: UTF8.self), to: "export.jsonl")
        let report = try copy.importLines(from: file)
        expectEqual(report.inserted, 8)
        #expect(report.warnings.isEmpty)
        for record in records { try expectEqual(copy.record(record.keyID), record) }
        var again: [UInt8] = []
        _ = try copy.export { again += $0 }
        expectEqual(again, bytes)
    }

    @Test func `an import adds a missing chain, and not what a list said of it`() throws {
        var bare = KeyRecord.phone(1)
        bare.chain = nil
        bare.status = .revoked(at: 5)
        try load([bare])
        var listed = KeyRecord.phone(1)
        listed.status = .revoked(at: 9)
        listed.chain?.listed = "8f00 REVOKED"
        let file = try folder.write(KeyLine.text(listed), to: "listed.jsonl")
        try expectEqual(keys.importLines(from: file).merged, 1)
        let merged = try #require(try keys.record(bare.keyID))
        expectEqual(merged.chain, KeyRecord.phone(1).chain)
        expectEqual(merged.status, .revoked(at: 5))
        var apple = KeyRecord.phone(1)
        apple.platform = .apple
        apple.chain = nil
        let other = try folder.write(KeyLine.text(apple), to: "apple.jsonl")
        let refused = try keys.importLines(from: other)
        expectEqual(refused.problems.map(\.text), ["the key is stored for the platform android"])
        var filter = KeyFilter()
        filter.riskMin = 16
        try expectEqual(keys.scan(filter, after: nil, limit: 9).records, [merged])
        filter.riskMin = 17
        #expect(try keys.scan(filter, after: nil, limit: 9).records.isEmpty)
        _ = try keys.delete(bare.keyID, ChangeNote(now: 10))
        try expectEqual(keys.record(bare.keyID)?.chain, nil)
    }

    @Test func `a list of revoked certificates revokes keys, and gives back those that it took`()
        throws
    {
        try ListedKeysContract.check(keys)
    }

    @Test func `a key that another store's list has revoked comes back with a list`() throws {
        try ListedKeysContract.checkMerge(keys)
    }

    @Test func `tokens that were spent are spent in a copy of the store`() throws {
        let other = try TemporaryFolder()
        let target = try KeyAdministration(path: other.database, creates: true)
        try SpentTokensContract.check(
            from: keys,
            try KeyTable(journal: try SQLiteKeyJournal(path: folder.database)),
            to: target,
            try KeyTable(journal: try SQLiteKeyJournal(path: other.database))
        )
    }

    @Test func `a token is known by the part of its digest that another store has kept`() throws {
        let token = SpentToken(SHA256.digest(of: [1]), end: 4_000_000_000)
        let other = SpentToken(SHA256.digest(of: [2]), end: 4_000_000_000)
        let short = try #require(SHA256Digest(bytes: token.shortDigest))
        try keys.spend([SpentToken(short, end: token.end)])
        let table = try KeyTable(journal: try SQLiteKeyJournal(path: folder.database))
        let outcomes = try SpentTokensContract.spend([token, other], by: table)
        expectEqual(outcomes, [.spent, .fresh])
        try table.close()
    }

    @Test func `a clock that is ahead for a while makes no spent token fresh`() throws {
        let token = SpentToken(SHA256.digest(of: [1]), end: 10_000)
        try keys.spend([token])
        var pruner = SpentTokens()
        let start = ContinuousClock.now
        // What the wall clock says, and the seconds that have passed. The last one is more than an
        // hour after the token's end by both clocks.
        let moments: [(second: Int64, passed: Int64)] = [
            (5_000, 0), (1_000_000, 10), (1_001_000, 1_010), (8_590, 3_590), (12_000, 7_200),
            (15_600, 10_800),
        ]
        var kept: [Int] = []
        for (second, passed) in moments {
            try pruner.prune(keys.database, now: second, at: start + .seconds(passed))
            kept.append(try keys.spentTokens(after: nil, limit: 9).count)
        }
        expectEqual(kept, [1, 1, 1, 1, 1, 0])
    }

    @Test func `many chains are compared in many pieces, and the last row is known`() throws {
        let count = ListedKeys.count
        var records = KeyRecord.many(count)
        for index in records.indices {
            records[index].platform = .android
            records[index].chain = ChainRecord(
                serials: ["1", String(index, radix: 16) + "c35747a084470c31", "8f00aa", "7e01bb"],
                certificatesIssued: 8
            )
        }
        for start in stride(from: 0, to: count, by: 20_000) {
            _ = try keys.store(Array(records[start...].prefix(20_000)))
        }
        let clock = ContinuousClock()
        var result: (comparison: ListComparison, keys: [ListedKey])?
        let time = try clock.measure {
            result = try ListedKeysContract.compare(
                keys,
                with: ["5c35747a084470c31": "REVOKED", "ffc35747a084470c31": "REVOKED"]
            )
        }
        expectEqual(result?.comparison.compared, count)
        expectEqual(result?.comparison.last, Int64(count))
        expectEqual(result?.keys.count, 2)
        if count > ListedKeys.countUsual { print("\(count) chains were compared in \(time)") }
    }

    /// More with `PORTCULLIS_LISTED_KEYS`, to measure.
    private enum ListedKeys {
        static let countUsual = 9_000
        static var count: Int {
            ProcessInfo.processInfo.environment["PORTCULLIS_LISTED_KEYS"].flatMap { Int($0) }
                ?? countUsual
        }
    }

    @Test func `an export holds counters that are in the log only`() throws {
        let key = KeyRecord.sample(1)
        let table = try KeyTable(journal: try SQLiteKeyJournal(path: folder.database))
        table.enrol(key) { _ in }
        try table.committer.flush()
        let database = try KeyDatabase(path: folder.database, creates: false)
        let row = try #require(
            try database.queue.read { try Int64.fetchOne($0, sql: "SELECT id FROM keys") }
        )
        try database.queue.write { db in
            let change = CounterChange(
                row: row,
                counters: CounterState(highest: SignCounter(rawValue: 12)),
                usedAt: 5
            )
            try CounterLog.append([change], db)
        }
        var text = ""
        _ = try keys.export { text += String(decoding: $0, as: UTF8.self) }
        #expect(text.contains("\"counter\":12,"))
    }
}
