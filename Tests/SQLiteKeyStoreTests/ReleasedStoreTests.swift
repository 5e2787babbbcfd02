import DeviceKey
import Expectations
import Foundation
import GRDB
import KeyStore
import TestSupport
import Testing

@testable import SQLiteKeyStore

/// Stores as released versions have written them, in Tests/Vectors/store: every later build of the
/// same major version opens them.
@Suite struct ReleasedStoreTests {
    private static let versions = ["1.0.0"]

    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func restore(_ version: String) throws {
        let released = SoftwareVectorFiles.folder.appending(path: "store/\(version)")
        let file = released.appending(path: "sqlite.sql")
        let text = try String(contentsOf: file, encoding: .utf8)
        let database = try DatabaseQueue(path: folder.database)
        // The text begins and ends a transaction of its own.
        try database.writeWithoutTransaction { try $0.execute(sql: text) }
        try database.close()
        try FileManager.default.copyItem(
            atPath: released.appending(path: "sqlite.generation").path,
            toPath: folder.database + ".generation"
        )
    }

    @Test(arguments: versions)
    func `a gateway finds each key with its last counter, its state and its receipt`(
        _ version: String
    ) throws {
        try restore(version)
        let journal = try SQLiteKeyJournal(path: folder.database)
        var rows: [KeyRow] = []
        _ = try journal.load(apps: AppNumbers()) { rows += $0 }
        // The log of counters alone has these.
        expectEqual(rows.map(\.counters.highest.rawValue).sorted(), [4, 6, 9, 10])
        expectEqual(rows.count { $0.standing == .revoked }, 1)
        let receipts = try #require(try journal.receiptStore())
        // Of keys of iPhones that are active.
        try expectEqual(receipts.census(at: 0).receipts, 2)
        journal.close()
    }

    @Test(arguments: versions)
    func `tokens that were spent are spent`(_ version: String) throws {
        try restore(version)
        let table = try KeyTable(journal: try SQLiteKeyJournal(path: folder.database))
        let tokens = try KeyAdministration(path: folder.database).spentTokens(after: nil, limit: 10)
        expectEqual(tokens.count, 1)
        try expectEqual(SpentTokensContract.spend(tokens, by: table), [.spent])
        try table.close()
    }

    @Test(arguments: versions)
    func `commands list the keys and what was done to them`(_ version: String) throws {
        try restore(version)
        let keys = try KeyAdministration(path: folder.database)
        let records = try keys.scan(KeyFilter(), after: nil, limit: 100).records
        expectEqual(records.count, 4)
        try expectEqual(keys.changes(of: nil, limit: 10).map(\.action), [.revoked])
    }
}
