import Expectations
import KeyStore
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
        expectEqual(plain.problems.map(\.text), [])
        expectEqual(plain.configuration?.store, .postgresql(PostgreSQLSettings(address: address)))
        let more =
            "connect_timeout: 1s, statement_timeout: 500ms, keys_cached: 2000, "
            + "revoked_within: 5s"
        let other = Self.loaded("{ postgresql: { address: \(address), \(more) } }")
        var settings = PostgreSQLSettings(address: address)
        settings.connectTimeout = .seconds(1)
        settings.statementTimeout = .milliseconds(500)
        settings.revokedWithin = .seconds(5)
        settings.keysCached = 2_000
        expectEqual(other.configuration?.store, .postgresql(settings))
    }

    /// The name is an argument of `ssh` when a fleet is upgraded.
    @Test(arguments: [
        ("g1", true), ("g-1_a.b", true), (".g", true), ("-oProxyCommand=x", false), ("-g", false),
        ("g 1", false), ("g\\e[2J", false), ("g\u{9B}", false), ("", false),
        (String(repeating: "g", count: 64), true), (String(repeating: "g", count: 65), false),
    ])
    func `a gateway's name is one that no program takes for an option`(name: String, isValid: Bool)
    {
        let store = "{ postgresql: { address: \"host=/run dbname=p\", gateway: \"\(name)\" } }"
        let loaded = Self.loaded(store)
        expectEqual(loaded.configuration != nil, isValid)
        expectEqual(GatewayName.isValid(name), isValid)
    }

    @Test(arguments: [
        ("edge-1.example", "edge-1.example"), ("-edge", "_edge"), ("", "gateway"),
        ("a b\u{1B}[2J", "a_b__2J"), ("(none)", "_none_"),
    ])
    func `a machine's name gives a gateway's name`(machine: String, name: String) {
        expectEqual(GatewayName.ofMachine(machine), name)
        #expect(GatewayName.isValid(GatewayName.ofMachine(machine)))
    }

    @Test(arguments: [
        "host=/run/postgresql password=hunter2", "postgresql://gateway:hunter2@/portcullis",
        "host=/run/postgresql password  =   hunter2", "host=/run password\\t= 'hunter2'",
        "host=/run user=x password =hunter2", "postgres://gateway:hunter2@db1,db2/portcullis",
        "postgresql:///portcullis?pass%77ord=hunter2", "postgresql://u:hunter2@/p?user=x",
        "postgresql://u:a?x=hunter2@h/p",
    ])
    func `a password in the address is refused, and not repeated`(address: String) {
        let loaded = Self.loaded("{ postgresql: { address: \"\(address)\" } }")
        #expect(loaded.configuration == nil)
        expectEqual(loaded.errors.count, 1)
        #expect(loaded.errors.allSatisfy { $0.text.contains("passfile=") })
        #expect(loaded.problems.allSatisfy { !$0.text.contains("hunter2") })
    }

    @Test(arguments: [
        // Nothing said is verify-full: the gateway asks for it.
        ("host=db.example.com dbname=portcullis", 0),
        ("host=db.example.com sslmode=require", 1),
        ("host=db.example.com sslmode = verify-ca", 1),
        ("host=db.example.com application_name=sslmode=verify-full sslmode=prefer", 1),
        ("host=db.example.com sslmode=verify-full", 0),
        ("\"host=/run/postgresql,db.example.com sslmode=disable\"", 1),
        ("host=localhost hostaddr=192.0.2.1 sslmode=disable", 1),
        ("host=127.0.0.1.example.com sslmode=disable", 1),
        ("service=fleet sslmode=disable", 1),
        ("\"postgresql://db.example.com/p?sslmode=require\"", 1),
        ("\"postgresql://db.example.com/p?ssl=true\"", 1),
        ("\"postgresql://[2001:db8::1]:5432/p?sslmode=allow\"", 1),
        ("\"postgresql://[::1]:5432/p?sslmode=allow\"", 0),
        ("\"postgresql://%2Frun%2Fpostgresql/p?sslmode=disable\"", 0),
        ("\"host=localhost,127.0.0.2 sslmode=disable\"", 0), ("host=/run/postgresql", 0),
        ("sslmode=disable", 0),
    ])
    func `a database whose certificate is not verified is warned of`(address: String, count: Int) {
        let loaded = Self.loaded("{ postgresql: { address: \(address) } }")
        expectEqual(loaded.errors.map(\.text), [])
        expectEqual(loaded.problems.count, count, "\(address)")
        #expect(loaded.problems.allSatisfy { $0.text.contains("sslmode=verify-full") })
    }

    @Test(arguments: [
        ("a key's password", "host=/run sslpassword=hunter2", "sslkey="),
        ("a name alone", "portcullis", "libpq"), ("no name", "= x", "libpq"),
        ("an open quote", "host='/run", "libpq"), ("half an escape", "postgres://a%4", "libpq"),
        ("a zero", "postgresql://a%00b", "libpq"), ("a URI's word", "postgres://a/b?c", "libpq"),
    ])
    func `other addresses are refused`(what: String, address: String, next: String) {
        let loaded = Self.loaded("{ postgresql: { address: \"\(address)\" } }")
        expectEqual(loaded.errors.count, 1, "\(what)")
        #expect(loaded.errors.allSatisfy { $0.text.contains(next) }, "\(what)")
        #expect(loaded.problems.allSatisfy { !$0.text.contains("hunter2") })
    }

    @Test func `keys are in one place`() {
        let both = Self.loaded("{ sqlite: p.db, postgresql: { address: host=/run } }")
        #expect(both.errors.map(\.text).contains { $0.contains("both") })
        let neither = Self.loaded("{ expire_unused: off }")
        #expect(neither.errors.map(\.text).contains { $0.contains("neither") })
    }
}
