import ConfigurationReading
import Expectations
import Testing

/// What `check` says of the ways past an enforced rule.
@Suite struct CoverageTests {
    /// The lines behind the rules, those of one configuration with some options on line 4 and on.
    private func coverage(_ rest: String) -> [String] {
        let loaded = load(
            """
            listen: [{ address: "127.0.0.1:0" }]
            store: { sqlite: p.db }
            apps: [{ id: TEAM123456.a, environments: [production] }]
            \(rest)
            """
        )
        expectEqual(loaded.problems.map(\.text), [])
        let lines = Check(loaded, file: "p.yaml").text.split(separator: "\n").map(String.init)
        return Array(lines.drop { !$0.hasPrefix("coverage") }.dropFirst())
    }

    private static let twoOrigins =
        "origins: { shop: { servers: [\"s:80\"] }, media: { servers: [\"m:80\"] } }"

    @Test func `a default that forwards is a way past every enforced rule of its origin`() {
        let lines = coverage(
            """
            \(Self.twoOrigins)
            default: { origin: shop, mode: off }
            rules:
              - { id: a, match: { host: a.b, method: POST, path: /a }, mode: enforce }
              - { id: b, match: { path: /b/** }, mode: enforce }
              - { id: m, match: { path: /m }, mode: enforce, origin: media }
            """
        )
        expectEqual(
            lines,
            [
                "coverage what reaches an enforced rule's origin without an enforced verdict",
                "  a",
                """
                    p.yaml:5: warning: default.mode: found off for any other host, or none \
                (HTTP/1.0); any other method; any other path; use enforce or deny
                """,
                "  b",
                """
                    p.yaml:5: warning: default.mode: found off for any other path; use enforce \
                or deny
                """,
                "p.yaml: ok, 2 warnings",
            ]
        )
    }

    private static let proofs = """
        proofs:
          check:
            kind: jwt
            field: X-Check
            keys: { url: "https://a.example/keys" }
            issuer: https://a.example
            audience: shop
            algorithms: [ES256]
        """

    @Test func `a rule that takes tokens is a way past one that asks for a signature`() {
        let lines = coverage(
            """
            origins: { shop: { servers: ["s:80"] } }
            default: { origin: shop, mode: deny }
            \(Self.proofs)
            rules:
              - { id: pay, match: { method: POST, path: /v1/** }, mode: enforce }
              - { id: read, match: { path: /v1/** }, mode: enforce, accept: [check] }
              - { id: also, match: { method: POST, path: /w/** }, mode: enforce, also: [check] }
              - { id: w, match: { path: /w/** }, mode: enforce }
            """
        )
        expectEqual(
            lines,
            [
                "coverage what reaches an enforced rule's origin without an enforced verdict",
                "  pay",
                """
                    p.yaml:16: warning: read.accept: found check without a signature, for any \
                other method; use assertion alone where its requests matter as those of \
                pay
                """,
                "  also",
                """
                    p.yaml:18: warning: w.also: found no check for any other method; use what \
                also asks for where its requests matter as much
                """,
                "p.yaml: ok, 2 warnings",
            ]
        )
    }

    /// Two rules that observe decide alike, until one of them enforces.
    @Test func `spellings are named although the rule that they meet observes, too`() {
        let lines = coverage(
            """
            origins: { shop: { servers: ["s:80"] } }
            default: { origin: shop, mode: off }
            rules:
              - { id: a, match: { path: /v1/a }, mode: observe }
              - { id: rest, match: { path: /** }, mode: observe }
            """
        )
        let named = lines.filter { $0.contains("path-ambiguous once it enforces") }
        #expect(named.count == 1 && named[0].contains("a.match: found /V1/A, //v1/a, "), "\(lines)")
    }

