import AppAttest
import ConfigurationReading
import Cryptography
import Encodings
import HTTPWire
import Proxy
import RequestBinding
import Rules
import Testing
import Verification

@Suite struct ConfigurationLoaderTests {
    /// What the benchmark writes.
    private static let benchmark = """
        {"listen":[{"address":"127.0.0.1:9810"}],"lanes":1,
         "origins":{"app":{"servers":["127.0.0.1:9800"]}},
         "apps":[{"id":"TEAM123456.com.example.bench","environments":["production"]}],
         "store":{"sqlite":"/tmp/x.db"},"log":{"access":"off"},
         "default":{"origin":"app","mode":"off"},
         "rules":[{"id":"bench","match":{"path":"/**"},"origin":"app","mode":"enforce",
                   "sign":["method","target","body"],"challenge":"none","counter":"strict",
                   "body":{"digest":"streamed","limit":"64GiB"}}]}
        """

    @Test func `JSON is YAML`() throws {
        let loaded = load(Self.benchmark)
        #expect(loaded.problems.map(\.text) == [])
        let configuration = try #require(loaded.configuration)
        #expect(configuration.loops == .fixed(1))
        #expect(configuration.log.access == .off)
        #expect(configuration.store == .sqlite(file: "/tmp/x.db"))
        #expect(configuration.admin == nil)
        #expect(configuration.listeners.map(\.address.text) == ["127.0.0.1:9810"])
        let rule = try #require(configuration.rules.rules.first)
        #expect(rule.mode == .enforce)
        #expect(rule.signing == .lines([.method, .target, .body], headers: []))
        #expect(rule.challenge == .none)
        #expect(!rule.sendsNextChallenge)
        #expect(rule.body == .streamed(limit: .gibibytes(64)))
        #expect(configuration.rules.fallback.mode == .off)
    }

    @Test func `under TLS clients may choose HTTP/2, unless the listener says off`() throws {
        let secured = "tls: { certificate: c.pem, key: k.pem }"
        let loaded = load(
            """
            listen:
              - { address: "127.0.0.1:1" }
              - { address: "127.0.0.1:2", http2: on }
              - { address: "127.0.0.1:3", \(secured) }
              - { address: "127.0.0.1:4", \(secured), http2: off }
            origins: { shop: { servers: ["127.0.0.1:8080"] } }
            default: { origin: shop, mode: off }
            """,
            files: ["c.pem": "-", "k.pem": "-"]
        )
        let configuration = try #require(loaded.configuration)
        #expect(configuration.listeners.map(\.http2) == [.off, .on, .on, .off])
    }

    @Test func `a rule that says nothing else signs everything with a challenge`() throws {
        let rule = try rule("mode: enforce")
        #expect(rule.signing == .lines(.all, headers: []))
        #expect(rule.challenge == .required)
        #expect(rule.counter == .window(64))
        #expect(rule.body == .held(limit: .mebibytes(10), memory: .kibibytes(256)))
        #expect(rule.onError == .refuse)
        #expect(rule.unsupported == .refuse)
        #expect(rule.fields == .standard)
        #expect(rule.sendsNextChallenge)
        #expect(rule.rollout == Rollout(.fixed(.whole), salt: "a"))
        #expect(rule.origin == OriginIndex(0))
    }

    @Test func `content is held when it is what is signed`() throws {
        let rule = try rule("mode: enforce, sign: content")
        #expect(rule.signing == .content)
        #expect(rule.challenge == .none)
        #expect(rule.body == .held(limit: .mebibytes(10), memory: .kibibytes(256)))
        let small = try self.rule("mode: enforce, sign: content, body: { limit: 1KiB }")
        #expect(small.body == .held(limit: .kibibytes(1), memory: .kibibytes(1)))
    }

    @Test func `every option of a rule arrives`() throws {
        let rule = try rule(
            """
            mode: enforce, origin: media, rollout: { percent: 0.5%, by: address, salt: s },
            sign: [method, target, body, challenge], headers: [Idempotency-Key],
            challenge: optional,
            counter: { window: 64 }, body: { digest: held, limit: 2MiB, memory: 1MiB },
            accept: [assertion, session], on_error: forward, unsupported: forward,
            preflight: forward, fields: { key_id: X-Key },
            next_challenge: true, allow_encoded: [slash, backslash]
            """
        )
        #expect(rule.origin == OriginIndex(1))
        let share = try #require(Share(percent: "0.5%"))
        #expect(rule.rollout == Rollout(.fixed(share), by: .address, salt: "s"))
        #expect(rule.signing == .lines(.all, headers: ["idempotency-key"]))
        #expect(rule.challenge == .optional)
        #expect(rule.counter == .window(64))
        #expect(rule.body == .held(limit: .mebibytes(2), memory: .mebibytes(1)))
        #expect(rule.accept == .assertionOrSession)
        #expect(rule.onError == .forward)
        #expect(rule.unsupported == .forward)
        #expect(rule.preflight == .forward)
        #expect(rule.fields.keyID == Array("x-key".utf8))
        #expect(rule.fields.assertion == FieldNames.standard.assertion)
        #expect(rule.sendsNextChallenge)
        #expect(rule.allowEncoded == [.encodedSlash, .encodedBackslash])
    }

