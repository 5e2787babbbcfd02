import AppAttest
import ConfigurationReading
import Cryptography
import Encodings
import Expectations
import HTTPWire
import Proxy
import RequestBinding
import Rules
import Testing
import Verification

@Suite struct ConfigurationLoaderTests {
    /// What the benchmark writes.
    private static let benchmark = """
        {"listen":[{"address":"127.0.0.1:9810"}],"event_loops":1,
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
        expectEqual(loaded.problems.map(\.text), [])
        let configuration = try #require(loaded.configuration)
        expectEqual(configuration.loops, .fixed(1))
        expectEqual(configuration.log.access, .off)
        expectEqual(configuration.store, .sqlite(file: "/tmp/x.db"))
        #expect(configuration.admin.isEmpty)
        expectEqual(configuration.listeners.map(\.address.text), ["127.0.0.1:9810"])
        let rule = try #require(configuration.rules.rules.first)
        expectEqual(rule.mode, .enforce)
        expectEqual(rule.signing, .lines([.method, .target, .body], headers: []))
        expectEqual(rule.challenge, .none)
        #expect(!rule.sendsNextChallenge)
        expectEqual(rule.body, .streamed(limit: .gibibytes(64)))
        expectEqual(configuration.rules.fallback.mode, .off)
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
        expectEqual(configuration.listeners.map(\.http2), [.off, .on, .on, .off])
    }

    @Test func `a rule that says nothing else signs everything with a challenge`() throws {
        let rule = try rule("mode: enforce")
        expectEqual(rule.signing, .lines(.all, headers: []))
        expectEqual(rule.challenge, .required)
        expectEqual(rule.counter, .window(64))
        expectEqual(rule.body, .held(limit: .mebibytes(10), memory: .kibibytes(256)))
        expectEqual(rule.onError, .refuse)
        expectEqual(rule.unsupported, .refuse)
        expectEqual(rule.fields, .standard)
        #expect(rule.sendsNextChallenge)
        expectEqual(rule.rollout, Rollout(.fixed(.whole), salt: "a"))
        expectEqual(rule.origin, OriginIndex(0))
    }

    @Test func `content is held when it is what is signed`() throws {
        let rule = try rule("mode: enforce, sign: content")
        expectEqual(rule.signing, .content)
        expectEqual(rule.challenge, .none)
        expectEqual(rule.body, .held(limit: .mebibytes(10), memory: .kibibytes(256)))
        let small = try self.rule("mode: enforce, sign: content, body: { limit: 1KiB }")
        expectEqual(small.body, .held(limit: .kibibytes(1), memory: .kibibytes(1)))
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
        expectEqual(rule.origin, OriginIndex(1))
        let share = try #require(Share(percent: "0.5%"))
        expectEqual(rule.rollout, Rollout(.fixed(share), by: .address, salt: "s"))
        expectEqual(rule.signing, .lines(.all, headers: ["idempotency-key"]))
        expectEqual(rule.challenge, .optional)
        expectEqual(rule.counter, .window(64))
        expectEqual(rule.body, .held(limit: .mebibytes(2), memory: .mebibytes(1)))
        expectEqual(rule.accept, .assertionOrSession)
        expectEqual(rule.onError, .forward)
        expectEqual(rule.unsupported, .forward)
        expectEqual(rule.preflight, .forward)
        expectEqual(rule.fields.keyID, Array("x-key".utf8))
        expectEqual(rule.fields.assertion, FieldNames.standard.assertion)
        #expect(rule.sendsNextChallenge)
        expectEqual(rule.allowEncoded, [.encodedSlash, .encodedBackslash])
    }

    @Test func `a challenge inside signed content is required where it is pointed at`() throws {
        let rule = try rule("mode: enforce, sign: content, challenge: { json_pointer: /auth/c }")
        expectEqual(rule.challenge, .required)
        #expect(rule.challengeSource == .jsonPointer(try #require(JSONPointer("/auth/c"))))
    }

    @Test func `content that is read for its challenge is short, unless a rule says otherwise`()
        throws
    {
        let content = "mode: enforce, sign: content, challenge: { json_pointer: /auth/c }"
        let usual = try rule(content).body
        expectEqual(usual, .held(limit: .kibibytes(64), memory: .kibibytes(64)))
        let longer = try rule(content + ", body: { limit: 1MiB }").body
        expectEqual(longer, .held(limit: .mebibytes(1), memory: .kibibytes(256)))
        let plain = try rule("mode: enforce, sign: content").body
        expectEqual(plain, .held(limit: .mebibytes(10), memory: .kibibytes(256)))
    }

    @Test func `off is a text and nothing is asked`() throws {
        let rule = try rule("mode: off")
        expectEqual(rule.mode, .off)
        expectEqual(rule.challenge, .none)
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
        expectEqual(loaded.errors.map(\.text), [])
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
        expectEqual(configuration.loops, .perCore)
        #expect(configuration.apps.isEmpty && configuration.store == .none)
        expectEqual(configuration.timeouts, Timeouts())
        expectEqual(configuration.limits, ProxyLimits())
        expectEqual(configuration.challenges, ChallengeSettings())
        expectEqual(configuration.enrolment, EnrolmentAdmission.Settings())
        expectEqual(configuration.log, LogSettings())
        expectEqual(configuration.endpointsPath, "/.well-known/app-attest")
        expectEqual(configuration.spillFolder, "/tmp")
        expectEqual(configuration.origins[0].rules.connectTimeout, 3_000)
        expectEqual(configuration.origins[0].host, nil)
        expectEqual(configuration.limits.requestHead, HeadLimits())
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
        expectEqual(configuration.origins[0].host, "api.internal")
        expectEqual(configuration.origins[0].rules.connectTimeout, 250)
        expectEqual(configuration.origins[0].rules.firstByteTimeout, 300_000)
        expectEqual(configuration.timeouts.head, 10_000)
        expectEqual(configuration.timeouts.bodyMinimumRate, 0)
        expectEqual(configuration.limits.requestHead.headBytesMax, 32 << 10)
        expectEqual(configuration.limits.addressConnectionsMax, nil)
        expectEqual(configuration.limits.addressRequests, 100)
        expectEqual(configuration.limits.addressBurst, 300)
        expectEqual(configuration.limits.addressCalls, 50)
        expectEqual(configuration.limits.addressFailures, 60)
        expectEqual(configuration.enrolment.perSecond, 5)
        expectEqual(configuration.enrolment.burst, 200)
        let (from, to) = (UnixTime(seconds: 1_796_083_200), UnixTime(seconds: 1_796_947_200))
        let one = try #require(Share(percent: "1%"))
        expectEqual(
            configuration.enrolment.ramp,
            .growing(from: from, to: to, start: one, end: .whole)
        )
        expectEqual(configuration.challenges.capacity, 2048)
        expectEqual(configuration.trustedProxies.count, 2)
        expectEqual(configuration.addressSource, .forwarded)
        expectEqual(configuration.log.access, .file("logs/access.log"))
        expectEqual(configuration.endpointsPath, "/attest")
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
        expectEqual(loaded.problems.map(\.text), [])
        let configuration = try #require(loaded.configuration)
        expectEqual(configuration.rules.rules.map(\.id), ["a", "c", "b", "default"])
        expectEqual(
            configuration.rulePlaces.map(\.text),
            [
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
        expectEqual(
            texts,
            [
                "p.yaml:4: rules: found \"4.yml\"; use the ending .yaml",
                "p.yaml:4: rules: found \"5.YAML\"; use the ending .yaml",
                "rules/3.yaml:1: found a mapping; use a list of rules: - id: …",
                """
                rules/2.yaml:1: a.id: found a, which is already at rules/1.yaml:1; use \
                another id
                """,
                """
                rules/2.yaml:1: a.match: found only requests that meet the rule at \
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
        expectEqual(app.hash, AppIDHash(appID: "TEAM123456.com.example.mac"))
        expectEqual(app.environments, [.production, .development])
        expectEqual(app.clientDataHash, .raw)
        expectEqual(app.platform, .macos)
        expectEqual(app.builds.categories, [.appStore, .developerID])
        expectEqual(app.builds.bundleVersions, ["1314"])
        #expect(!app.builds.acceptsAbsentCategory)
        expectEqual(app.receipt, .required)
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
        expectEqual(app.testRoots.map(\.der), [root.der])
        expectEqual(app.environments, [.development])
        expectEqual(
            loaded.problems.map(\.text),
            [
                """
                p.yaml:5: warning: apps[0].environments: found a test app; \
                use it only where keys of ca.pem may pass for devices
                """
            ]
        )
    }
}
