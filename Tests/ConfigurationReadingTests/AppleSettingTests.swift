import ConfigurationReading
import Cryptography
import Expectations
import KeyStore
import Parties
import Testing

/// The section `apple`.
@Suite struct AppleSettingTests {
    private static let p8 = P256PrivateKey().key.pem

    private static func loaded(
        _ apple: String,
        p8: String = p8,
        mode: UInt16 = 0o600
    ) -> LoadedConfiguration {
        var files = MemoryFiles()
        files.files = [
            "p.yaml": """
            listen: [{ address: "127.0.0.1:0" }]
            origins: { o: { servers: ["o:80"] } }
            default: { origin: o, mode: off }
            apple: \(apple)
            """,
            "k.p8": p8,
        ]
        files.permissions["k.p8"] = mode
        return ConfigurationLoader.load("p.yaml", files: files)
    }

    private static let one = "{ keys: [{ team: TEAM123456, key_id: ABC123DEFG, file: k.p8 }] }"

    @Test func `a key is read with its team and its id`() throws {
        let loaded = Self.loaded(Self.one)
        expectEqual(loaded.problems.map(\.text), [])
        let settings = try #require(loaded.configuration?.apple)
        expectEqual(settings.credentials.map(\.teamID), ["TEAM123456"])
        expectEqual(settings.credentials.map(\.keyID), ["ABC123DEFG"])
    }

    @Test func `without the section nothing is asked, and Apple's hosts are known`() throws {
        let configuration = load(
            """
            listen: [{ address: "127.0.0.1:0" }]
            origins: { o: { servers: ["o:80"] } }
            default: { origin: o, mode: off }
            """
        ).configuration
        let settings = try #require(configuration?.apple)
        #expect(settings.credentials.isEmpty)
        // Apple's documentation has these; some articles swap the two of DeviceCheck.
        expectEqual(
            settings.hosts,
            [
                AppleHost(.receipts, .production): "https://data.appattest.apple.com",
                AppleHost(.receipts, .development): "https://data-development.appattest.apple.com",
                AppleHost(.deviceCheck, .production): "https://api.devicecheck.apple.com",
                AppleHost(.deviceCheck, .development):
                    "https://api.development.devicecheck.apple.com",
            ]
        )
    }

    @Test func `every value is taken`() throws {
        let loaded = Self.loaded(
            """
            { authorization: bearer, timeout: 3s, concurrent: 2, queue: 5, rate: 7/s,
              proxy: "http://proxy.internal:3128",
              hosts: { receipts: "https://localhost:4443", receipts_test: "https://[::1]:4443",
                       device_check_development: "https://stand-in.internal" } }
            """
        )
        expectEqual(loaded.problems.map(\.text), [])
        let settings = try #require(loaded.configuration?.apple)
        expectEqual(settings.authorization, .bearer)
        expectEqual(settings.timeout, .seconds(3))
        expectEqual(settings.concurrent, 2)
        expectEqual(settings.queue, 5)
        expectEqual(settings.perSecond, 7)
        expectEqual(settings.proxy, "http://proxy.internal:3128")
        expectEqual(settings.hosts[AppleHost(.receipts, .production)], "https://localhost:4443")
        expectEqual(settings.hosts[AppleHost(.receipts, .test)], "https://[::1]:4443")
        expectEqual(
            settings.hosts[AppleHost(.deviceCheck, .development)],
            "https://stand-in.internal"
        )
    }

