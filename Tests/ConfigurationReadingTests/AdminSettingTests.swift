import ConfigurationReading
import Expectations
import Testing

/// The section `admin`.
@Suite struct AdminSettingTests {
    private static let token = String(repeating: "0123456789abcdef", count: 4)

    private static func loaded(
        _ admin: String,
        token: String = token + "\n",
        mode: UInt16 = 0o600
    ) -> LoadedConfiguration {
        var files = MemoryFiles()
        files.files = [
            "p.yaml": """
            listen: [{ address: "127.0.0.1:0" }]
            origins: { o: { servers: ["o:80"] } }
            default: { origin: o, mode: off }
            admin: \(admin.hasPrefix("[") ? admin : "{ \(admin) }")
            """,
            "t": token,
            "other": String(repeating: "f", count: 64),
        ]
        files.permissions["t"] = mode
        files.permissions["other"] = 0o600
        return ConfigurationLoader.load("p.yaml", files: files)
    }

    @Test(arguments: [
        ("address: \"127.0.0.1:1\"", false, false),
        ("address: \"127.0.0.1:1\", token_file: t", true, true),
        ("address: \"[::1]:1\", token_file: t", true, true),
        ("address: \"127.0.0.1:1\", calls: any", true, false),
        ("address: \"unix:/run/a.sock\"", true, false),
    ])
    func `calls are served on a Unix socket, to who shows the token, or to anybody`(
        admin: String,
        areServed: Bool,
        needsToken: Bool
    ) throws {
        let loaded = Self.loaded(admin)
        expectEqual(loaded.problems.map(\.text), [])
        let listener = try #require(loaded.configuration?.admin.first)
        expectEqual(listener.servesText.hasSuffix("calls"), areServed)
        expectEqual(listener.asksForToken, needsToken)
        expectEqual(listener.token != nil, needsToken)
    }

    @Test func `each listener of a list serves what it says, and has its own token`() throws {
        let loaded = Self.loaded(
            """
            [{ address: "unix:/run/a.sock" }, { address: "127.0.0.1:1", serves: [metrics] }, \
            { address: "0.0.0.0:2", serves: [metrics, probes] }, \
            { address: "127.0.0.1:3", serves: [pages, calls], token_file: t }, \
            { address: "127.0.0.1:4", read_token_file: other }]
            """
        )
        expectEqual(loaded.problems.map(\.text), [])
        let configuration = try #require(loaded.configuration)
        expectEqual(
            configuration.admin.map(\.servesText),
            [
                "probes, metrics, pages, calls", "metrics", "probes, metrics", "pages, calls",
                "probes, metrics, pages, lookups",
            ]
        )
        expectEqual(configuration.admin.map { $0.token != nil }, [false, false, false, true, true])
        #expect(configuration.commandProblem == nil)
    }

    @Test(arguments: [
        ("address: \"127.0.0.1:1\"", "no admin listener that serves calls"),
        ("[{ address: \"127.0.0.1:1\" }, { address: \"127.0.0.1:2\" }]", "that serves calls"),
        ("address: \"unix:/run/a.sock\", serves: [probes]", "that serves calls"),
        ("address: \"127.0.0.1:1\", read_token_file: t", "that serves calls"),
    ])
    func `check says where no command reaches the gateway`(admin: String, problem: String) throws {
        let loaded = Self.loaded(admin)
        let report = Check(loaded, file: "p.yaml").text
        #expect(report.contains("p.yaml:4: warning: admin: found "), "\(report)")
        #expect(report.contains(problem), "\(report)")
        #expect(report.contains("p.yaml: ok, 1 warning\n"), "\(report)")
    }