    @Test(arguments: [
        ("mode: observe", ", and answers 400 path-ambiguous once it enforces, "),
        (
            "mode: enforce, rollout: { percent: 5% }",
            " for clients outside the rollout, and answers 400 path-ambiguous once it enforces "
                + "for all, "
        ),
        ("mode: off", nil), ("mode: enforce", nil),
    ])
    func `spellings that a rule will refuse are named while it forwards them`(
        mode: String,
        part: String?
    ) {
        let lines = coverage(
            """
            origins: { shop: { servers: ["s:80"] } }
            default: { origin: shop, mode: off }
            rules:
              - { id: a, match: { path: /v1/a }, \(mode) }
            """
        )
        let found = lines.first { $0.contains("a.match: found /V1/A, //v1/a, ") }
        expectEqual(found != nil, part != nil, "\(lines)")
        expectEqual(
            found?.contains("which it forwards now" + (part ?? "")) ?? true,
            true,
            "\(lines)"
        )
    }

    @Test func `spellings that an origin is said not to read are a way past the rule`() {
        let lines = coverage(
            """
            origins: { shop: { servers: ["s:80"], paths: { script_prefix: none, format: kept } } }
            default: { origin: shop, mode: off }
            rules:
              - { id: a, match: { method: POST, path: /v1/orders }, mode: enforce }
              - { id: b, match: { path: /b/** }, mode: enforce }
            """
        )
        let use =
            "use enforce or deny, or any for script_prefix, format under the origin's paths "
            + "unless it surely does not read them so"
        #expect(
            lines.contains(
                "    p.yaml:5: warning: default.mode: found off for /index.php/v1/orders, "
                    + "/v1/orders.json, which some servers take for /v1/orders; \(use)"
            )
        )
        #expect(
            lines.contains(
                "    p.yaml:5: warning: default.mode: found off for /index.php/b, /b.json, which "
                    + "some servers take for /b/**; \(use)"
            )
        )
    }

    @Test func `with all readings no spelling of a path is a way past its rule`() {
        let lines = coverage(
            """
            origins: { shop: { servers: ["s:80"] } }
            default: { origin: shop, mode: off }
            rules:
              - { id: a, match: { path: /v1/place_order }, mode: enforce }
              - { id: b, match: { path: /api/pay.php }, mode: enforce }
            """
        )
        #expect(!lines.contains { $0.contains("some servers") })
    }

    @Test(arguments: ["{ mode: deny }", "{ origin: media, mode: off }"])
    func `a default that reaches another origin or none is no way`(fallback: String) {
        let lines = coverage(
            """
            \(Self.twoOrigins)
            default: \(fallback)
            rules:
              - { id: a, match: { path: /a }, mode: enforce, origin: shop }
              - { id: h, match: { path: /health }, mode: off, origin: shop }
            """
        )
        expectEqual(
            lines,
            ["coverage no way past an enforced rule was found", "p.yaml: ok, 0 warnings"]
        )
    }

    @Test func `another rule for the same paths is a way by its hosts and methods`() {
        let lines = coverage(
            """
            \(Self.twoOrigins)
            default: { mode: deny }
            rules:
              - { id: read, match: { method: [GET, PUT], path: /v1/** }, mode: observe, \
            origin: shop }
              - { id: a, match: { host: a.b, method: POST, path: /v1/a }, mode: enforce, \
            origin: shop }
              - { id: www, match: { host: "*.c", path: /*/a }, mode: off, origin: shop }
            """
        )
        expectEqual(
            lines.dropFirst(),
            [
                "  a",
                """
                    p.yaml:7: warning: read.mode: found observe for any other host, or none \
                (HTTP/1.0); GET, PUT; use enforce or deny
                """,
                "    p.yaml:9: warning: www.mode: found off for *.c; use enforce or deny",
                "p.yaml: ok, 2 warnings",
            ]
        )
    }

    @Test(arguments: ["X-Original-URL", "X-HTTP-Method-Override"])
    func `a kept field by which an origin runs something else is a way past its rules`(
        name: String
    ) {
        let lines = coverage(
            """
            origins: { shop: { servers: ["s:80"], keep_fields: [\(name)] }, media: { \
            servers: ["m:80"], keep_fields: [CF-Connecting-IP] } }
            default: { mode: deny }
            rules:
              - { id: a, match: { path: /a }, mode: enforce, origin: shop }
              - { id: b, match: { path: /b }, mode: enforce, origin: media }
            """
        )
        let way = """
                p.yaml:7: warning: a.origin: found an origin that gets \(name.lowercased()), by \
            which some servers run another path, host or method than the matched one; use no such \
            keep_fields unless it surely does not do so
            """
        expectEqual(lines.dropFirst(), ["  a", way, "p.yaml: ok, 1 warning"])
    }

    @Test func `a rule that another one stands in front of is no way`() {
        let lines = coverage(
            """
            \(Self.twoOrigins)
            default: { mode: deny }
            rules:
              - { id: no, match: { path: /a/** }, mode: deny }
              - { id: yes, match: { host: a.b, path: /b/** }, mode: enforce, origin: shop }
              - { id: not-b, match: { path: /b/** }, mode: deny }
              - { id: off, match: { path: /*/x }, mode: off, origin: shop }
            """
        )
        expectEqual(lines.first, "coverage no way past an enforced rule was found")
    }

    @Test func `what an enforced rule excepts itself is told with it`() {
        let lines = coverage(
            """
            \(Self.twoOrigins)
            default: { mode: deny }
            rules:
              - id: a
                match: { path: /a }
                origin: shop
                mode: enforce
                rollout: { percent: 25% }
                unsupported: forward
                on_error: forward
            """
        )
        // One text: an array of joined strings takes the type checker eight seconds.
        let expected = """
              a
                p.yaml:7: warning: a.rollout: found 25% by key, while all others are forwarded; \
            use 100% in the end
                p.yaml:7: warning: a.unsupported: found forward, which anybody can ask for; \
            use refuse
                p.yaml:7: warning: a.on_error: found forward, while the store fails; use refuse
            p.yaml: ok, 3 warnings
            """
        expectEqual(lines.dropFirst().joined(separator: "\n"), expected)
    }

    @Test func `an origin of another name with the same server is the same origin`() {
        let lines = coverage(
            """
            origins: { shop: { servers: ["s:80", "t:80"] }, old: { servers: ["t:80"] } }
            default: { mode: deny }
            rules:
              - { id: a, match: { method: POST, path: /a }, mode: enforce, origin: shop }
              - { id: b, match: { path: /a }, mode: off, origin: old }
            """
        )
        expectEqual(
            lines.dropFirst(),
            [
                "  a",
                """
                    p.yaml:8: warning: b.mode: found off for any other method, to t:80 as origin \
                old; use enforce or deny
                """,
                "p.yaml: ok, 1 warning",
            ]
        )
    }

    @Test func `many ways past one rule are told up to a bound`() {
        let rules = (0..<40).map {
            "  - { id: h\($0), match: { host: h\($0).com, path: /** }, mode: off }\n"
        }
        let lines = coverage(
            """
            \(Self.twoOrigins)
            default: { mode: deny, origin: shop }
            rules:
              - { id: a, match: { host: a.com, path: /** }, mode: enforce }
            \(rules.joined())
            """
        )
        expectEqual(lines.count { $0.contains("warning: h") }, 16)
        #expect(lines.contains("    not all rules were compared; more may do so"))
    }

    @Test func `the default is told of, however many rules there are`() {
        let rules = (0..<140).map {
            """
              - id: a\($0)
                match: { host: h\($0).com, path: /v1/orders }
                mode: enforce
                headers: [host]
              - { id: b\($0), match: { host: h\($0).com, path: /v1/** }, mode: off }

            """
        }
        let lines = coverage(
            """
            \(Self.twoOrigins)
            default: { mode: off, origin: shop }
            rules:
            \(rules.joined())
            """
        )
        expectEqual(lines.count { $0.contains("default.mode: found off") }, 140)
    }

    @Test func `preflights that are forwarded are a way past the rule`() {
        let lines = coverage(
            """
            \(Self.twoOrigins)
            default: { mode: deny, origin: shop }
            rules:
              - { id: a, match: { path: /a }, mode: enforce, preflight: forward }
            """
        )
        expectEqual(
            lines.dropFirst(),
            [
                "  a",
                """
                    p.yaml:7: warning: a.preflight: found forward, for OPTIONS that anybody can \
                send; use judge
                """,
                "p.yaml: ok, 1 warning",
            ]
        )
    }
}
