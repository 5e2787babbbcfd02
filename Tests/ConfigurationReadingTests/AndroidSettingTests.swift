import ConfigurationReading
import Cryptography
import Expectations
import KeyAttestation
import Rules
import Testing

/// Android apps among `apps`.
@Suite struct AndroidSettingTests {
    private static let one = String(repeating: "0a", count: 32)
    private static let other = String(repeating: "0B", count: 32)

    private static func loaded(
        _ app: String,
        rule: String = "",
        more: String = ""
    ) -> LoadedConfiguration {
        var files = MemoryFiles()
        files.files = [
            "p.yaml": """
            listen: [{ address: "127.0.0.1:0" }]
            origins: { o: { servers: ["o:80"] } }
            store: { sqlite: p.db }
            apps:
              - { id: TEAM123456.shop, environments: [production] }
              - { \(app) }
            default: { origin: o, mode: off }
            rules: [{ id: a, match: { path: /a }, mode: enforce\(rule) }]
            \(more)
            """,
            "ca.pem": X509Certificate.testAuthority().pem,
            "k.p8": P256PrivateKey().key.pem,
        ]
        return ConfigurationLoader.load("p.yaml", files: files)
    }

    private static func app(_ more: String = "") throws -> AppPolicy {
        let loaded = loaded("android: com.example.shop, signers: [\(one)]" + more)
        expectEqual(loaded.problems.map(\.text), [])
        return try #require(loaded.configuration?.apps.last)
    }

    @Test func `an Android app has these defaults`() throws {
        let app = try Self.app()
        #expect(app.id == "com.example.shop" && app.attestedBy == .android)
        #expect(app.isProduction && !app.isTest)
        let settings = try #require(app.android).settings
        expectEqual(settings.signers, [[UInt8](repeating: 10, count: 32)])
        expectEqual(settings.phone, .standard)
        #expect(settings.versionMin == nil && settings.patchDaysMax == nil)
        #expect(settings.keyDaysMax == nil && settings.statusSecondsMax == 86_400)
        expectEqual(settings.onError, .refuse)
    }

    @Test func `every demand is taken`() throws {
        let app = try Self.app(
            """
            , versions: { min: 1200 }, level: strongbox, provisioning: rkp, boot: verified, \
            patch: { max_age: 365d }, max_key_age: 90d, status_max_age: 48h, on_error: refuse
            """
        )
        let demands = try #require(app.android)
        expectEqual(demands.settings.versionMin, 1200)
        expectEqual(demands.settings.keyDaysMax, 90)
        expectEqual(demands.settings.statusSecondsMax, 172_800)
        let expected = demands.expected(app.id, at: UnixTime(seconds: 1_790_000_000))
        expectEqual(expected.package, "com.example.shop")
        expectEqual(expected.policy.securityLevels, [.strongBox])
        expectEqual(expected.policy.provisioning, [.rkp])
        // 365 days before 2026-09-21.
        expectEqual(expected.policy.osPatchLevelMin, 202_509)
    }

    @Test func `both apps pass one rule, which may name them`() throws {
        let android = "android: com.example.shop, signers: [\(Self.one)]"
        for named in ["", ", apps: [TEAM123456.shop, com.example.shop]"] {
            let loaded = Self.loaded(android, rule: named)
            expectEqual(loaded.problems.map(\.text), [])
            let configuration = try #require(loaded.configuration)
            let rule = try #require(configuration.rules.rules.first)
            expectEqual(configuration.apps.filter(rule.apps.admits).count, 2)
        }
    }

    @Test(arguments: [
        (
            ", boot: { keys: [\(one)] }",
            """
            apps[1].boot.keys[0]: found boot keys, so that phones with systems of these makers may \
            enrol; use it only where you trust these systems as you trust a phone's maker
            """
        ),
        (
            ", status_max_age: 30d",
            "apps[1].status_max_age: found 30d, for which a revoked phone may enrol; use 7d at most"
        ),
        (
            ", on_error: forward",
            """
            apps[1].on_error: found forward, so that revoked phones may enrol while Google's list \
            is not known; use refuse
            """
        ),
        (
            ", environments: [test], test_root: ca.pem",
            """
            apps[1].environments: found a test app; use it only where keys of ca.pem may pass for \
            devices
            """
        ),
    ])
    func `check warns of each weakening`(more: String, warning: String) throws {
        let loaded = Self.loaded("android: com.example.shop, signers: [\(Self.one)]" + more)
        expectEqual(loaded.problems.map(\.text), ["p.yaml:6: warning: " + warning])
        #expect(loaded.configuration != nil)
    }