    @Test(arguments: [
        (
            "[{ address: \"127.0.0.1:1\", serves: [calls] }]",
            "admin[0].serves[0]: found calls at 127.0.0.1:1, where nothing says who may call"
        ),
        (
            "address: \"127.0.0.1:1\", serves: [calls], read_token_file: t",
            "admin.serves[0]: found calls at 127.0.0.1:1, beside read_token_file"
        ),
        (
            "address: \"127.0.0.1:1\", serves: [pages], token_file: t",
            "admin.token_file: found it beside serves without calls"
        ),
        (
            "address: \"127.0.0.1:1\", serves: [pages], calls: any",
            "admin.calls: found any beside serves without calls"
        ),
        (
            "address: \"127.0.0.1:1\", token_file: t, read_token_file: t",
            "admin.read_token_file: found it beside token_file"
        ),
        (
            "address: \"unix:/run/a.sock\", read_token_file: t",
            "admin.read_token_file: found it beside a Unix socket"
        ),
        (
            "address: \"10.0.0.1:1\", read_token_file: t",
            "admin.read_token_file: found it beside 10.0.0.1:1"
        ),
        (
            "[{ address: \"127.0.0.1:1\" }, { address: \"127.0.0.1:1\" }]",
            "admin[1].address: found 127.0.0.1:1, which is already at p.yaml:4"
        ),
        (
            "[{ address: \"127.0.0.1:1\", token_file: t }, "
                + "{ address: \"127.0.0.1:2\", read_token_file: t }]",
            "admin[1].read_token_file: found the token with which calls are made"
        ),
        ("address: \"127.0.0.1:1\", serves: [orders]", "admin.serves[0]: found "),
        ("address: \"127.0.0.1:1\", serves: []", "admin.serves: found an empty list"),
    ])
    func `keys of a listener that don't belong together are refused`(
        admin: String,
        problem: String
    ) {
        let loaded = Self.loaded(admin)
        #expect(loaded.configuration == nil)
        let texts = loaded.errors.map(\.text)
        expectEqual(texts.count, 1, "\(texts)")
        expectEqual(texts.first?.hasPrefix("p.yaml:4: " + problem), true, "\(texts)")
    }

    @Test func `an address of the network is a warning where it serves more than metrics`() {
        let said = Self.loaded("address: \"10.0.0.1:1\"").warnings.map(\.text)
        expectEqual(said.count, 1)
        expectEqual(said.first?.contains("serves: [metrics, probes]"), true, "\(said)")
        let silent = Self.loaded("address: \"10.0.0.1:1\", serves: [metrics, probes]")
        expectEqual(silent.warnings.map(\.text), [])
    }

    @Test func `there are eight admin listeners at most`() {
        let all = (1...9).map { "{ address: \"127.0.0.1:\($0)\" }" }.joined(separator: ", ")
        let texts = Self.loaded("[\(all)]").errors.map(\.text)
        expectEqual(texts, ["p.yaml:4: admin[8]: found 9 admin listeners; use 8 at most"])
    }

    @Test func `where a gateway is asked is known while its files are wrong`() throws {
        let main = """
            listen: [{ address: "127.0.0.1:0" }]
            default: { mode: enfroce }
            admin: { address: "127.0.0.1:9901", token_file: t }
            rules: rules
            """
        var files = MemoryFiles()
        files.files = ["p.yaml": main, "rules/a.yaml": "- broken", "t": Self.token]
        files.permissions["t"] = 0o600
        #expect(ConfigurationLoader.load("p.yaml", files: files).configuration == nil)
        let listeners = ConfigurationLoader.adminListeners("p.yaml", files: files)
        expectEqual(listeners.map(\.address.text), ["127.0.0.1:9901"])
        #expect(listeners.first?.token != nil)
        #expect(ConfigurationLoader.adminListeners("absent.yaml", files: files).isEmpty)
    }

