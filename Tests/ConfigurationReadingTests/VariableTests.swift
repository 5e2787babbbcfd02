import Expectations
import Rules
import Testing

@testable import ConfigurationReading

/// Variables of the environment in the texts of a configuration.
struct VariableTests {
    /// A configuration with a line for each of the given keys.
    private static func loaded(
        _ variables: [String: String],
        servers: String = "\"o:80\"",
        _ more: String = "",
        isOffline: Bool = false
    ) -> LoadedConfiguration {
        var files = MemoryFiles(variables: variables)
        files.files["p.yaml"] = """
            listen: [{ address: "127.0.0.1:0" }]
            origins: { o: { servers: [\(servers)] } }
            default: { origin: o, mode: off }
            \(more)
            """
        return ConfigurationLoader.load("p.yaml", offline: isOffline, files: files)
    }

    private static func errors(_ variables: [String: String], servers: String) -> [String] {
        loaded(variables, servers: servers).errors.map(\.text)
    }

    private static let texts: [(String, [VariableText.Piece])] = [
        ("", []), ("plain", [.text("plain")]), ("a$b$", [.text("a$b$")]),
        ("${A}", [.variable("A")]), ("${_a9}", [.variable("_a9")]),
        ("x${A}y${B}", [.text("x"), .variable("A"), .text("y"), .variable("B")]),
        ("$${A}", [.text("${A}")]), ("$$${A}", [.text("$${A}")]),
        ("$${A}${B}", [.text("${A}"), .variable("B")]), ("${}", [.other("${}")]),
        ("${9A}", [.other("${9A}")]), ("${A-x}b", [.other("${A-x}"), .text("b")]),
        ("${A", [.other("${A")]), ("${a ${B}", [.other("${a ${B}")]),
    ]

    @Test(arguments: texts)
    func `a text is cut into what it says and its variables`(
        _ text: String,
        _ pieces: [VariableText.Piece]
    ) {
        expectEqual(VariableText(text).pieces, pieces)
    }

    @Test func `variables stand in paths, addresses and names`() throws {
        let variables = [
            "HOST": "shop.internal", "PORT": "8080", "TEAM": "ABCDE12345", "RUN": "/run/p",
            "NET": "10.0.0.0/8", "USER": "gateway",
        ]
        let more = """
            admin: { address: "unix:${RUN}/admin.sock" }
            apps: [{ id: "${TEAM}.com.example.shop", environments: [production] }]
            store: { sqlite: "${RUN}/keys.db" }
            log: { access: "${RUN}/access.log" }
            trusted_proxies: ["${NET}"]
            process: { user: "${USER}" }
            spill_folder: "${TMP}"
            """
        let loaded = Self.loaded(
            variables.merging(["TMP": "/tmp"]) { $1 },
            servers: "\"${HOST}:${PORT}\", { address: \"${HOST}:81\" }",
            more
        )
        // The folder of the store exists on no disk of this test.
        expectEqual(loaded.errors.map(\.keyPath), ["store.sqlite"])
        let assumed = Self.loaded(
            variables.merging(["TMP": "/tmp"]) { $1 },
            servers: "\"${HOST}:${PORT}\", { address: \"${HOST}:81\" }",
            more,
            isOffline: true
        )
        let configuration = try #require(assumed.configuration)
        let servers = configuration.origins[0].servers.map(\.text)
        expectEqual(servers, ["shop.internal:8080", "shop.internal:81"])
        expectEqual(configuration.apps.map(\.id), ["ABCDE12345.com.example.shop"])
        expectEqual(configuration.admin.map(\.address.text), ["unix:/run/p/admin.sock"])
        expectEqual(configuration.store.file, "/run/p/keys.db")
        expectEqual(configuration.log.access, .file("/run/p/access.log"))
        expectEqual(configuration.process.user, "gateway")
        expectEqual(assumed.assumptions.map(\.text), ["assumed: /run/p (store.sqlite)"])
    }

    private static let faults: [(servers: String, problem: String)] = [
        (
            "\"${GONE}:80\"",
            "${GONE}, which is not set; use GONE in the environment of the gateway and of its"
        ),
        ("\"${EMPTY}:80\"", "${EMPTY}, which is set to nothing; use EMPTY in the"),
        ("\"${LINES}:80\"", "${LINES}, whose value is no line of text; use LINES in the"),
        (
            "\"${GONE:-o}:80\"",
            "${GONE:-o}, which is no variable; use ${NAME}, which has no default"
        ),
        ("\"${GONE:80\"", "${GONE:80, which is no variable; use ${NAME}"),
        ("\"${LONG}:80\"", "5003 bytes with its variables; use 4096 at most"),
        (
            "\"${WRONG}\"",
            "\"${WRONG}\", which is \"no address\"; use host:port, [v6]:port or unix:/path"
        ),
        ("\"$${WRONG}:80\"", "\"$${WRONG}:80\", which is \"${WRONG}:80\"; use host:port"),
    ]

