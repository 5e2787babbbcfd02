import AppAttest
import Cryptography
import Expectations
import Foundation
import GRDB
import KeyStore
import TestSupport
import Testing

@testable import SQLiteKeyStore

extension KeyID {
    static func numbered(_ number: Int) -> KeyID {
        KeyID(SHA256.digest(of: Array("\(number)".utf8)))
    }
}

@Suite struct StoreFilesTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func enrol(_ records: [KeyRecord], _ journal: SQLiteKeyJournal) throws {
        _ = try journal.load(apps: AppNumbers()) { _ in }
        _ = try journal.commit(JournalBatch(enrolments: records))
    }

    @Test func `all files are for their owner alone`() throws {
        let journal = try SQLiteKeyJournal(path: folder.database)
        try enrol([.sample(1)], journal)
        for suffix in ["", "-wal", "-shm", ".lock", ".generation", ".socket"] {
            try expectEqual(TemporaryFolder.mode(folder.database + suffix), 0o600)
        }
        withExtendedLifetime(journal) {}
    }

    @Test func `two gateways do not share a database, by any of its names`() throws {
        let journal = try SQLiteKeyJournal(path: folder.database)
        let link = folder.path + "/link.db"
        try FileManager.default.createSymbolicLink(
            atPath: link,
            withDestinationPath: folder.database
        )
        for path in [folder.database, link] {
            let refused = try problem { _ = try SQLiteKeyJournal(path: path) }
            expectEqual(refused.reason, .locked)
            #expect(refused.description.contains("process \(getpid())"))
        }
        journal.close()
        try SQLiteKeyJournal(path: link).close()
    }

    @Test func `a lock that a crashed gateway left is free`() throws {
        try SQLiteKeyJournal(path: folder.database).close()
        _ = try folder.write("1 0:0 0:0 0:0 0:0\n", to: "portcullis.db.lock")
        _ = try SQLiteKeyJournal(path: folder.database)
    }

    @Test func `commands read the note of a process with a shorter number than the one before`()
        throws
    {
        let journal = try SQLiteKeyJournal(path: folder.database)
        let texts = journal.files.texts
        let longer = "999999999999 \(texts.joined(separator: " "))\n"
        #expect(StoreFile.write(longer, to: journal.lock.descriptor, at: 0))
        try journal.lock.note(journal.files, database: folder.database)
        let holder = try #require(StoreLock.holder(ofDatabase: folder.database))
        expectEqual(holder.process, "\(getpid())")
        expectEqual(holder.files, texts)
        journal.close()
    }

    @Test func `a command that looks for a gateway refuses no start of one`() throws {
        try SQLiteKeyJournal(path: folder.database).close()
        // Held much longer than a command does.
        let look = open(folder.database + ".lock", O_RDONLY | O_CLOEXEC)
        expectEqual(flock(look, LOCK_SH | LOCK_NB), 0)
        DispatchQueue(label: "look").asyncAfter(deadline: .now() + .milliseconds(20)) {
            close(look)
        }
        try SQLiteKeyJournal(path: folder.database).close()
    }

    @Test func `a file that is no database is refused with a way out`() throws {
        _ = try folder.write(String(repeating: "no database ", count: 1_000), to: "portcullis.db")
        let refused = try problem { _ = try SQLiteKeyJournal(path: folder.database) }
        expectEqual(refused.reason, .damaged)
        #expect(refused.description.contains("store restore FILE"))
        #expect(refused.description.contains(folder.database))
    }

    @Test func `a database with a damaged page is refused with a way out`() throws {
        let journal = try SQLiteKeyJournal(path: folder.database)
        try enrol(KeyRecord.many(5_000), journal)
        journal.close()
        var bytes = try Data(contentsOf: URL(fileURLWithPath: folder.database))
        let start = bytes.count / 2 / 4_096 * 4_096
        for index in start..<(start + 2_000) { bytes[index] = 0xA5 }
        try bytes.write(to: URL(fileURLWithPath: folder.database))
        let refused = try problem { _ = try SQLiteKeyJournal(path: folder.database) }
        expectEqual(refused.reason, .damaged)
        #expect(refused.hint.contains("keys import"))
    }

    @Test func `a database of another program is refused, and stays as it is`() throws {
        let other = try DatabaseQueue(path: folder.database)
        try other.write { try $0.execute(sql: "CREATE TABLE notes (text TEXT)") }
        try other.close()
        let before = try Data(contentsOf: URL(fileURLWithPath: folder.database))
        try expectEqual(
            problem { _ = try SQLiteKeyJournal(path: folder.database) }.reason,
            .foreign
        )
        try expectEqual(Data(contentsOf: URL(fileURLWithPath: folder.database)), before)
    }

    /// 0 is that of a database without tables; this one has some.
    @Test(arguments: [99, 0, -1])
    func `a database of another version is refused`(version: Int) throws {
        let database = try KeyDatabase(path: folder.database, creates: true)
        try database.queue.write { try $0.execute(sql: "PRAGMA user_version = \(version)") }
        try database.queue.close()
        for use in [
            { _ = try SQLiteKeyJournal(path: folder.database) },
            { _ = try KeyDatabase(reading: folder.database) },
        ] as [() throws -> Void] {
            let refused = try problem(use)
            expectEqual(refused.reason, .otherVersion)
            #expect(refused.detail.contains("of version \(version); this program uses 1"))
        }
    }

    @Test func `a command without a database says so, and makes none`() throws {
        try expectEqual(
            problem { _ = try KeyAdministration(path: folder.database) }.reason,
            .missing
        )
        #expect(!FileManager.default.fileExists(atPath: folder.database))
        _ = try KeyAdministration(path: folder.database, creates: true)
        _ = try KeyAdministration(path: folder.database)
    }

    @Test(arguments: [".generation", "-wal", ".rollout", ".lock"])
    func `a file beside a missing or empty database says that there was one`(
        suffix: String
    ) throws {
        expectEqual(StorePreview.birthplace(folder.database), .empty)
        let left = try StoreFile.resolved(folder.write("", to: "portcullis.db" + suffix))
        expectEqual(StorePreview.birthplace(folder.database), .left(left))
        let database = try folder.write("", to: "portcullis.db")
        expectEqual(StorePreview.birthplace(database), .left(left))
        _ = try folder.write("not empty", to: "portcullis.db")
        expectEqual(StorePreview.birthplace(database), .taken)
    }

    @Test(arguments: ["/proc/portcullis.db", "/nowhere/portcullis.db"])
    func `a folder that can't hold the database is named`(path: String) throws {
        let refused = try problem { _ = try SQLiteKeyJournal(path: path) }
        expectEqual(refused.reason, .unusable)
        #expect(refused.description.contains("writable"))
    }

    @Test(.enabled(if: geteuid() != 0, "root may write everywhere"))
    func `a read-only folder is refused with a way out`() throws {
        try FileManager.default.setAttributes([.posixPermissions: 0o500], ofItemAtPath: folder.path)
        let refused = try problem { _ = try SQLiteKeyJournal(path: folder.database) }
        expectEqual(refused.reason, .unusable)
        #expect(refused.hint.contains("writable"))
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: folder.path)
    }

    @Test func `a folder in place of the database is refused`() throws {
        try FileManager.default.createDirectory(
            atPath: folder.database,
            withIntermediateDirectories: false
        )
        try expectEqual(
            problem { _ = try SQLiteKeyJournal(path: folder.database) }.reason,
            .unusable
        )
    }

    @Test func `a write lock that another holds is waited for, then told as busy`() throws {
        let error = DatabaseError(resultCode: .SQLITE_BUSY)
        expectEqual(KeyDatabase.journalError(error), JournalError(.busy, ""))
        expectEqual(KeyDatabase.journalError(DatabaseError(resultCode: .SQLITE_FULL)).reason, .full)
        expectEqual(
            KeyDatabase.journalError(DatabaseError(resultCode: .SQLITE_CORRUPT)).reason,
            .damaged
        )
        expectEqual(
            KeyDatabase.journalError(DatabaseError(resultCode: .SQLITE_IOERR)).reason,
            .unusable
        )
    }

    @Test func `a closed journal says that it is closed`() throws {
        let journal = try SQLiteKeyJournal(path: folder.database)
        journal.close()
        #expect(throws: JournalError(.closed, "")) { try journal.commit(JournalBatch()) }
    }
}
