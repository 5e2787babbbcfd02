import AppAttest
import Expectations
import Foundation
import KeyStore
import TestSupport
import Testing

@testable import SQLiteKeyStore

/// What a running gateway notices of its files, and what commands do then.
@Suite struct StoreWatchTests {
    private let folder: TemporaryFolder
    private let key = KeyRecord.sample(1)

    init() throws { folder = try TemporaryFolder() }

    /// How a file goes away under a running gateway.
    enum Fate: String, CaseIterable, Sendable { case deleted, replaced }

    /// A running gateway's table with one key, told of faults by the queue.
    private func table() throws -> KeyTable {
        try table(SQLiteKeyJournal(path: folder.database))
    }

    private func table(_ journal: SQLiteKeyJournal) throws -> KeyTable {
        let table = try KeyTable(journal: journal)
        table.enrol(key) { _ in }
        try table.committer.flush()
        return table
    }

    /// Asks until it holds; the store looks once a second.
    private func wait(for what: String, _ holds: () throws -> Bool) throws {
        guard try eventually(within: 60, holds) else {
            throw StoreContract.Unexpected("never came: \(what)")
        }
    }

    private func isRevoked(_ table: KeyTable) throws -> Bool {
        guard case .known(let key) = table.find(key.keyID) else {
            throw StoreContract.Unexpected("the key is gone")
        }
        return key.isRevoked
    }

    private func isUnavailable(_ table: KeyTable) -> Bool {
        if case .outdated = table.find(key.keyID) { true } else { false }
    }

    @Test func `a command that the gateway does not answer fails, and the gateway sees the change`()
        throws
    {
        let table = try table()
        try FileManager.default.removeItem(atPath: folder.database + ".socket")
        let keys = try KeyAdministration(path: folder.database)
        let refused = try problem { _ = try keys.revoke(key.keyID, ChangeNote(now: 5)) }
        expectEqual(refused.reason, .gatewayNotTold)
        #expect(refused.description.contains("restart"))
        #expect(refused.description.contains("process \(getpid())"))
        try wait(for: "the revocation") { try isRevoked(table) }
        try table.close()
        try expectEqual(keys.revoke(key.keyID, ChangeNote(now: 7)), .alreadyRevoked(at: 5))
    }

    @Test(arguments: ["", "-wal", "-shm", ".lock"], Fate.allCases)
    func `a file that goes away under a running gateway stops it and commands until it is back`(
        suffix: String,
        fate: Fate
    ) throws {
        let table = try table()
        let (path, aside) = (folder.database + suffix, folder.database + suffix + ".aside")
        try FileManager.default.moveItem(atPath: path, toPath: aside)
        if fate == .replaced { try FileManager.default.copyItem(atPath: aside, toPath: path) }
        let refused = try problem {
            _ = try KeyAdministration(path: folder.database).revoke(key.keyID, ChangeNote(now: 5))
        }
        expectEqual(refused.reason, .replaced)
        #expect(refused.description.contains(path))
        try wait(for: "the fault") { isUnavailable(table) }
        expectEqual(table.readFault, JournalError(.replaced, ""))
        let outcome = Box<EnrolOutcome>()
        table.enrol(.sample(2)) { outcome.set($0) }
        try wait(for: "the end of the enrolment") { outcome.value != nil }
        expectEqual(outcome.value, .failed)

        if fate == .replaced { try FileManager.default.removeItem(atPath: path) }
        try FileManager.default.moveItem(atPath: aside, toPath: path)
        try wait(for: "the end of the fault") { !isUnavailable(table) }
        let keys = try KeyAdministration(path: folder.database)
        #expect(try keys.revoke(key.keyID, ChangeNote(now: 6)) != .unknown)
        #expect(try isRevoked(table))
        try table.close()
    }

