import ConfigurationReading
import Cryptography
import Expectations
import RequestBinding
import Rules
import Testing

/// Denial, and whose keys pass where.
@Suite struct PolicyTests {
    private func configuration(_ rest: String) throws -> (GatewayConfiguration, [String]) {
        let loaded = load(
            """
            listen: [{ address: "127.0.0.1:0" }]
            origins: { shop: { servers: ["s:80"] } }
            store: { sqlite: p.db }
            apps:
              - { id: TEAM123456.shop, environments: [production] }
              - { id: TEAM123456.both, environments: [development, production] }
              - { id: TEAM123456.dev, environments: [development] }
            \(rest)
            """
        )
        expectEqual(loaded.errors.map(\.text), [])
        return (try #require(loaded.configuration), loaded.problems.map(\.text))
    }

    @Test func `a rule that denies has no origin, and lends the default's to others`() throws {
        let (found, problems) = try configuration(
            """
            default: { origin: shop, mode: deny }
            rules:
              - { id: a, match: { path: /a }, mode: deny }
              - { id: b, match: { path: /b }, mode: off }
            """
        )
        expectEqual(problems, [])
        expectEqual(found.rules.rules.map { $0.mode }, [.deny, .off, .deny])
        expectEqual(found.rules.rules.map { found.origin(of: $0)?.name }, [nil, "shop", nil])
    }

    @Test func `explain and test say that a denied request is answered 404`() throws {
        let (found, _) = try configuration(
            """
            default: { mode: deny }
            rules: [{ id: b, match: { path: /b }, mode: off, origin: shop }]
            """
        )
        let sketch = RequestSketch(method: "GET", url: "https://a.b/c")
        let explanation = Explanation(sketch, found, now: .init(seconds: 0))
        #expect(explanation.text.contains("  rule default (p.yaml:8): deny\n"))
        #expect(explanation.text.contains("  refused with 404: no-rule\n"))
        #expect(explanation.json.contains(#""refused": {"status": 404, "reason": "no-rule"}"#))
        let files = MemoryFiles(files: [
            "c.yaml": """
            - request: GET https://a.b/c
              expect: { rule: default, mode: deny, refused: no-rule, enforced: true }
            """
        ])
        let test = RouteTest("c.yaml", found, now: .init(seconds: 0), files: files)
        expectEqual(test.exitStatus, 0, "\(test.text)")
    }

    @Test func `a rule that names no apps admits production apps, others must be named`() throws {
        let (found, _) = try configuration(
            """
            default: { origin: shop, mode: enforce }
            rules:
              - { id: a, match: { path: /a }, mode: enforce, \
            apps: [TEAM123456.dev, TEAM123456.shop] }
            """
        )
        func admitted(_ rule: Rule) -> [String] { found.apps.filter(rule.apps.admits).map(\.id) }
        expectEqual(admitted(found.rules.rules[0]), ["TEAM123456.shop", "TEAM123456.dev"])
        expectEqual(admitted(found.rules.fallback), ["TEAM123456.shop", "TEAM123456.both"])
    }

    @Test func `check says which rules admit keys that are not of production`() throws {
        let loaded = load(
            """
            listen: [{ address: "127.0.0.1:0" }]
            origins: { shop: { servers: ["s:80"] } }
            store: { sqlite: p.db }
            apps:
              - { id: TEAM123456.both, environments: [development, production] }
              - { id: TEAM123456.ci, environments: [test], test_root: ca.pem }
            default: { origin: shop, mode: enforce }
            rules:
              - { id: a, match: { path: /a }, mode: enforce, apps: [TEAM123456.ci] }
            """,
            files: ["ca.pem": X509Certificate.testAuthority().pem]
        )
        let text = Check(loaded, file: "p.yaml").text
        #expect(
            text.contains(
                """
                    keys of TEAM123456.ci
                    admits test keys of TEAM123456.ci
                  default:
                """
            ),
            "\(text)"
        )
        #expect(text.contains("    admits development keys of TEAM123456.both\n"))
    }

