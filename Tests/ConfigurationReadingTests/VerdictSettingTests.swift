import ConfigurationReading
import Cryptography
import Expectations
import Testing
import Verification

/// The section `verdict`.
@Suite struct VerdictSettingTests {
    private static func loaded(_ verdict: String, mode: UInt16 = 0o600) -> LoadedConfiguration {
        var files = MemoryFiles()
        files.files = [
            "p.yaml": """
            listen: [{ address: "127.0.0.1:0" }]
            origins: { o: { servers: ["o:80"] } }
            default: { origin: o, mode: off }
            verdict: \(verdict)
            """,
            "k.pem": P256PrivateKey().key.pem,
            "s.txt": String(repeating: "ab", count: 16) + "\n",
            "short": "secret",
        ]
        for name in ["k.pem", "s.txt", "short"] { files.permissions[name] = mode }
        return ConfigurationLoader.load("p.yaml", files: files)
    }

    @Test func `a key or a secret signs, for one audience`() throws {
        let loaded = Self.loaded("{ jwt: { key: k.pem, audience: orders, ttl: 2m, publish: on } }")
        expectEqual(loaded.problems.map(\.text), [])
        let settings = try #require(loaded.configuration?.verdict)
        #expect(settings.publishes)
        expectEqual(settings.claims.audience, "orders")
        expectEqual(settings.claims.issuer, "portcullis")
        expectEqual(settings.claims.ttl, 120)
        let secret = Self.loaded("{ jwt: { secret: s.txt, audience: orders, issuer: edge } }")
        expectEqual(secret.problems.map(\.text), [])
        expectEqual(secret.configuration?.verdict?.claims.issuer, "edge")
        expectEqual(secret.configuration?.verdict?.publishes, false)
    }

    @Test(arguments: [
        ("{}", "jwt"),
        ("{ jwt: { key: k.pem } }", "audience"),
        ("{ jwt: { audience: a } }", "neither a key nor a secret"),
        ("{ jwt: { key: k.pem, secret: s.txt, audience: a } }", "a key and a secret"),
        ("{ jwt: { key: s.txt, audience: a } }", "no private key on P-256"),
        ("{ jwt: { key: gone, audience: a } }", "no such file"),
        ("{ jwt: { secret: short, audience: a } }", "a secret of fewer than 32 bytes"),
        ("{ jwt: { secret: s.txt, audience: a, publish: on } }", "on beside a secret"),
        ("{ jwt: { key: k.pem, audience: a, ttl: 2h } }", "1s…1h"),
        ("{ jwt: { key: k.pem, audience: \"a b\" } }", "visible characters"),
    ])
    func `a section that can't be used is refused`(_ verdict: String, _ problem: String) {
        let loaded = Self.loaded(verdict)
        #expect(loaded.configuration == nil)
        let texts = loaded.problems.map(\.text)
        #expect(texts.contains { $0.contains(problem) }, "\(texts)")
    }

    @Test func `an origin may have an audience of its own, where verdicts are signed`() {
        func loaded(_ more: String, audience: String = "cash") -> LoadedConfiguration {
            var files = MemoryFiles()
            files.files = [
                "p.yaml": """
                listen: [{ address: "127.0.0.1:0" }]
                origins:
                  o: { servers: ["o:80"] }
                  till: { servers: ["t:80"], audience: \(audience) }
                default: { origin: o, mode: off }
                \(more)
                """, "s.txt": String(repeating: "ab", count: 16),
            ]
            files.permissions["s.txt"] = 0o600
            return ConfigurationLoader.load("p.yaml", files: files)
        }
        let verdict = "verdict: { jwt: { secret: s.txt, audience: orders } }"
        let signed = loaded(verdict)
        expectEqual(signed.problems.map(\.text), [])
        expectEqual(signed.configuration?.origins.map(\.audience), [nil, "cash"])
        for (loaded, problem) in [
            (loaded(""), "origins.till.audience: found it without signed verdicts"),
            (loaded(verdict, audience: "\"a b\""), "origins.till.audience: found \"a b\""),
        ] {
            #expect(loaded.configuration == nil)
            let texts = loaded.problems.map(\.text)
            #expect(texts.contains { $0.contains(problem) }, "\(texts)")
        }
    }

    @Test func `a key that others may read is warned of`() {
        let loaded = Self.loaded("{ jwt: { key: k.pem, audience: a } }", mode: 0o644)
        #expect(loaded.problems.contains { $0.text.contains("k.pem") })
    }
}