    @Test(arguments: faults)
    func `a variable without a usable value is named with its place`(
        _ servers: String,
        _ problem: String
    ) {
        let long = String(repeating: "x", count: 5_000)
        let variables = [
            "EMPTY": "", "LINES": "a\nb", "LONG": long, "WRONG": "no address",
        ]
        let found = Self.errors(variables, servers: servers)
        let start = "p.yaml:2: origins.o.servers[0]: found \(problem)"
        #expect(found.count == 1 && found[0].hasPrefix(start), "\(found)")
    }

    @Test func `a value is one text, whatever it looks like in YAML`() {
        for value in ["a: b", "[o:80, p:80]", "&a", "o:80 # comment", "\"o:80\"", "${HOST}"] {
            let found = Self.errors(["X": value, "HOST": "h"], servers: "\"${X}\"")
            let start = "p.yaml:2: origins.o.servers[0]: found \"${X}\", which is \""
            #expect(found.count == 1 && found[0].hasPrefix(start), "\(found)")
        }
    }

    private static let logic = [
        "rules: [{ id: a, match: { path: \"${V}\" }, mode: off }]",
        "rules: [{ id: a, match: { host: \"${V}\", path: /a }, mode: off }]",
        "rules: [{ id: a, match: { path: /a }, mode: \"${V}\" }]",
        "rules: [{ id: a, match: { path: /a }, mode: observe, accept: [\"${V}\"] }]",
        "rules: [{ id: a, match: { path: /a }, mode: off, origin: \"${V}\" }]",
        "limits: { head: \"${V}\" }", "event_loops: \"${V}\"", "endpoints: \"${V}\"",
        "log: { level: \"${V}\" }",
    ]

    @Test(arguments: logic)
    func `what decides, and every other value, takes no variable`(_ more: String) {
        let found = Self.loaded(["V": "/x"], more).errors.map(\.text)
        let problem = "found ${V} in a key that takes no variables; use the value itself"
        // No path of a rule has a brace.
        let isPath = more.contains("path: \"")
        #expect(found.contains { isPath || $0.contains(problem) }, "\(found)")
    }

    /// Texts in small letters had been texts before there were variables.
    @Test func `other texts with a dollar sign stay, and a doubled one is one`() throws {
        for (written, salt) in [
            ("a$b", "a$b"), ("${x}", "${x}"), ("$${X}", "${X}"), ("${X", "${X"), ("$${", "${"),
        ] {
            let rollout = "rollout: { percent: 10%, salt: \"\(written)\" }"
            let loaded = Self.loaded(
                [:],
                """
                apps: [{ id: TEAM123456.a, environments: [production] }]
                store: { sqlite: p.db }
                rules: [{ id: a, match: { path: /a }, mode: enforce, \(rollout) }]
                """
            )
            expectEqual(loaded.errors.map(\.text), [])
            let rule = try #require(loaded.configuration?.rules.rules.first)
            expectEqual(rule.rollout.salt, salt)
        }
    }

    @Test func `the schema and the table of keys say where variables may stand`() {
        let rows = ConfigurationSchema().rows
        func takes(_ key: String) -> Bool? {
            rows.first { $0.key == key }.map { $0.allowed.contains("(${NAME})") }
        }
        for key in [
            "listen[].address", "listen[].tls.key", "admin.address", "origins.*.servers[]",
            "origins.*.servers[].address", "origins.*.tls.ca", "apps[].id", "apps[].android",
            "store.sqlite", "store.postgresql.address", "log.access", "trusted_proxies[]",
            "google.status_list.url", "apple.proxy", "rules", "apps", "origins", "spill_folder",
        ] where key != "admin.address" || takes(key) != nil {
            #expect(takes(key) ?? takes(String(key.dropLast(2))) == true, "\(key)")
        }
        let ofRules = rows.filter { $0.key.hasPrefix("rules[]") || $0.key.hasPrefix("default.") }
        #expect(ofRules.count > 60)
        expectEqual(ofRules.filter { $0.allowed.contains("${NAME}") }.map(\.key), [])
    }
}
