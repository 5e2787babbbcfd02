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
        let file = SoftwareVectorFiles.folder.appending(path: "store/sqlite-\(version).sql")
        let text = try String(contentsOf: file, encoding: .utf8)
        let database = try DatabaseQueue(path: folder.database)
        // The text begins and ends a transaction of its own.
        try database.writeWithoutTransaction { try $0.execute(sql: text) }
        try database.close()
    }

    @Test(arguments: versions)
    func `a gateway finds each key with its last counter, its state and its receipt`(
        _ version: String
    ) throws {
        try restore(version)
        // The file beside it that says how far it had come names files of another machine.
        let journal = try SQLiteKeyJournal(path: folder.database, age: .any)
        var rows: [KeyRow] = []
        _ = try journal.load(apps: AppNumbers()) { rows += $0 }
        expectEqual(rows.map(\.counters.highest.rawValue), [68, 68, 68, 68])
        expectEqual(rows.count { $0.standing == .revoked }, 1)
        let receipts = try #require(try journal.receiptStore())
        // Of keys that are active.
        try expectEqual(receipts.census(at: 0).receipts, 3)
        journal.close()
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
