import AppAttest
import Encodings
import Expectations
import Foundation
import GRDB
import KeyStore
import TestSupport
import Testing

@testable import SQLiteKeyStore

/// What starts on a database that is older than what was used, or is none.
@Suite struct StoreAgeTests {
    private let folder: TemporaryFolder
    private let key = KeyRecord.sample(1)

    init() throws { folder = try TemporaryFolder() }

    /// What lies in the database's place at the next start.
    enum Find: String, CaseIterable, Sendable {
        case older, missing, empty, another
        case unknown = "without its generation"
        case garbled = "with a generation that is cut"
    }

    private var file: String { folder.database + ".generation" }

    private func reason(_ path: String) -> StoreProblem? {
        do throws(StoreProblem) {
            try SQLiteKeyJournal(path: path).close()
            return nil
        } catch {
            return error
        }
    }

    private func use(_ path: String, _ body: (KeyTable) throws -> Void) throws {
        let table = try KeyTable(journal: try SQLiteKeyJournal(path: path))
        try body(table)
        try table.close()
    }

    private func enrol(_ record: KeyRecord, _ table: KeyTable) throws {
        table.enrol(record) { _ in }
        try table.committer.flush()
    }

    private func number(_ path: String) throws -> Int64 {
        try #require(GenerationFile.record(ofDatabase: path)).generation.number
    }

    /// Puts it there.
    private func put(_ find: Find) throws {
        let files = FileManager.default
        switch find {
        case .older:
            let copy = folder.path + "/copy.db"
            try files.copyItem(atPath: folder.database, toPath: copy)
            try use(folder.database) { try enrol(.sample(2), $0) }
            try files.removeItem(atPath: folder.database)
            try files.moveItem(atPath: copy, toPath: folder.database)
        case .missing: try files.removeItem(atPath: folder.database)
        case .empty: expectEqual(truncate(folder.database, 0), 0)
        case .another:
            let other = folder.path + "/other.db"
            for number in UInt8(1)...9 { try use(other) { try enrol(.sample(number), $0) } }
            try files.removeItem(atPath: folder.database)
            try files.moveItem(atPath: other, toPath: folder.database)
        case .unknown: try files.removeItem(atPath: file)
        case .garbled: expectEqual(truncate(file, 15), 0)
        }
    }

    @Test func `a command changes nothing of an older copy, which would pass for the newest then`()
        throws
    {
        try use(folder.database) { try enrol(key, $0) }
        try put(.older)
        let before = try number(folder.database)
        var problem: StoreProblem?
        do throws(StoreProblem) {
            _ = try KeyAdministration(path: folder.database).revoke(key.keyID, ChangeNote(now: 5))
        } catch {
            problem = error
        }
        expectEqual(problem?.reason, .older)
        try expectEqual(number(folder.database), before)
        expectEqual(reason(folder.database)?.reason, .older)
    }

    @Test(arguments: Find.allCases)
    func `a store that may have lost something starts only when that is accepted`(
        find: Find
    ) throws {
        try use(folder.database) { try enrol(key, $0) }
        expectEqual(reason(folder.database), nil)
        try put(find)
        let refused = try #require(reason(folder.database))
        expectEqual(refused.reason, .older)
        for part in [folder.database, "--accept-older-store", "replayed", "revoked"] {
            #expect(refused.description.contains(part), "\(refused)")
        }
        // To be refused changes nothing.
        expectEqual(reason(folder.database), refused)
        let journal = try SQLiteKeyJournal(path: folder.database, age: .any)
        expectEqual(journal.accepted, refused)
        journal.close()
        // It is the newest from now on.
        expectEqual(reason(folder.database), nil)
        let again = try SQLiteKeyJournal(path: folder.database, age: .any)
        expectEqual(again.accepted, nil)
        again.close()
    }

    @Test func `each commit and each command moves the generation, in the database and beside it`()
        throws
    {
        let journal = try SQLiteKeyJournal(path: folder.database)
        let table = try KeyTable(journal: journal)
        var last = try number(folder.database)
        func expectMoved(_ what: Comment) throws {
            let now = try number(folder.database)
            #expect(now > last, what)
            last = now
        }
        try enrol(key, table)
        try expectMoved("an enrolment")
        let row = try #require(try rows(journal).first)
        let counters = CounterState(highest: SignCounter(rawValue: 5))
        let change = CounterChange(row: row.row, counters: counters, usedAt: 9)
        _ = try journal.commit(JournalBatch(changes: [change]))
        try journal.settle()
        try expectMoved("a counter")
        let keys = try KeyAdministration(path: folder.database)
        try expectEqual(keys.revoke(key.keyID, ChangeNote(now: 5)), .revoked)
        try expectMoved("a revocation beside a gateway")
        try table.close()
        let lines = try folder.write(KeyLine.text(.sample(3)), to: "import.jsonl")
        try expectEqual(keys.importLines(from: lines).inserted, 1)
        try expectMoved("an import without a gateway")
        try keys.close()
        let database = try KeyDatabase(path: folder.database, creates: false)
        try expectEqual(database.queue.read { try Generation.current($0) }.number, last)
    }

