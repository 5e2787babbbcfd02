import Testing

@testable import ConfigurationReading

@Suite struct DatabaseSettingTests {
    private static func loaded(_ store: String) -> LoadedConfiguration {
        let text = """
            listen: [{ address: "127.0.0.1:8080" }]
            origins: { shop: { servers: ["127.0.0.1:8081"] } }
            store: \(store)
            default: { mode: deny }
            """
        var files = MemoryFiles()
        files.files = ["p.yaml": text]
        return ConfigurationLoader.load("p.yaml", files: files)
    }

    @Test func `a database is reached with bounds that have defaults`() throws {
        let address = "host=/run/postgresql dbname=portcullis"
        let plain = Self.loaded("{ postgresql: { address: \(address) } }")
        #expect(plain.problems.map(\.text) == [])
        #expect(plain.configuration?.store == .postgresql(DatabaseSettings(address: address)))
        let more =
            "connect_timeout: 1s, statement_timeout: 500ms, keys_cached: 2000, "
            + "revoked_within: 5s"
        let other = Self.loaded("{ postgresql: { address: \(address), \(more) } }")
        var settings = DatabaseSettings(address: address)
        settings.connectTimeout = .seconds(1)
        settings.statementTimeout = .milliseconds(500)
        settings.revokedWithin = .seconds(5)
        settings.keysCached = 2_000
        #expect(other.configuration?.store == .postgresql(settings))
    }

    @Test(arguments: [
        "host=/run/postgresql password=hunter2", "postgresql://gateway:hunter2@/portcullis",
    ])
    func `a password in the address is refused, and not repeated`(address: String) {
        let loaded = Self.loaded("{ postgresql: { address: \"\(address)\" } }")
        #expect(loaded.configuration == nil)
        #expect(loaded.errors.count == 1)
        #expect(loaded.errors.allSatisfy { $0.text.contains("passfile=") })
        #expect(loaded.problems.allSatisfy { !$0.text.contains("hunter2") })
    }

    @Test(arguments: [
        ("host=db.example.com dbname=portcullis", 1),
        ("host=db.example.com sslmode=require", 1),
        ("host=db.example.com sslmode=verify-full", 0),
        ("host=/run/postgresql", 0),
    ])
    func `a database whose certificate is not verified is warned of`(address: String, count: Int) {
        let loaded = Self.loaded("{ postgresql: { address: \(address) } }")
        #expect(loaded.errors.map(\.text) == [])
        #expect(loaded.problems.count == count)
        #expect(loaded.problems.allSatisfy { $0.text.contains("sslmode=verify-full") })
    }

    @Test func `keys are in one place`() {
        let both = Self.loaded("{ sqlite: p.db, postgresql: { address: host=/run } }")
        #expect(both.errors.map(\.text).contains { $0.contains("both") })
        let neither = Self.loaded("{ expire_unused: off }")
        #expect(neither.errors.map(\.text).contains { $0.contains("neither") })
    }
}