    @Test func `one app at two hosts without the host signed is warned of`() throws {
        let rules = """
            default: { origin: shop, mode: deny }
            rules:
              - { id: a, match: { host: a.example }, mode: enforce }
              - { id: b, match: { host: b.example }, mode: enforce }
            """
        let (_, problems) = try configuration(rules)
        expectEqual(
            problems,
            [
                """
                p.yaml:11: warning: b.match.host: found b.example, where an assertion of \
                production apps for a.example (p.yaml:10) passes too; use headers: [host], \
                so that the host is signed, or different apps
                """
            ]
        )
        let signed = rules.replacing("mode: enforce", with: "mode: enforce, headers: [host]")
        try expectEqual(configuration(signed).1, [])
        let apart = rules.replacing(
            "b.example }, mode: enforce",
            with: "b.example }, mode: enforce, apps: [TEAM123456.dev]"
        )
        try expectEqual(configuration(apart).1, [])
        let named = rules.replacing(
            "b.example }, mode: enforce",
            with: "b.example }, mode: enforce, apps: [TEAM123456.both]"
        )
        try expectEqual(configuration(named).1.count, 1)
    }

    @Test func `a pattern of hosts is warned of by itself`() throws {
        let (_, problems) = try configuration(
            """
            default: { origin: shop, mode: deny }
            rules: [{ id: a, match: { host: "*.example" }, mode: enforce, apps: [TEAM123456.shop] }]
            """
        )
        expectEqual(
            problems.map { $0.prefix(117) },
            [
                """
                p.yaml:9: warning: a.match.host: found *.example, where an assertion of \
                TEAM123456.shop for one of these hosts passes
                """
            ]
        )
    }

    @Test func `fields that the client's value decides may be signed`() throws {
        let (found, problems) = try configuration(
            """
            default: { origin: shop, mode: enforce, headers: [host, authorization, x-a] }
            """
        )
        expectEqual(problems, [])
        #expect(found.rules.fallback.signing.coversBody)
    }

    @Test func `a field that overrides the request may be signed where the origin gets it`() {
        func errors(_ kept: String) -> [String] {
            load(
                """
                listen: [{ address: "127.0.0.1:0" }]
                origins: { shop: { servers: ["s:80"]\(kept) } }
                store: { sqlite: p.db }
                apps: [{ id: TEAM123456.shop, environments: [production] }]
                default: { origin: shop, mode: enforce, headers: [X-HTTP-Method-Override] }
                """
            ).errors.map(\.text)
        }
        expectEqual(errors(", keep_fields: [X-HTTP-Method-Override]"), [])
        expectEqual(errors("").count, 1)
        expectEqual(errors(", keep_fields: [CF-Connecting-IP]").count, 1)
    }

    /// With `cookie`, the jar changed between signing and sending: 403 signature-mismatch.
    @Test(arguments: [
        ("cookie", "the app's cookie jar changes by itself, and a proxy may cut"),
        ("User-Agent", "HTTP stacks write after the app has signed, and CDNs rewrite"),
        ("accept-encoding", "HTTP stacks write after the app has signed, and CDNs rewrite"),
        ("accept-language", "HTTP stacks write after the app has signed"),
        ("date", "an HTTP stack or a proxy may write after the app has signed"),
        ("if-none-match", "HTTP stacks write for their cache after the app has signed"),
    ])
    func `a signed field that is another one on arrival is warned of`(
        name: String,
        reason: String
    ) throws {
        let (found, problems) = try configuration(
            "default: { origin: shop, mode: enforce, headers: [x-a, \(name)] }"
        )
        expectEqual(
            problems,
            [
                """
                p.yaml:8: warning: default.headers[1]: found \(name.lowercased()), which \
                \(reason); use a field that the app sets itself, or the request is refused \
                as signature-mismatch
                """
            ]
        )
        expectEqual(
            found.rules.fallback.signing,
            .lines(.all, headers: ["x-a", name.lowercased()])
        )
    }

    @Test func `commands about keys need no rules`() throws {
        let main = """
            listen: [{ address: "127.0.0.1:0" }]
            origins: { shop: { servers: ["s:80"] } }
            store: { sqlite: p.db }
            apps: [{ id: TEAM123456.shop, environments: [production] }]
            default: { origin: shop, mode: enforce }
            rules: rules
            """
        let files = MemoryFiles(files: ["p.yaml": main, "rules/a.yaml": "- broken"])
        #expect(ConfigurationLoader.load("p.yaml", files: files).configuration == nil)
        let loaded = ConfigurationLoader.loadStore("p.yaml", files: files)
        expectEqual(loaded.problems.map(\.text), [])
        expectEqual(loaded.settings?.store, .sqlite(file: "p.db"))
        expectEqual(loaded.settings?.apps.map(\.id), ["TEAM123456.shop"])
        let wrong = MemoryFiles(files: ["p.yaml": main.replacing("sqlite", with: "sqlight")])
        #expect(ConfigurationLoader.loadStore("p.yaml", files: wrong).settings == nil)
    }
}
