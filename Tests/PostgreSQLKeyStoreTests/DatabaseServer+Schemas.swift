import Glibc
import KeyStore
import LoopbackKit
import Synchronization

@testable import PostgreSQLKeyStore

extension DatabaseServer {
    /// The one server of this process.
    static let shared: Result<DatabaseServer, any Error> = Result {
        let server = try DatabaseServer()
        atexit { try? DatabaseServer.shared.get().end() }
        return server
    }

    private static let schemaCount = Atomic(0)

    /// Tables of their own in the database: what each lab needs.
    func makeStore() throws -> PostgreSQLSettings {
        let settings = try makeSchema()
        _ = try DatabaseTables.make(settings)
        return settings
    }

    /// A place for tables in the database, which is empty.
    func makeSchema() throws -> PostgreSQLSettings {
        let number = Self.schemaCount.add(1, ordering: .relaxed).newValue
        let link = DatabaseLink(PostgreSQLSettings(address: address(schema: "public")))
        _ = try link.ask([DatabaseStatement("CREATE SCHEMA lab\(number)")])
        var settings = PostgreSQLSettings(address: address(schema: "lab\(number)"))
        // Too long for a busy machine to reach. Tests of timeouts set their own.
        settings.connectTimeout = .seconds(30)
        settings.statementTimeout = .seconds(30)
        return settings
    }

    func address(schema: String) -> String {
        "\(address) options='-c search_path=\(schema)'"
    }
}
