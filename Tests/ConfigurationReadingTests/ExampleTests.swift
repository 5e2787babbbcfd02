import ConfigurationReading
import Cryptography
import Expectations
import Foundation
import Proxy
import Rules
import Testing
import Tokens
import Verification

@Suite struct ExampleTests {
    private static let examples = Repository.folder + "/rules/examples"

    @Test func `the complete configuration loads and has every default it claims`() throws {
        let loaded = ConfigurationLoader.load(Self.examples + "/portcullis.yaml")
        expectEqual(loaded.problems.map(\.text), [])
        let configuration = try #require(loaded.configuration)
        expectEqual(configuration.timeouts, Timeouts())
        // Its spill_folder may be in memory, and it states all sizes.
        var limits = ProxyLimits()
        limits.filesAreMemory = configuration.limits.filesAreMemory
        expectEqual(configuration.limits, limits)
        expectEqual(configuration.challenges, ChallengeSettings())
        expectEqual(configuration.sessions, SessionTable.Limits())
        expectEqual(configuration.enrolment, EnrolmentAdmission.Settings())
        expectEqual(configuration.log, LogSettings())
        expectEqual(configuration.process, ProcessSettings())
        expectEqual(configuration.rules.rules.count, 5)
        let check = Check(loaded, file: "portcullis.yaml")
        expectEqual(check.exitStatus, 0)
        #expect(!check.text.contains("no admin listener that serves calls"))
    }

    /// Such lines were once joined into prose.
    @Test func `what the complete configuration has in comments loads as well`() throws {
        let text = try String(contentsOfFile: Self.examples + "/portcullis.yaml", encoding: .utf8)
        var count = 0
        // Of the two places for keys, a configuration has one.
        let every = text.split(separator: "\n").filter { !$0.hasPrefix("  sqlite:") }
        let lines = every.map { line in
            let options = line.hasPrefix("#  ") ? line.dropFirst() : line
            let inner = options.replacing("    # bundle_versions", with: "    bundle_versions")
            if inner != line { count += 1 }
            return String(inner).replacing("rules: ..", with: "rules: []")
                .replacing("${PWD}", with: "/run")
        }
        expectEqual(count, 56)
        let loaded = load(
            lines.joined(separator: "\n"),
            files: [
                "tls/fullchain.pem": "-", "tls/key.pem": "-",
                "tls/other.pem": "-", "tls/other.key": "-", "tls/origins.pem": "-",
                "tls/clients.pem": "-", "tls/lists": "-",
                "operators.token": String(repeating: "0", count: 64),
                "support.token": String(repeating: "1", count: 64),
                "test-ca.pem": X509Certificate.testAuthority().pem,
            ]
        )
        expectEqual(loaded.errors.map(\.text), [])
        let configuration = try #require(loaded.configuration)
        expectEqual(configuration.listeners.count, 3)
        expectEqual(configuration.apps.count, 3)
        expectEqual(configuration.process.user, "portcullis")
    }

    @Test func `the cases pass against it`() throws {
        let configuration = try #require(
            ConfigurationLoader.load(Self.examples + "/portcullis.yaml").configuration
        )
        let result = RouteTest(
            Self.examples + "/cases.yaml",
            configuration,
            now: UnixTime(seconds: 1_797_292_800)
        )
        expectEqual(result.exitStatus, 0, "\(result.text)")
    }

    @Test(arguments: [
        "orders", "uploads", "legacy-content", "challenge-only", "observe-first", "websocket",
        "health", "sessions", "tokens",
    ])
    func `an example loads without a word`(name: String) throws {
        let rules = try String(contentsOfFile: "\(Self.examples)/\(name).yaml", encoding: .utf8)
        let main = """
            listen: [{ address: "127.0.0.1:0" }]
            origins: { shop: { servers: ["s:80"] }, media: { servers: ["m:80"] } }
            apps: [{ id: TEAM123456.a, environments: [production] }]
            store: { sqlite: p.db }
            default: { origin: shop, mode: observe }
            rules: rules
            \(name == "tokens" ? Self.proofs : "")
            """
        let loaded = load(main, files: ["rules/\(name).yaml": rules])
        expectEqual(loaded.problems.map(\.text), [])
        #expect(loaded.configuration != nil)
    }

    /// What the example of tokens names.
    private static let proofs = """
        proofs:
          app-check: { field: X-Firebase-AppCheck, kind: jwt, issuer: i, audience: a, \
        algorithms: [RS256], keys: { url: "https://issuer.example/keys" } }
          access: { field: Authorization, kind: jwt, issuer: i, audience: a, \
        algorithms: [ES256], keys: { url: "https://issuer.example/keys" } }
        """

    @Test func `no example is left out`() throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: Self.examples)
        expectEqual(names.filter { $0.hasSuffix(".yaml") }.count, 11)
    }
}
