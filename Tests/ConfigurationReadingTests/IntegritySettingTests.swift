import AppleStandIn
import ConfigurationReading
import Expectations
import Parties
import Rules
import SoftwareAuthenticator
import Testing

/// Proofs of `kind: play-integrity`, and what rules and apps ask of them.
@Suite struct IntegritySettingTests {
    private static let console = SoftwarePlayConsole()
    private static let account = try? StandInAccount(tokenURL: "https://localhost/token").json

    private static func loaded(
        _ proof: String?,
        rule: String = "integrity: { device: [device] }",
        app: String = "",
        file: String? = nil,
        mode: UInt16 = 0o600
    ) -> LoadedConfiguration {
        var files = MemoryFiles()
        let signer = String(repeating: "07", count: 32)
        files.files = [
            "p.yaml": """
            listen: [{ address: "127.0.0.1:0" }]
            origins: { o: { servers: ["o:80"] } }
            store: { sqlite: k.db }
            apps: [{ android: com.example.shop, signers: ["\(signer)"]\(app) }]
            default: { origin: o, mode: off }
            \(proof.map { "proofs: { play: { kind: play-integrity, \($0) } }" } ?? "")
            rules:
              - id: r
                match: { path: /r }
                mode: enforce
                \(rule)
            """,
            "a": file ?? account ?? "", "d": console.decryptionKey, "v": console.verificationKey,
        ]
        for name in ["a", "d", "v"] { files.permissions[name] = mode }
        return ConfigurationLoader.load("p.yaml", files: files)
    }

    private static func problems(_ loaded: LoadedConfiguration) -> String {
        loaded.problems.map(\.text).joined(separator: "\n")
    }

    @Test func `a service account has defaults for all else`() throws {
        let loaded = Self.loaded("service_account: a")
        expectEqual(loaded.problems.map(\.text), [])
        let proof = try #require(loaded.configuration?.proofs.first)
        let settings = try #require(proof.settings as? IntegritySettings)
        let service = try #require(settings.service)
        expectEqual(proof.proof.place, .field(Array("app-attest-integrity-token".utf8)))
        #expect(settings.ageMax == 300 && service.url == IntegrityService.address)
        #expect(service.calls.timeout == .seconds(3) && service.calls.perSecond == 50)
        let rule = try #require(loaded.configuration?.rules.rules.first?.integrity)
        #expect(rule.device == [.device] && rule.action == .mark)
        #expect(!rule.needsLicense && rule.activityMax == nil)
    }

    @Test func `every value is taken`() throws {
        let loaded = Self.loaded(
            """
            service_account: a, url: "https://localhost:1", max_token_age: 1m,
            timeout: 1s, rate: 7/s, concurrent: 2, queue: 3, proxy: "http://p:1",
            field: X-Play, on_error: forward
            """,
            rule: """
                integrity: { proof: play, device: [basic, virtual], licensed: true, \
                recognized: true, activity_max: 3, play_protect: [no-issues, no-data], \
                action: mark }
                """,
            app: ", integrity: { licensed: true, action: refuse }"
        )
        expectEqual(loaded.problems.map(\.text), [])
        let configuration = try #require(loaded.configuration)
        let settings = try #require(configuration.proofs[0].settings as? IntegritySettings)
        let service = try #require(settings.service)
        #expect(settings.ageMax == 60 && service.url == "https://localhost:1")
        let calls = service.calls
        #expect(calls.perSecond == 7 && calls.concurrent == 2 && calls.queue == 3)
        #expect(calls.proxy == "http://p:1" && calls.timeout == .seconds(1))
        let rule = try #require(configuration.rules.rules.first?.integrity)
        #expect(rule.device == [.basic, .virtual] && rule.needsLicense && rule.needsRecognition)
        #expect(rule.activityMax == 3 && rule.playProtect == [.noIssues, .noData])
        expectEqual(rule.proof.onError, .forward)
        let enrolling = configuration.apps[0].android?.settings.integrity
        #expect(enrolling?.needsLicense == true && enrolling?.action == .refuse)
        #expect(
            configuration.rules.rules[0].demandLines.contains {
                $0.contains("device basic or virtual, recognized, licensed, activity at most 3")
            }
        )
    }

    @Test func `the console's keys are read from their files`() throws {
        let loaded = Self.loaded("decryption_key: d, verification_key: v")
        expectEqual(loaded.problems.map(\.text), [])
        let settings = loaded.configuration?.proofs.first?.settings
        expectEqual(try #require(settings as? IntegritySettings).service, nil)
    }

    @Test(arguments: [
        ("max_token_age: 1m", "neither service_account nor decryption_key"),
        ("service_account: a, decryption_key: d", "service_account and decryption_key"),
        ("decryption_key: d", "no such key"), ("verification_key: v", "no such key"),
        ("decryption_key: d, verification_key: v, rate: 5/s", "where no service is asked"),
        ("decryption_key: v, verification_key: d", "another text in v"),
        ("decryption_key: d, verification_key: none", "no such file"),
        ("service_account: d", "no key of a service account in d"),
        ("service_account: a, max_token_age: 1s", "max_token_age"),
        ("service_account: a, url: \"http://x\"", "url"),
        ("service_account: a, service: turnstile", "kind: siteverify, or no service"),
        ("service_account: a, issuer: x", "kind: jwt, or no issuer"),
    ])
    func `a fault has its place and what is allowed`(_ proof: String, _ part: String) {
        let problems = Self.problems(Self.loaded(proof))
        #expect(problems.contains(part), "\(problems)")
    }

    @Test(arguments: [
        ("accept: [play]", "say nothing without the signature of a key"),
        ("also: [play]", "integrity: { proof: play }"),
        ("unsupported: { require: play }", "integrity: { proof: play }"),
        ("integrity: { proof: other }", "no proof of kind: play-integrity"),
        ("integrity: { device: [phone] }", "basic, device, strong, virtual"),
        ("integrity: { activity_max: 5 }", "1…4"),
        ("integrity: {}\n    accept: [assertion, session]", "bound to no such token"),
        ("integrity: { play_protect: [no-issues], action: refuse }", "one good phone in seven"),
        ("sign: [method]", "a rule's or an app's integrity, or no such proof"),
    ])
    func `a rule asks where a token means something`(_ rule: String, _ part: String) {
        let problems = Self.problems(Self.loaded("service_account: a", rule: rule))
        #expect(problems.contains(part), "\(problems)")
    }

    @Test func `without a proof of the kind the next step is named`() {
        let problems = Self.problems(Self.loaded(nil))
        #expect(problems.contains("it without a proof of kind: play-integrity"), "\(problems)")
        #expect(problems.contains("service_account: play.json"))
    }

    @Test func `a key file that others may read is reported`() {
        let problems = Self.problems(Self.loaded("service_account: a", mode: 0o644))
        #expect(problems.contains("chmod"), "\(problems)")
    }
}
