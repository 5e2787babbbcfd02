import AppAttest
import Expectations
import Foundation
import GRDB
import KeyStore
import TestSupport
import Testing

@testable import SQLiteKeyStore

@Suite struct SQLiteKeyStoreTests {
    /// Database files; a crash copies what is on disk at that moment and goes on with the copy.
    private final class Lab: StoreLab {
        private var folder: TemporaryFolder
        private let entriesMax: Int

        init(foldedAt entriesMax: Int) throws {
            folder = try TemporaryFolder()
            self.entriesMax = entriesMax
        }

        func open() throws -> any KeyJournal {
            try SQLiteKeyJournal(path: folder.database, foldedAt: entriesMax)
        }

        func crash() throws {
            let copy = try TemporaryFolder()
            for suffix in ["", "-wal", ".generation"]
            where FileManager.default.fileExists(
                atPath: folder.database + suffix
            ) {
                try FileManager.default.copyItem(
                    atPath: folder.database + suffix,
                    toPath: copy.database + suffix
                )
            }
            folder = copy
        }

        func revoke(_ keyID: KeyID, isRead: Bool) throws {
            let keys = try KeyAdministration(path: folder.database)
            do throws(StoreProblem) {
                let outcome = try keys.revoke(keyID, ChangeNote(now: 1))
                #expect(isRead && outcome == .revoked)
            } catch {
                guard !isRead, error.reason == .gatewayNotTold else { throw error }
            }
        }

        func set(_ status: KeyRecord.Status, of keyID: KeyID) throws {
            let keys = try KeyAdministration(path: folder.database)
            switch status {
            case .active: try expectEqual(keys.restore(keyID, ChangeNote(now: 1)), .restored)
            case .revoked: try revoke(keyID, isRead: true)
            case .deleted(let second):
                try expectEqual(keys.delete(keyID, ChangeNote(now: second)), .deleted)
            case .erased: Issue.record("keys are deleted before they are erased")
            }
        }

        func erase() throws {
            _ = try KeyAdministration(path: folder.database).eraseDeleted()
        }

        func add(_ record: KeyRecord) throws {
            let file = try folder.write(KeyLine.text(record), to: "import.jsonl")
            let report = try KeyAdministration(path: folder.database).importLines(from: file)
            #expect(report.problems.isEmpty)
        }

        func stored(_ keyID: KeyID) throws -> KeyRecord? {
            try KeyAdministration(path: folder.database).record(keyID)
        }
    }

    @Test(arguments: StoreContract.all(decided: .inMemory))
    func `the store in SQLite keeps the contract`(contract: StoreContract) throws {
        try contract.run(in: Lab(foldedAt: CounterFold.entriesMax))
    }

    @Test(arguments: StoreContract.all(decided: .inMemory))
    func `the store in SQLite keeps the contract while it folds its log all the time`(
        contract: StoreContract
    ) throws {
        try contract.run(in: Lab(foldedAt: 1))
    }

    @Test func `commits are synchronised in full`() throws {
        let folder = try TemporaryFolder()
        let database = try KeyDatabase(path: folder.database, creates: true)
        let values = try database.queue.read { db in
            try ["synchronous", "journal_mode", "application_id", "user_version"].map {
                try String.fetchOne(db, sql: "PRAGMA \($0)")
            }
        }
        expectEqual(values, ["2", "wal", "1346587731", "1"])
    }

    /// A use of a key.
    private static func change(
        of row: Int64,
        to counter: UInt32,
        at second: Int64 = 9
    ) -> CounterChange {
        CounterChange(
            row: row,
            counters: CounterState(highest: SignCounter(rawValue: counter)),
            usedAt: second
        )
    }

    @Test func `a fold in pieces is finished by the commits that follow, and loses nothing`() throws
    {
        let folder = try TemporaryFolder()
        let count = 3 * CounterFold.pieceMin
        let journal = try SQLiteKeyJournal(path: folder.database, foldedAt: count)
        _ = try journal.load(apps: AppNumbers()) { _ in }
        let records = KeyRecord.many(count)
        let rows = try journal.commit(JournalBatch(enrolments: records)).enrolments.compactMap(
            \.?.key
        )
        _ = try journal.commit(JournalBatch(changes: rows.map { Self.change(of: $0.row, to: 5) }))
        let database = try KeyDatabase(path: folder.database, creates: false)
        func state() throws -> [Int] {
            try database.queue.read { db in
                [
                    try CounterLog.count(db),
                    try Int.fetchOne(db, sql: "SELECT count(*) FROM keys WHERE counter = 5") ?? -1,
                ]
            }
        }
        try expectEqual(state(), [count, 0])
        // A piece is twice what the last commit added, here everything.
        _ = try journal.commit(JournalBatch())
        try journal.settle()
        try expectEqual(state(), [count, CounterFold.pieceMin])
        let keys = try KeyAdministration(path: folder.database)
        let page = try keys.scan(KeyFilter(), after: nil, limit: count)
        #expect(page.records.allSatisfy { $0.counters.highest.rawValue == 5 })
        // A change that comes in between stays in the log.
        let late = Self.change(of: rows[0].row, to: 8, at: 10)
        _ = try journal.commit(JournalBatch(changes: [late]))
        try journal.settle()
        try journal.settle()
        try expectEqual(state(), [1, count])
        try expectEqual(keys.record(rows[0].keyID)?.counters.highest.rawValue, 8)
        try expectEqual(keys.record(rows[0].keyID)?.lastUsedAt, 10)
        try journal.settle()
        try expectEqual(state(), [1, count])
    }

    @Test func `a fold that a crash has cut is done again`() throws {
        let folder = try TemporaryFolder()
        let count = 2 * CounterFold.pieceMin
        var journal = try SQLiteKeyJournal(path: folder.database, foldedAt: count)
        _ = try journal.load(apps: AppNumbers()) { _ in }
        let batch = JournalBatch(enrolments: KeyRecord.many(count))
        let rows = try journal.commit(batch).enrolments.compactMap(\.?.key)
        _ = try journal.commit(JournalBatch(changes: rows.map { Self.change(of: $0.row, to: 5) }))
        _ = try journal.commit(JournalBatch())
        try journal.settle()
        journal.close()
        journal = try SQLiteKeyJournal(path: folder.database, foldedAt: count)
        let table = try KeyTable(journal: journal)
        for row in rows {
            guard case .known(let key) = table.find(row.keyID) else {
                Issue.record("a key is missing")
                return
            }
            expectEqual(key.counter.rawValue, 5)
        }
        for _ in 0..<3 { try journal.settle() }
        let database = try KeyDatabase(path: folder.database, creates: false)
        try expectEqual(database.queue.read { try CounterLog.count($0) }, 0)
    }
}

extension KeyRecord {
    /// Keys of the same public key under ids that are digests of numbers.
    static func many(_ count: Int) -> [KeyRecord] {
        let sample = KeyRecord.sample(1)
        return (0..<count).map { number in
            var record = sample
            record.keyID = .numbered(number)
            record.receipt = nil
            return record
        }
    }
}
