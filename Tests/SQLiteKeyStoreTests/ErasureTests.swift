import AppAttest
import Cryptography
import Expectations
import Foundation
import GRDB
import KeyStore
import TestSupport
import Testing

@testable import SQLiteKeyStore

/// What the files of a store keep of a deleted key.
@Suite struct ErasureTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// The files that have an id or a public key of these, in any spelling.
    private func traces(of keys: [KeyRecord]) throws -> [String] {
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        var found: [String] = []
        for name in names where name.hasPrefix("portcullis.db") {
            // A socket can't be read.
            guard let bytes = FileManager.default.contents(atPath: folder.path + "/" + name) else {
                continue
            }
            for key in keys {
                let point = Array(key.publicKey.x963.dropFirst())
                for text in ErasureContract.spellings(key.keyID.bytes)
                    + ErasureContract.spellings(point) where bytes.range(of: text) != nil
                {
                    found.append("\(name): \(text.count) bytes of \(key.keyID.logName)")
                }
            }
        }
        return found
    }

    /// A store of many keys, whose rows were moved from page to page, beside an open gateway.
    private func makeStore(_ records: [KeyRecord]) throws -> SQLiteKeyJournal {
        let journal = try SQLiteKeyJournal(path: folder.database, foldedAt: 500)
        _ = try journal.load(apps: AppNumbers()) { _ in }
        journal.follow { nil }
        var rows: [Int64] = []
        for start in stride(from: 0, to: records.count, by: 100) {
            let piece = Array(records[start..<min(start + 100, records.count)])
            let stored = try journal.commit(JournalBatch(enrolments: piece)).enrolments
            rows += stored.compactMap { $0?.key.row }
        }
        expectEqual(rows.count, records.count)
        for counter in [UInt32(3), 70_000] {
            let changes = rows.map { row in
                CounterChange(
                    row: row,
                    counters: CounterState(highest: SignCounter(rawValue: counter)),
                    usedAt: 1_700_000_000
                )
            }
            _ = try journal.commit(JournalBatch(changes: changes))
            for _ in 0..<20 { try journal.settle() }
        }
        // The last uses are in the log of counters alone.
        let last = CounterState(highest: SignCounter(rawValue: 70_001))
        let change = CounterChange(row: rows[7], counters: last, usedAt: 1_700_000_001)
        _ = try journal.commit(JournalBatch(changes: [change]))
        return journal
    }

    /// Keys that have public keys of their own, with the ids and these in other columns too.
    private static func many(_ count: Int) -> [KeyRecord] {
        (0..<count).map { number in
            let seed: [UInt8] = [UInt8(number >> 8), UInt8(number & 255), 2]
            let key = P256PrivateKey(seed: seed.span).publicKey
            var record = KeyRecord(
                keyID: KeyID(of: key),
                appID: "ABCDE12345.com.example.shop",
                environment: .production,
                publicKey: key,
                enrolledAt: 1_700_000_000
            )
            record.receipt = record.keyID.bytes + [1]
            record.context = Array(key.x963)
            return record
        }
    }

    @Test func `of a deleted key no file has the id or the public key`() throws {
        let records = Self.many(3_000)
        let journal = try makeStore(records)
        let gone = [records[0], records[7], records[1_500], records[2_999]]
        #expect(try !traces(of: gone).isEmpty)
        let keys = try KeyAdministration(path: folder.database)
        try expectEqual(keys.revoke(gone[0].keyID, ChangeNote(now: 8)), .revoked)
        for key in gone { try expectEqual(keys.delete(key.keyID, ChangeNote(now: 9)), .deleted) }
        try expectEqual(keys.eraseDeleted(), 4)
        try expectEqual(keys.wipe(), nil)
        try expectEqual(traces(of: gone), [])
        // Nothing else was lost, and the gateway goes on.
        #expect(try !traces(of: [records[8]]).isEmpty)
        try expectEqual(keys.count(), 2_996)
        try expectEqual(keys.record(records[8].keyID)?.counters.highest.rawValue, 70_000)
        let entries = try keys.read { try CounterLog.entries($0) }
        let left = try keys.read { db in
            try Int64.fetchSet(db, sql: "SELECT id FROM keys WHERE erased_under IS NOT NULL")
        }
        expectEqual(left.count, 4)
        #expect(left.isDisjoint(with: entries.keys))
        let again = try journal.commit(JournalBatch(enrolments: [gone[1]])).enrolments
        try expectEqual(#require(again[0]).isNew, false)
        try expectEqual(#require(again[0]).key.standing, .deleted)
        try expectEqual(traces(of: gone), [])
        try keys.close()
        journal.close()
        try expectEqual(traces(of: gone), [])
        #expect(StoreExamination(of: folder.database, as: .store).isGood)
    }

    @Test func `what a killed command has deleted is erased when the store is opened`() throws {
        let records = Self.many(1_200)
        try makeStore(records).close()
        let keys = try KeyAdministration(path: folder.database)
        let gone = [records[3], records[700]]
        for key in gone { try expectEqual(keys.delete(key.keyID, ChangeNote(now: 9)), .deleted) }
        try keys.close()
        #expect(try !traces(of: gone).isEmpty)
        let journal = try SQLiteKeyJournal(path: folder.database)
        try expectEqual(traces(of: gone), [])
        var rows: [KeyRow] = []
        _ = try journal.load(apps: AppNumbers()) { rows += $0 }
        expectEqual(rows.count, 1_198)
        let again = try journal.commit(JournalBatch(enrolments: [gone[0]])).enrolments
        try expectEqual(#require(again[0]).key.standing, .deleted)
        journal.close()
        let now = try KeyAdministration(path: folder.database)
        try expectEqual(now.record(gone[1].keyID)?.isErased, true)
        try expectEqual(now.delete(gone[1].keyID, ChangeNote(now: 10)), .alreadyDeleted(at: 9))
    }

    @Test func `what a killed command has deleted is erased by the next one`() throws {
        let key = KeyRecord.sample(1)
        try makeStore([key] + Self.many(9)).close()
        let killed = try KeyAdministration(path: folder.database)
        try expectEqual(killed.delete(key.keyID, ChangeNote(now: 9)), .deleted)
        try killed.close()
        let next = try KeyAdministration(path: folder.database)
        try expectEqual(next.record(key.keyID)?.isErased, true)
        try expectEqual(traces(of: [key]), [])
    }

    @Test func `keys that were erased are erased in copies and exports of the store`() throws {
        let (one, other) = (try TemporaryFolder(), try TemporaryFolder())
        try ErasureContract.check(
            from: try KeyAdministration(path: folder.database, creates: true),
            to: try KeyAdministration(path: one.database, creates: true),
            try KeyAdministration(path: other.database, creates: true)
        )
    }

    @Test func `a restored backup of before the erasure does not bring the key back`() throws {
        let key = KeyRecord.sample(1)
        try makeStore([key] + Self.many(9)).close()
        let backup = folder.path + "/backup.db"
        _ = try StoreBackup.make(ofStore: folder.database, to: backup)
        let keys = try KeyAdministration(path: folder.database)
        try expectEqual(keys.delete(key.keyID, ChangeNote(now: 9)), .deleted)
        _ = try keys.eraseDeleted()
        try keys.close()
        let note = ChangeNote(now: 20, by: "test")
        let report = try StoreRestore(of: backup, toStore: folder.database, note).run()
        guard case .merged = report.present else {
            Issue.record("\(report.present)")
            return
        }
        let restored = try KeyAdministration(path: folder.database)
        try expectEqual(restored.record(key.keyID)?.isErased, true)
        let text = try Data(contentsOf: URL(fileURLWithPath: folder.database))
        #expect(text.range(of: Data(key.keyID.bytes)) == nil)
        guard case .differs? = try restored.store([key]).first else {
            Issue.record("an erased key was stored")
            return
        }
        #expect(try restored.changes(of: nil, limit: 9).allSatisfy { $0.keyID == nil })
    }

    @Test func `a store has marks of a bounded number of other stores`() throws {
        let keys = try KeyAdministration(path: folder.database, creates: true)
        let marks = (0...ErasureSecret.countMax).map { _ in
            let secret = ErasureSecret.drawn()
            return KeyRecord.erased(secret.mark(of: .numbered(1)), under: secret, at: 9)
        }
        for mark in marks.dropLast() { _ = try keys.store([mark]) }
        let refusal = #expect(throws: StoreProblem.self) {
            try keys.store(Array(marks.suffix(1)))
        }
        expectEqual(refusal?.detail.contains("takes none of a further one"), true)
        try expectEqual(keys.identities(of: [.numbered(1)])[.numbered(1)]?.isErased, true)
    }

    @Test func `a successor that has read ahead does not admit a key that is erased meanwhile`()
        throws
    {
        let (key, other) = (KeyRecord.sample(1), KeyRecord.sample(2))
        let journal = try makeStore([key, other] + Self.many(8))
        let reader = try #require(try SQLiteKeyReader(ahead: folder.database))
        journal.beginTrail()
        let ahead = try KeysAhead(reader)
        let keys = try KeyAdministration(path: folder.database)
        try expectEqual(keys.delete(key.keyID, ChangeNote(now: 9)), .deleted)
        _ = try keys.eraseDeleted()
        try keys.close()
        journal.close()
        let successor = try SQLiteKeyJournal(path: folder.database, ahead: reader)
        let table = try KeyTable(journal: successor, from: .ahead(ahead))
        guard case .unknown = table.find(key.keyID), case .known = table.find(other.keyID) else {
            Issue.record("an erased key is known, or another one is not")
            return
        }
        expectEqual(table.count, 9)
        try table.close()
    }
}