    @Test func `a test app trusts its authority and none of Google's`() throws {
        let more = ", environments: [test], test_root: ca.pem"
        let loaded = Self.loaded("android: com.example.shop, signers: [\(Self.one)]" + more)
        let app = try #require(loaded.configuration?.apps.last)
        #expect(app.isTest && !app.isProduction && app.environments.isEmpty)
        expectEqual(app.testRoots.count, 1)
    }

    @Test(arguments: [
        ("android: com.example.shop", "signers: found no such key; use signers: [SHA-256"),
        ("android: shop, signers: [\(one)]", "android: found \"shop\"; use a package name, as"),
        ("android: com.1a, signers: [\(one)]", "android: found \"com.1a\"; use a package name"),
        ("android: com..a, signers: [\(one)]", "android: found \"com..a\"; use a package name"),
        ("android: com.a, signers: []", "signers: found an empty list; use a list of SHA-256"),
        ("android: com.a, signers: [0a]", "signers[0]: found \"0a\"; use SHA-256 of signing"),
        ("android: com.a, signers: [\(one), \(one)]", "signers[1]: found \"0a0a0a0a"),
        (
            "android: com.a, signers: [\(one)], level: software",
            "level: found \"software\"; use tee | strongbox"
        ),
        (
            "android: com.a, signers: [\(one)], provisioning: factory",
            "provisioning: found \"factory\"; use any | rkp"
        ),
        (
            "android: com.a, signers: [\(one)], boot: any",
            "boot: found \"any\"; use verified | { keys: [verified boot keys, 64 hexadecimal"
        ),
        (
            "android: com.a, signers: [\(one)], boot: {}",
            "boot.keys: found no such key; use keys: [verified boot keys"
        ),
        (
            "android: com.a, signers: [\(one)], patch: { max_age: 7d }",
            "patch.max_age: found \"7d\"; use a time with its unit (ms, s, m, h, d), 31d…3650d"
        ),
        (
            "android: com.a, signers: [\(one)], versions: {}",
            "versions.min: found no such key; use min: the lowest version code"
        ),
        (
            "android: com.a, signers: [\(one)], platform: ios",
            "platform: found it in an Android app; use an entry of its own for the app of Apple's"
        ),
        (
            "android: com.a, signers: [\(one)], id: TEAM123456.b",
            "id: found it in an Android app; use an entry of its own for the app of Apple's"
        ),
        (
            "android: com.a, signers: [\(one)], environments: [development]",
            "environments[0]: found development in an Android app; use production, or test with"
        ),
        (
            "android: com.a, signers: [\(one)], test_root: ca.pem",
            "test_root: found it without the environment test; use environments: [test]"
        ),
        (
            "id: TEAM123456.b, environments: [production], level: tee",
            "level: found it in an app of Apple's systems; use an entry of its own for the Android"
        ),
    ])
    func `nonsense is refused with what is allowed`(app: String, problem: String) {
        let texts = Self.loaded(app).problems.map(\.text)
        #expect(texts.contains { $0.hasPrefix("p.yaml:6: apps[1].\(problem)") }, "\(texts)")
    }

    @Test func `a rule that asks Apple about devices admits no Android app`() {
        let texts = Self.loaded(
            "android: com.example.shop, signers: [\(Self.other)]",
            rule: ", device: { refuse_if: { bit0: true } }",
            more: "apple: { keys: [{ team: TEAM123456, key_id: ABC123DEFG, file: k.p8 }] }"
        ).problems.map(\.text)
        expectEqual(
            texts,
            [
                """
                p.yaml:8: a.device: found it for com.example.shop, an Android app, of whose \
                phones Apple knows no bits; use a rule of its own for the Android app
                """
            ]
        )
    }

    @Test func `a metric of phones needs no receipts of Apple's`() {
        func texts(_ apps: String) -> [String] {
            Self.loaded(
                "android: com.example.shop, signers: [\(Self.one)]",
                rule: ", risk: { max: 64 }, apps: [\(apps)]"
            ).problems.map(\.text)
        }
        expectEqual(texts("com.example.shop"), [])
        expectEqual(texts("TEAM123456.shop").count, 1)
    }
}