    @Test(
        arguments: [
            ("renew: maybe", #"renew: found "maybe"; use true | false"#),
            ("renew: 1", #"renew: found "1"; use true | false"#),
            ("rate: 0/s", #"rate: found "0/s"; use calls a second, 1/s…1000/s"#),
            ("rate: 1001/s", #"rate: found "1001/s"; use calls a second, 1/s…1000/s"#),
            ("rate: 5", #"rate: found "5" without its unit; use 5/s"#),
            ("rate: -1/s", #"rate: found "-1/s"; use calls a second, 1/s…1000/s"#),
            ("rate: 5/m", #"rate: found "5/m"; use calls a second, 1/s…1000/s"#),
            ("rate: [5/s]", "rate: found a list; use calls a second, 1/s…1000/s"),
            (
                "every: 23h",
                #"every: found "23h"; use a time with its unit (ms, s, m, h, d), 1d…60d"#
            ),
            (
                "every: 61d",
                #"every: found "61d"; use a time with its unit (ms, s, m, h, d), 1d…60d"#
            ),
            ("every: 7", #"every: found "7"; use a time with its unit (ms, s, m, h, d), 1d…60d"#),
            ("every: 1w", #"every: found "1w"; use a time with its unit (ms, s, m, h, d), 1d…60d"#),
        ]
    )
    func `a bad value of apple.receipts is named with its line, what it is and what may be`(
        setting: String,
        text: String
    ) {
        let loaded = Self.loaded("\n  concurrent: 2\n  receipts:\n    \(setting)")
        #expect(loaded.configuration == nil)
        expectEqual(loaded.problems.map(\.text), ["p.yaml:7: apple.receipts.\(text)"])
    }

    @Test func `an unknown key of apple.receipts is named beside those that there are`() {
        let problem = Self.loaded("{ receipts: { renews: true } }").problems.map(\.text)
        expectEqual(problem.count, 1)
        #expect(problem[0].hasPrefix("p.yaml:4: apple.receipts.renews: found an unknown"))
        #expect(problem[0].contains("renew"))
    }

    @Test func `the values of apple.receipts are taken up to their bounds`() throws {
        for (text, perSecond, days) in [("1/s", 1, 1), ("1000/s", 1_000, 60)] {
            let loaded = Self.loaded(
                "{ receipts: { renew: false, rate: \(text), every: \(days)d } }"
            )
            expectEqual(loaded.problems.map(\.text), [])
            let receipts = try #require(loaded.configuration?.apple.receipts)
            #expect(!receipts.renews && receipts.perSecond == perSecond)
            expectEqual(receipts.every, .seconds(days * 86_400))
        }
    }

    @Test(arguments: [0o644, 0o604, 0o602, 0o777] as [UInt16])
    func `a key that every user of the host may read is refused`(_ mode: UInt16) {
        let problems = Self.loaded(Self.one, mode: mode).problems.map(\.text)
        expectEqual(
            problems,
            [
                """
                p.yaml:4: apple.keys[0].file: found a key with mode \(String(mode, radix: 8)), \
                open to every user of this host; use chmod o= k.p8
                """
            ]
        )
    }

    @Test(arguments: [
        ("", "a file without a private key in PEM"),
        ("-----BEGIN ENCRYPTED PRIVATE KEY-----", "a private key with a passphrase"),
        ("-----BEGIN EC PRIVATE KEY-----", "a private key that is not in PKCS #8"),
        (
            ECPrivateKey(generating: .p384).pem,
            "a private key that is damaged, or not an EC key on P-256"
        ),
    ])
    func `another key than Apple makes is refused, and what it is is said`(
        _ p8: String,
        _ found: String
    ) {
        expectEqual(Self.loaded(Self.one, p8: p8).errors.map(\.found), [found + " (k.p8)"])
    }

    @Test(arguments: [
        (
            "{ keys: [{ team: TEAM123456, key_id: ABC123DEFG, file: none.p8 }] }",
            ["apple.keys[0].file: found no such file (none.p8)"]
        ),
        ("{ keys: [{ team: team, key_id: ABC123DEFG, file: k.p8 }] }", ["apple.keys[0].team: "]),
        ("{ keys: [{ team: TEAM123456, file: k.p8 }] }", ["apple.keys[0].key_id: "]),
        (
            """
            { keys: [{ team: TEAM123456, key_id: ABC123DEFG, file: k.p8 },
                     { team: TEAM123456, key_id: GFED321CBA, file: k.p8 }] }
            """,
            ["apple.keys[1].team: found TEAM123456, which is already at p.yaml:4"]
        ),
        ("{ hosts: { receipts: \"http://localhost\" } }", ["apple.hosts.receipts: "]),
        ("{ hosts: { receipts: \"https://localhost/\" } }", ["apple.hosts.receipts: "]),
        ("{ hosts: { receipts: \"https://user@host\" } }", ["apple.hosts.receipts: "]),
        (
            "{ hosts: { receipts: \"https://data-development.appattest.apple.com\" } }",
            ["apple.hosts.receipts: found https://data-development.appattest.apple.com, which is"]
        ),
        (
            "{ hosts: { receipt: \"https://localhost\" } }",
            ["apple.hosts.receipt: found an unknown"]
        ),
        ("{ roots: none.pem }", ["apple.roots: found no such file (none.pem)"]),
        ("{ roots: k.p8 }", ["apple.roots: found no certificate in k.p8"]),
        ("{ proxy: \"proxy:3128\" }", ["apple.proxy: "]),
        ("{ rate: 0/s }", ["apple.rate: "]), ("{ rate: 5 }", ["apple.rate: "]),
        ("{ concurrent: 0 }", ["apple.concurrent: "]), ("{ queue: 0 }", ["apple.queue: "]),
        ("{ timeout: 1h }", ["apple.timeout: "]), ("{ authorization: token }", ["apple.auth"]),
        ("{ receipts: yes }", ["apple.receipts: "]), ("{ keys: k.p8 }", ["apple.keys: "]),
        ("{ keys: [k.p8] }", ["apple.keys[0]: "]), ("{ hosts: [a] }", ["apple.hosts: "]),
        ("{ rate: 1001/s }", ["apple.rate: "]), ("{ concurrent: 65 }", ["apple.concurrent: "]),
        ("{ queue: 100001 }", ["apple.queue: "]), ("{ timeout: 99ms }", ["apple.timeout: "]),
        ("{ roots: \"\" }", ["apple.roots: "]), ("{ device_check: { } }", ["apple.device_check: "]),
        (
            "{ keys: [{ team: TEAM123456, key_id: abc, file: \"\", kid: 1 }] }",
            ["apple.keys[0].kid: ", "apple.keys[0].key_id: ", "apple.keys[0].file: "]
        ),
    ])
    func `what can't be meant is an error at its place`(_ apple: String, _ texts: [String]) {
        let loaded = Self.loaded(apple)
        #expect(loaded.configuration == nil)
        expectEqual(loaded.errors.count, texts.count, "\(loaded.problems.map(\.text))")
        for (problem, text) in zip(loaded.errors, texts) {
            #expect(problem.text.contains(text), "\(problem.text)")
        }
    }
}