    @Test func `a challenge inside signed content is required where it is pointed at`() throws {
        let rule = try rule("mode: enforce, sign: content, challenge: { json_pointer: /auth/c }")
        #expect(rule.challenge == .required)
        #expect(rule.challengeSource == .jsonPointer(try #require(JSONPointer("/auth/c"))))
    }

    @Test func `off is a text and nothing is asked`() throws {
        let rule = try rule("mode: off")
        #expect(rule.mode == .off)
        #expect(rule.challenge == .none)
        #expect(!rule.signing.coversBody)
    }

    private func rule(_ options: String) throws -> Rule {
        let loaded = load(
            """
            listen: [{ address: "127.0.0.1:0" }]
            origins: { shop: { servers: ["s:80"] }, media: { servers: ["unix:/run/m.sock"] } }
            apps: [{ id: TEAM123456.a, environments: [production] }]
            store: { sqlite: p.db }
            default: { origin: shop, mode: off }
            rules:
              - { id: a, match: { path: /a }, \(options) }
            """
        )
        #expect(loaded.errors.map(\.text) == [])
        return try #require(loaded.configuration?.rules.rules.first)
    }

    @Test func `defaults are those of the documentation`() throws {
        let configuration = try #require(
            load(
                """
                listen: [{ address: "[::1]:80" }]
                origins: { o: { servers: ["[2001:db8::1]:80"] } }
                default: { origin: o, mode: off }
                """
            ).configuration
        )
        #expect(configuration.loops == .perCore)
        #expect(configuration.apps.isEmpty && configuration.store == .none)
        #expect(configuration.timeouts == Timeouts())
        #expect(configuration.limits == ProxyLimits())
        #expect(configuration.challenges == ChallengeSettings())
        #expect(configuration.enrolment == EnrolmentAdmission.Settings())
        #expect(configuration.log == LogSettings())
        #expect(configuration.endpointsPath == "/.well-known/app-attest")
        #expect(configuration.spillFolder == "/tmp")
        #expect(configuration.origins[0].rules.connectTimeout == 3_000)
        #expect(configuration.origins[0].host == nil)
        #expect(configuration.limits.requestHead == HeadLimits())
    }

    @Test func `sections override their defaults one by one`() throws {
        let configuration = try #require(
            load(
                """
                listen: [{ address: "unix:/run/p.sock" }]
                origins: { o: { servers: ["o:80"], host: api.internal, first_byte_timeout: 5m } }
                default: { origin: o, mode: off }
                timeouts: { connect: 250ms, body_minimum_rate: 0B/s }
                limits:
                  head: 32KiB
                  interim_responses: 0
                  address_connections: off
                  address_requests: 100/s
                  address_burst: 300
                  address_calls: 50/s
                  address_failures: 60/m
                enrolment: { rate: 5/s, from: 2026-12-01, to: 2026-12-11, start: 1%, end: 100% }
                challenges: { enrolment_ttl: 2h, capacity: 2048 }
                trusted_proxies: [10.0.0.0/8, "::1"]
                client_address: forwarded
                log: { access: logs/access.log, level: debug }
                endpoints: /attest
                """
            ).configuration
        )
        #expect(configuration.origins[0].host == "api.internal")
        #expect(configuration.origins[0].rules.connectTimeout == 250)
        #expect(configuration.origins[0].rules.firstByteTimeout == 300_000)
        #expect(configuration.timeouts.head == 10_000)
        #expect(configuration.timeouts.bodyMinimumRate == 0)
        #expect(configuration.limits.requestHead.headBytesMax == 32 << 10)
        #expect(configuration.limits.addressConnectionsMax == nil)
        #expect(configuration.limits.addressRequests == 100)
        #expect(configuration.limits.addressBurst == 300)
        #expect(configuration.limits.addressCalls == 50)
        #expect(configuration.limits.addressFailures == 60)
        #expect(configuration.enrolment.perSecond == 5)
        #expect(configuration.enrolment.burst == 200)
        let (from, to) = (UnixTime(seconds: 1_796_083_200), UnixTime(seconds: 1_796_947_200))
        let one = try #require(Share(percent: "1%"))
        #expect(
            configuration.enrolment.ramp
                == .growing(from: from, to: to, start: one, end: .whole)
        )
        #expect(configuration.challenges.capacity == 2048)
        #expect(configuration.trustedProxies.count == 2)
        #expect(configuration.addressSource == .forwarded)
        #expect(configuration.log.access == .file("logs/access.log"))
        #expect(configuration.endpointsPath == "/attest")
    }

    private static let main = """
        listen: [{ address: "127.0.0.1:0" }]
        origins: { o: { servers: ["o:80"] } }
        default: { origin: o, mode: off }
        rules: rules/
        """

    @Test func `rule files are read in lexical order`() throws {
        var files = MemoryFiles()
        files.files["/etc/p/portcullis.yaml"] = Self.main
        files.files["/etc/p/rules/20-b.yaml"] = "- { id: b, match: { path: /b }, mode: off }"
        files.files["/etc/p/rules/100-a.yaml"] = """
            - { id: a, match: { path: /a }, mode: off }
            - { id: c, match: { path: /c }, mode: off }
            """
        files.files["/etc/p/rules/.hidden.yaml"] = "nonsense"
        files.files["/etc/p/rules/README.md"] = "nonsense"
        let loaded = ConfigurationLoader.load("/etc/p/portcullis.yaml", files: files)
        #expect(loaded.problems.map(\.text) == [])
        let configuration = try #require(loaded.configuration)
        #expect(configuration.rules.rules.map(\.id) == ["a", "c", "b", "default"])
        #expect(
            configuration.rulePlaces.map(\.text) == [
                "/etc/p/rules/100-a.yaml:1", "/etc/p/rules/100-a.yaml:2",
                "/etc/p/rules/20-b.yaml:1",
                "/etc/p/portcullis.yaml:3",
            ]
        )
    }

    @Test func `problems in rule files name the file, also across files`() {
        var files = MemoryFiles()
        files.files["p.yaml"] = Self.main
        files.files["rules/1.yaml"] = "- { id: a, match: { path: /** }, mode: off }"
        files.files["rules/2.yaml"] = "- { id: a, match: { path: /b }, mode: off }"
        files.files["rules/3.yaml"] = "id: c"
        files.files["rules/4.yml"] = "[]"
        files.files["rules/5.YAML"] = "[]"
        files.files["rules/notes.txt"] = "[]"
        let texts = ConfigurationLoader.load("p.yaml", files: files).errors.map(\.text)
        #expect(
            texts == [
                "p.yaml:4: rules: found \"4.yml\"; use the ending .yaml",
                "p.yaml:4: rules: found \"5.YAML\"; use the ending .yaml",
                "rules/3.yaml:1: found a mapping; use a list of rules: - id: …",
                """
                rules/2.yaml:1: [0].id: found a, which is already at rules/1.yaml:1; use \
                another id
                """,
                """
                rules/2.yaml:1: [0].match: found only requests that meet the rule at \
                rules/1.yaml:1 (a) before; use this rule before that one, or none
                """,
            ]
        )
    }

    @Test func `apps carry what their keys are asked`() throws {
        let app = try #require(
            load(
                """
                listen: [{ address: "127.0.0.1:0" }]
                origins: { o: { servers: ["o:80"] } }
                default: { origin: o, mode: enforce }
                store: { sqlite: p.db }
                apps:
                  - id: TEAM123456.com.example.mac
                    environments: [production, development]
                    client_data_hash: raw
                    platform: macos
                    validation_categories: [app-store, "6"]
                    bundle_versions: [1314]
                    missing_extensions: refuse
                    receipt: required
                """
            ).configuration?.apps.first
        )
        #expect(app.hash == AppIDHash(appID: "TEAM123456.com.example.mac"))
        #expect(app.environments == [.production, .development])
        #expect(app.clientDataHash == .raw)
        #expect(app.platform == .macos)
        #expect(app.builds.categories == [.appStore, .developerID])
        #expect(app.builds.bundleVersions == ["1314"])
        #expect(!app.builds.acceptsAbsentCategory)
        #expect(app.receipt == .required)
        #expect(!app.isTest)
    }

    @Test func `a test app trusts one more authority, and check says so`() throws {
        let root = X509Certificate.testAuthority()
        let text = """
            listen: [{ address: "127.0.0.1:0" }]
            origins: { o: { servers: ["o:80"] } }
            default: { origin: o, mode: enforce, apps: [TEAM123456.a] }
            store: { sqlite: p.db }
            apps: [{ id: TEAM123456.a, environments: [test, development], test_root: ca.pem }]
            """
        let loaded = load(text, files: ["ca.pem": root.pem])
        let app = try #require(loaded.configuration?.apps.first)
        #expect(app.isTest)
        #expect(app.testRoots.map(\.der) == [root.der])
        #expect(app.environments == [.development])
        #expect(
            loaded.problems.map(\.text) == [
                """
                p.yaml:5: warning: apps[0].environments: found a test app; \
                use it only where keys of ca.pem may pass for devices
                """
            ]
        )
    }
}