    @Test func `a command names the listener itself, with the token's file`() throws {
        var files = MemoryFiles()
        files.files = ["t": Self.token, "open": Self.token, "short": "abc"]
        files.permissions = ["t": 0o600, "open": 0o644, "short": 0o600]
        func listener(
            _ text: String,
            _ token: String? = nil
        ) throws -> (listener: AdminListener?, problems: [Problem]) {
            let address = try #require(ServerAddress(text: text, allowsPortZero: false))
            return ConfigurationLoader.adminListener(at: address, tokenFile: token, files: files)
        }
        for (text, token) in [
            ("unix:/run/admin.sock", nil), ("10.0.0.5:9901", nil), ("127.0.0.1:9901", "t"),
        ] {
            let (listener, problems) = try listener(text, token)
            expectEqual(problems.map(\.text), [])
            #expect(listener?.token != nil || token == nil)
            // The gateway says what it does not serve.
            expectEqual(listener?.servesText, "probes, metrics, pages, calls")
        }
        for (text, token, found) in [
            ("127.0.0.1:9901", "absent", "absent:1: admin.token_file: found "),
            ("127.0.0.1:9901", "short", "short:1: admin.token_file: found no token in short"),
            ("127.0.0.1:9901", "open", "open:1: admin.token_file: found a key with mode 644"),
            ("unix:/run/admin.sock", "t", "t:1: admin.token_file: found it beside a Unix socket"),
            ("10.0.0.5:9901", "t", "t:1: admin.token_file: found it beside 10.0.0.5:9901, to"),
        ] {
            let (listener, problems) = try listener(text, token)
            #expect(listener == nil)
            #expect(problems.first?.text.hasPrefix(found) == true, "\(problems)")
        }
    }

    @Test func `names of the admin listener are read in lower case, each once, without a port`()
        throws
    {
        let loaded = Self.loaded("address: \"10.0.0.1:1\", hosts: [Gateway1.internal, gw]")
        let listener = try #require(loaded.configuration?.admin.first)
        expectEqual(listener.hosts, ["gateway1.internal", "gw"])
        for hosts in ["[gateway1:9901]", "[gw, GW]", "[10.0.0.1]", "[]", "gw", "[\"*.internal\"]"] {
            let refused = Self.loaded("address: \"127.0.0.1:1\", hosts: \(hosts)")
            let texts = refused.errors.map(\.text)
            expectEqual(texts.count, 1, "\(hosts)")
            expectEqual(texts.first?.hasPrefix("p.yaml:4: admin.hosts"), true, "\(texts)")
        }
    }

    @Test(arguments: [
        (
            "address: \"unix:/run/a.sock\", token_file: t",
            "found it beside a Unix socket, whose file says who may call; use none"
        ),
        (
            "address: \"127.0.0.1:1\", calls: any, token_file: t",
            "found it beside admin.calls: any, by which everybody may call; use one of the two"
        ),
        (
            "address: \"10.0.0.1:1\", token_file: t",
            "found it beside 10.0.0.1:1, to which the token would go in the clear; use a loopback "
                + "address, which is reached from elsewhere by ssh -L"
        ),
        ("address: \"127.0.0.1:1\", token_file: absent", "found no such file (absent)"),
    ])
    func `a token that would protect nothing is refused`(admin: String, problem: String) {
        let loaded = Self.loaded(admin)
        #expect(loaded.configuration == nil)
        let texts = loaded.errors.map(\.text)
        expectEqual(texts.count, 1)
        expectEqual(
            texts.first?.hasPrefix("p.yaml:4: admin.token_file: " + problem),
            true,
            "\(texts)"
        )
    }

    @Test(arguments: ["", "short", token + "\n\n", token + " " + token])
    func `a file without a token is refused, and the message tells nothing of it`(text: String) {
        let loaded = Self.loaded("address: \"127.0.0.1:1\", token_file: t", token: text)
        #expect(loaded.configuration == nil)
        expectEqual(
            loaded.errors.map(\.text),
            [
                """
                p.yaml:4: admin.token_file: found no token in t; use a file with one line of \
                32…256 visible characters: (umask 077; openssl rand -hex 32 > t)
                """
            ]
        )
    }

    @Test func `a token that every user may read is refused`() {
        let admin = "address: \"127.0.0.1:1\", token_file: t"
        let texts = Self.loaded(admin, mode: 0o644).errors.map(\.text)
        expectEqual(texts.count, 1)
        expectEqual(texts.first?.contains("use chmod o= t"), true)
    }
}