    private func rows(_ journal: SQLiteKeyJournal) throws -> [KeyRow] {
        var rows: [KeyRow] = []
        _ = try journal.load(apps: AppNumbers()) { rows += $0 }
        return rows
    }

    @Test func `a fold of the log of counters leaves the generation where it is`() throws {
        let journal = try SQLiteKeyJournal(path: folder.database, foldedAt: 1)
        let table = try KeyTable(journal: journal)
        try enrol(key, table)
        let row = try #require(try rows(journal).first)
        for highest in UInt32(1)...4 {
            let counters = CounterState(highest: SignCounter(rawValue: highest))
            let change = CounterChange(row: row.row, counters: counters, usedAt: 9)
            let before = try number(folder.database)
            _ = try journal.commit(JournalBatch(changes: [change]))
            try journal.settle()
            try expectEqual(number(folder.database), before + 1)
        }
        let database = try KeyDatabase(path: folder.database, creates: false)
        try expectEqual(database.queue.read { try CounterLog.count($0) }, 0)
        let stored = try database.queue.read { try Generation.current($0) }
        #expect(stored.number == (try number(folder.database)))
        try table.close()
        expectEqual(reason(folder.database), nil)
    }

    @Test func `a store that a command has made starts as ever`() throws {
        let keys = try KeyAdministration(path: folder.database, creates: true)
        let lines = try folder.write(KeyLine.text(key), to: "import.jsonl")
        try expectEqual(keys.importLines(from: lines).inserted, 1)
        try keys.close()
        expectEqual(reason(folder.database), nil)
        #expect(try number(folder.database) > 0)
    }

    @Test func `the enrolment secret stays with the store, and goes when an older copy is taken`()
        throws
    {
        func secret(age: StoreAge.Demand = .newest) throws -> [UInt8]? {
            let journal = try SQLiteKeyJournal(path: folder.database, age: age)
            _ = try journal.load(apps: AppNumbers()) { _ in }
            defer { journal.close() }
            return try journal.enrolmentSecret()
        }
        let first = try #require(try secret())
        expectEqual(first.count, 32)
        try expectEqual(secret(), first)
        try expectEqual(secret(age: .any), first)
        let copy = try Data(contentsOf: URL(filePath: folder.database))
        try expectEqual(secret(), first)
        try copy.write(to: URL(filePath: folder.database))
        let redrawn = try #require(try secret(age: .any))
        #expect(redrawn != first)
        try expectEqual(secret(), redrawn)
        // It is in no export, in no spelling.
        let keys = try KeyAdministration(path: folder.database)
        var lines: [UInt8] = []
        _ = try keys.export { lines += $0 }
        let text = String(decoding: lines, as: UTF8.self)
        #expect(!text.contains(Base64.text(redrawn)) && !text.contains(Hex.text(redrawn)))
    }

    @Test func `the enrolment secret goes with a start that takes an older copy, and then ends`()
        throws
    {
        let journal = try SQLiteKeyJournal(path: folder.database)
        let before = try journal.enrolmentSecret()
        journal.close()
        try put(.unknown)
        // It ends before it asks for the secret: its port is taken, or it is killed.
        try SQLiteKeyJournal(path: folder.database, age: .any).close()
        let next = try SQLiteKeyJournal(path: folder.database)
        #expect(try next.enrolmentSecret() != before)
        next.close()
    }

    @Test func `a start that was cut before its first number starts again`() throws {
        let database = try KeyDatabase(path: folder.database, creates: true)
        let now = try database.queue.read { try Generation.current($0) }
        try database.queue.close()
        _ = try GenerationFile(database: folder.database, GenerationFile.Record(generation: now))
        expectEqual(reason(folder.database), nil)
    }

    @Test func `a database that is put back to an older state in place is noticed`() throws {
        let table = try KeyTable(journal: try SQLiteKeyJournal(path: folder.database))
        let copy = try DatabaseQueue(path: folder.path + "/copy.db")
        let live = try DatabaseQueue(path: folder.database)
        try live.backup(to: copy)
        try enrol(key, table)
        try copy.backup(to: live)
        try live.close()
        eventually(within: 60) { table.readFault != nil }
        expectEqual(table.readFault, JournalError(.replaced, ""))
    }
}
