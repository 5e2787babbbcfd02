import Expectations
import KeyStore
import LoopbackKit
import Testing

@testable import PostgreSQLKeyStore

/// What the doctor sees of a database.
@Suite struct CheckupTests {
    @Test func `a database that is as it should be has nothing to be said of`() throws {
        let settings = try DatabaseServer.shared.get().makeStore()
        let found = try DatabaseCheckup(settings)
        #expect(found.version >= 120_000)
        expectEqual(found.tableFault, nil)
        expectEqual(found.missingRights, [])
        #expect(!found.isReadOnly)
        expectEqual(found.synchronousCommit, "on")
        #expect(found.clockAhead < .seconds(5) && found.clockAhead > .seconds(-5))
        expectEqual(found.connectionsMax, 200)
        expectEqual(found.connections.map { $0 > 0 }, true)
        #expect(found.roundTrip > .zero && found.connectTime > .zero)
    }

    @Test func `what is wrong with a database is found`() throws {
        let server = try DatabaseServer.shared.get()
        var settings = try server.makeSchema()
        try expectEqual(DatabaseCheckup(settings).tableFault?.next?.contains("migrate"), true)
        settings = try server.makeStore()
        let set = "-c default_transaction_read_only=on -c synchronous_commit=off"
        var other = settings
        other.address = settings.address.replacing("options='", with: "options='\(set) ")
        let found = try DatabaseCheckup(other)
        #expect(found.isReadOnly)
        expectEqual(found.synchronousCommit, "off")
        expectEqual(found.tableFault, nil)
    }

    @Test func `rights that a role lacks are named, a few of them`() throws {
        let server = try DatabaseServer.shared.get()
        var settings = try server.makeStore()
        let schema = try #require(
            settings.address.split(separator: "search_path=").last?.dropLast()
        )
        _ = try DatabaseLink(settings).ask([
            DatabaseStatement("CREATE ROLE half LOGIN"),
            DatabaseStatement("GRANT USAGE ON SCHEMA \(schema) TO half"),
            DatabaseStatement("GRANT SELECT ON ALL TABLES IN SCHEMA \(schema) TO half"),
            DatabaseStatement("GRANT INSERT, UPDATE, DELETE ON keys, receipts TO half"),
        ])
        settings.address = settings.address.replacing("user=portcullis", with: "user=half")
        let found = try DatabaseCheckup(settings)
        expectEqual(found.missingRights.count, 8)
        #expect(found.missingRights.contains("DELETE on apps"))
        #expect(!found.missingRights.contains { $0.hasPrefix("SELECT") || $0.hasSuffix(" keys") })
    }

    @Test func `every table that is made is looked at`() {
        let made = DatabaseSchema.creation.compactMap { sql -> String? in
            let words = sql.split(whereSeparator: \.isWhitespace)
            return words.starts(with: ["CREATE", "TABLE"]) ? String(words[2]) : nil
        }
        expectEqual(made.sorted(), DatabaseSchema.tables)
    }

    @Test func `a database that is not there says what to do`() throws {
        let settings = PostgreSQLSettings(address: "host=/nowhere")
        let fault = #expect(throws: JournalError.self) { try DatabaseCheckup(settings) }
        expectEqual(fault?.next?.contains("pg_isready"), true)
    }
}
