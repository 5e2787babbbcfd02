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
            admin: { \(admin) }
            """,
            "t": token,
        ]
        files.permissions["t"] = mode
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
        let configuration = try #require(loaded.configuration)
        expectEqual(configuration.servesAdminCalls, areServed)
        expectEqual((configuration.operatorToken != nil), needsToken)
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
        let place = try #require(ConfigurationLoader.adminPlace("p.yaml", files: files))
        expectEqual(place.address.text, "127.0.0.1:9901")
        #expect(place.token != nil)
        #expect(ConfigurationLoader.adminPlace("absent.yaml", files: files) == nil)
    }

    @Test func `names of the admin listener are read in lower case, each once, without a port`()
        throws
    {
        let loaded = Self.loaded("address: \"10.0.0.1:1\", hosts: [Gateway1.internal, gw]")
        try expectEqual(#require(loaded.configuration).adminHosts, ["gateway1.internal", "gw"])
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
