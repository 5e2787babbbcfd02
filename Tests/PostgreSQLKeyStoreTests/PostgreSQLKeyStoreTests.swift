import AppAttest
import Expectations
import KeyStore
import LoopbackKit
import TestSupport
import Testing

@testable import PostgreSQLKeyStore

@Suite struct PostgreSQLKeyStoreTests {
    /// Tables of their own. What was committed is there after a crash.
    private final class Lab: StoreLab {
        private let settings: PostgreSQLSettings
        private let archive: PostgreSQLKeyArchive
        private var journals: [ToldJournal] = []

        init() throws {
            settings = try DatabaseServer.shared.get().makeStore()
            archive = try PostgreSQLKeyArchive(settings)
        }

        func open() throws -> any KeyJournal {
            let journal = ToldJournal(try PostgreSQLKeyJournal(settings, clock: { 0 }))
            journals.append(journal)
            return journal
        }

        func crash() { journals.removeLast() }

        /// The contract says that the gateway which came last hears of it at once.
        private func announce() { journals.last?.tell() }

        func revoke(_ keyID: KeyID, isRead: Bool) throws {
            try expectEqual(archive.revoke(keyID, ChangeNote(now: 1)), .revoked)
            announce()
        }

        func set(_ status: KeyRecord.Status, of keyID: KeyID) throws {
            switch status {
            case .active: try expectEqual(archive.restore(keyID, ChangeNote(now: 1)), .restored)
            case .revoked: try revoke(keyID, isRead: true)
            case .deleted(let second):
                try expectEqual(archive.delete(keyID, ChangeNote(now: second)), .deleted)
            case .erased: Issue.record("keys are deleted before they are erased")
            }
            announce()
        }

        func erase() throws { _ = try archive.eraseDeleted() }

        func add(_ record: KeyRecord) throws {
            _ = try archive.store([record])
            announce()
        }

        func stored(_ keyID: KeyID) throws -> KeyRecord? { try archive.record(keyID) }
    }

    @Test func `a list of revoked certificates revokes keys, and gives back those that it took`()
        throws
    {
        let settings = try DatabaseServer.shared.get().makeStore()
        try ListedKeysContract.check(try PostgreSQLKeyArchive(settings))
    }

    @Test func `a key that another store's list has revoked comes back with a list`() throws {
        let settings = try DatabaseServer.shared.get().makeStore()
        try ListedKeysContract.checkMerge(try PostgreSQLKeyArchive(settings))
    }

    @Test func `keys that were erased are erased in copies and exports of the store`() throws {
        let server = try DatabaseServer.shared.get()
        try ErasureContract.check(
            from: try PostgreSQLKeyArchive(try server.makeStore()),
            to: try PostgreSQLKeyArchive(try server.makeStore()),
            try PostgreSQLKeyArchive(try server.makeStore())
        )
    }

    @Test func `tokens that were spent are spent in a copy of the store`() throws {
        let server = try DatabaseServer.shared.get()
        let (old, new) = (try server.makeStore(), try server.makeStore())
        try SpentTokensContract.check(
            from: try PostgreSQLKeyArchive(old),
            try KeyTable(journal: try PostgreSQLKeyJournal(old)),
            to: try PostgreSQLKeyArchive(new),
            try KeyTable(journal: try PostgreSQLKeyJournal(new))
        )
    }

    @Test(arguments: StoreContract.all(decided: .atCommit))
    func `the store in PostgreSQL keeps the contract`(contract: StoreContract) throws {
        try contract.run(in: Lab())
    }
}