    @Test func `an index of the log that is cut is told of and made anew, and nothing dies`() throws
    {
        let journal = try SQLiteKeyJournal(path: folder.database)
        let table = try table(journal)
        let faults = Box<[JournalError]>()
        table.watchReading { error in
            if let error { faults.set((faults.value ?? []) + [error]) }
        }
        // Cut between two looks: in the middle of one, SQLite would meet a bus error.
        journal.watch.pause()
        expectEqual(truncate(folder.database + "-shm", 0), 0)
        journal.watch.goOn()
        try wait(for: "the fault") { faults.value != nil }
        expectEqual(faults.value?.first?.detail.contains("was cut"), true)
        try wait(for: "the end of the fault") { !isUnavailable(table) }
        try expectEqual(
            KeyAdministration(path: folder.database).revoke(key.keyID, ChangeNote(now: 5)),
            .revoked
        )
        #expect(try isRevoked(table))
        try table.close()
        try expectEqual(KeyAdministration(path: folder.database).count(), 1)
    }

    @Test func `a second gateway is refused although somebody has deleted the lock`() throws {
        let table = try table()
        try FileManager.default.removeItem(atPath: folder.database + ".lock")
        let refused = try problem { _ = try SQLiteKeyJournal(path: folder.database) }
        expectEqual(refused.reason, .locked)
        withExtendedLifetime(table) {}
    }

    @Test func `a path that is longer than a socket's address serves`() throws {
        let long = folder.path + "/" + String(repeating: "long-", count: 30)
        try FileManager.default.createDirectory(atPath: long, withIntermediateDirectories: false)
        let path = long + "/portcullis.db"
        let table = try KeyTable(journal: try SQLiteKeyJournal(path: path))
        table.enrol(key) { _ in }
        try table.committer.flush()
        try expectEqual(
            KeyAdministration(path: path).revoke(key.keyID, ChangeNote(now: 5)),
            .revoked
        )
        #expect(try isRevoked(table))
        try table.close()
    }

    @Test func `what a killed gateway has left is cleared away`() throws {
        try SQLiteKeyJournal(path: folder.database).close()
        _ = try folder.write("", to: "portcullis.db.socket")
        let table = try table()
        try expectEqual(
            KeyAdministration(path: folder.database).revoke(key.keyID, ChangeNote(now: 5)),
            .revoked
        )
        #expect(try isRevoked(table))
        try table.close()
        #expect(!FileManager.default.fileExists(atPath: folder.database + ".socket"))
    }

    @Test func `a next process that can't take over leaves the socket to the one before`() throws {
        let table = try table()
        let lease = try #require(try table.stopWriting())
        do {
            // It opens the store, and ends.
            let watch = ChangeWatch(lent: dup(lease.calls), database: folder.database)
            watch.start { nil }
            withExtendedLifetime(watch) {}
        }
        try table.goOn()
        try expectEqual(
            KeyAdministration(path: folder.database).revoke(key.keyID, ChangeNote(now: 5)),
            .revoked
        )
        #expect(try isRevoked(table))
        try table.close()
    }

    @Test func `a revocation that a next process has confirmed holds also when that one fails`()
        throws
    {
        let table = try table()
        let lease = try #require(try table.stopWriting())
        do {
            let watch = ChangeWatch(lent: dup(lease.calls), database: folder.database)
            watch.start { nil }
            try expectEqual(
                KeyAdministration(path: folder.database).revoke(key.keyID, ChangeNote(now: 5)),
                .revoked
            )
            withExtendedLifetime(watch) {}
        }
        try table.goOn()
        #expect(try isRevoked(table))
        try table.close()
    }

    @Test func `a caller who says nothing or something else changes nothing`() throws {
        let table = try table()
        for text in ["", "chang", String(repeating: "x", count: 400)] {
            let socket = try #require(
                ChangeAddress.socket(ofDatabase: folder.database) { connect($0, $1, $2) }
            )
            _ = ChangeAddress.send(text, to: socket)
            expectEqual(ChangeAddress.receive(from: socket), "")
            close(socket)
        }
        try expectEqual(
            KeyAdministration(path: folder.database).revoke(key.keyID, ChangeNote(now: 5)),
            .revoked
        )
        #expect(try isRevoked(table))
        try table.close()
    }
}
