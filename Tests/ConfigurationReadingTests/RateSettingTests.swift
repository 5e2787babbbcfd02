import Expectations
import HTTPWire
import Rules
import Signatures
import Testing

@testable import ConfigurationReading

/// `rate` of a rule, and `client` and `not_client` of its match.
@Suite struct RateSettingTests {
    private func loaded(
        _ rules: String,
        listen: String = "0.0.0.0:0",
        more: String = ""
    ) -> LoadedConfiguration {
        load(
            """
            listen: [{ address: "\(listen)" }]
            origins: { o: { servers: ["o:80"] } }
            apps: [{ id: TEAM123456.a, environments: [production] }]
            store: { sqlite: p.db }
            default: { origin: o, mode: deny }
            rules: [\(rules)]
            \(more)
            """
        )
    }

    private func rate(_ text: String, mode: String = "enforce") -> LoadedConfiguration {
        loaded("{ id: a, match: { path: /a }, mode: \(mode), rate: \(text) }")
    }

    // MARK: rate

    @Test(arguments: [
        ("{ key: 10/s, burst: 20 }", "10/s", 20), ("{ key: 10/s }", "10/s", 10),
        ("{ key: 1/d }", "1/d", 1), ("{ key: 600/m, burst: 7 }", "600/m", 7),
        ("{ key: 10000/h, burst: 100000 }", "10000/h", 100_000),
        ("{ key: 1/d, burst: 30 }", "1/d", 30),
    ])
    func `a rate is a number in a time, and as many at once unless it says otherwise`(
        text: String,
        pace: String,
        burst: Int
    ) throws {
        let loaded = rate(text)
        expectEqual(loaded.problems.map(\.text), [])
        let rule = try #require(loaded.configuration?.rules.rules.first)
        expectEqual(rule.rate?.pace.text, pace)
        expectEqual(rule.rate?.burst, burst)
        #expect(rule.demandLines.contains("a key at most \(pace), \(burst) at once"))
    }

    @Test(arguments: [
        ("{ burst: 20 }", "a.rate.key: found no such key; use key: 10/s"),
        ("{ key: 10 }", "a.rate.key: found \"10\" without its unit; use 10/s"),
        (
            "{ key: 0/s }",
            "a.rate.key: found \"0/s\"; use requests in a second, minute, hour or day"
        ),
        ("{ key: 10001/s }", "a.rate.key: found \"10001/s\"; use requests in a second"),
        ("{ key: -1/s }", "a.rate.key: found \"-1/s\"; use requests in a second"),
        ("{ key: 10/w }", "a.rate.key: found \"10/w\"; use requests in a second"),
        ("{ key: 10/s/s }", "a.rate.key: found \"10/s/s\"; use requests in a second"),
        ("{ key: 10/s, burst: 0 }", "a.rate.burst: found \"0\"; use a number, 1…100000"),
        (
            "{ key: 1/d, burst: 31 }",
            "a.rate.burst: found 31, which 1/d refills in more than 30 days; use 30 at most"
        ),
        ("10/s", "a.rate: found \"10/s\"; use"),
    ])
    func `what is no rate is refused`(text: String, problem: String) {
        let errors = rate(text).errors.map(\.text)
        #expect(errors.contains { $0.contains(problem) }, "\(errors)")
    }

    @Test func `a rate without a key to count by is refused, or idle`() throws {
        let off = rate("{ key: 10/s }", mode: "off")
        expectEqual(off.errors.map(\.text), [])
        #expect(
            off.warnings.map(\.text).contains { $0.contains("a.rate: found it with mode: off") }
        )
        let tokens = loaded(
            """
            { id: a, match: { path: /a }, mode: enforce, accept: [t], rate: { key: 1/s } }
            """,
            more: """
                proofs:
                  t:
                    kind: jwt
                    field: X-T
                    keys: { url: "https://a.example/keys" }
                    issuer: https://a.example
                    audience: shop
                    algorithms: [ES256]
                """
        )
        #expect(tokens.errors.map(\.text).contains { $0.contains("a.rate: found it") })
    }

    @Test func `a change of a rate is a change of the rule`() throws {
        let (old, new) = (rate("{ key: 10/s }"), rate("{ key: 20/s, burst: 5 }"))
        let difference = ConfigurationDifference(
            from: try #require(old.configuration),
            to: try #require(new.configuration)
        )
        expectEqual(
            difference.endpoints.first?.lines,
            ["no longer: a key at most 10/s, 10 at once", "now: a key at most 20/s, 5 at once"]
        )
    }

    // MARK: client

    private func match(_ text: String, listen: String = "0.0.0.0:0", more: String = "")
        -> LoadedConfiguration
    {
        loaded("{ id: a, match: \(text), mode: off }", listen: listen, more: more)
    }

    @Test(arguments: [
        ("{ client: 10.0.0.0/8 }", "10.0.0.0/8"),
        ("{ client: [10.0.0.0/8, \"2001:db8::/32\"] }", "10.0.0.0/8, 2001:db8::/32"),
        ("{ not_client: [192.0.2.1] }", "any without 192.0.2.1"),
        (
            "{ path: /a, client: 10.0.0.0/8, not_client: [10.1.0.0/16] }",
            "10.0.0.0/8 without 10.1.0.0/16"
        ),
    ])
    func `networks are read, one or a list`(text: String, clients: String) throws {
        let loaded = match(text)
        expectEqual(loaded.problems.map(\.text), [])
        let rule = try #require(loaded.configuration?.rules.rules.first)
        expectEqual(rule.match.clients?.text, clients)
    }

    @Test(arguments: [
        (
            "{ client: 10.1.0.0/8 }",
            "a.match.client: found \"10.1.0.0/8\", which has bits after the prefix; use 10.0.0.0/8"
        ),
        (
            "{ client: [10.0.0.0/8, \"2001:db8::1/32\"] }",
            "a.match.client[1]: found \"2001:db8::1/32\", which has bits after the prefix; use "
                + "2001:db8::/32"
        ),
        (
            "{ not_client: [\"::ffff:10.0.0.0/104\"] }",
            "a.match.not_client[0]: found \"::ffff:10.0.0.0/104\", which has an IPv4 network; use "
                + "10.0.0.0/8"
        ),
        ("{ client: 10.0.0.0/33 }", "a.match.client: found \"10.0.0.0/33\"; use networks such as"),
        ("{ client: office }", "a.match.client: found \"office\"; use networks such as"),
        ("{ client: [] }", "a.match.client: found an empty list"),
        ("{ client: [10.0.0.0/8, 10.0.0.0/8] }", "a.match.client[1]: found \"10.0.0.0/8\" again"),
        ("{ }", "a.match: found nothing to match; use host, method, path or client"),
    ])
    func `what is no network is refused, with the one that was meant`(
        text: String,
        problem: String
    ) {
        let errors = match(text).errors.map(\.text)
        #expect(errors.contains { $0.contains(problem) }, "\(errors)")
        #expect(match(text).configuration == nil)
    }

    @Test(arguments: [
        ("{ client: 10.0.0.0/8, not_client: 10.0.0.0/8 }", "0.0.0.0:0", "no client: not_client"),
        ("{ client: 10.0.0.0/8 }", "127.0.0.1:0", "only 127.0.0.0/8 reach the listeners"),
        ("{ client: \"2001:db8::/32\" }", "0.0.0.0:0", "only 0.0.0.0/0 reach the listeners"),
        ("{ client: 10.0.0.0/8 }", "[2001:db8::7]:0", "only ::/0 reach the listeners"),
        ("{ client: 10.0.0.0/8 }", "[::]:0", nil),
        ("{ client: 127.0.0.1 }", "127.0.0.1:0", nil),
        ("{ not_client: 10.0.0.0/8 }", "127.0.0.1:0", nil),
    ])
    func `a rule for clients that can't come is warned about`(
        text: String,
        listen: String,
        warning: String?
    ) {
        let loaded = match(text, listen: listen)
        expectEqual(loaded.errors.map(\.text), [])
        let found = loaded.warnings.map(\.text).filter { $0.contains("a.match: found") }
        expectEqual(found.count, warning == nil ? 0 : 1)
        if let warning { #expect(found.first?.contains(warning) == true, "\(found)") }
    }

    @Test func `behind a trusted proxy any client can come`() {
        let loaded = match(
            "{ client: 10.0.0.0/8 }",
            listen: "127.0.0.1:0",
            more: "trusted_proxies: [127.0.0.1]"
        )
        expectEqual(loaded.problems.map(\.text), [])
    }

    @Test func `a rule whose clients an earlier one has is refused`() {
        let loaded = loaded(
            """
            { id: a, match: { path: /a, client: 10.0.0.0/8 }, mode: off },
            { id: b, match: { path: /a, client: [10.1.0.0/16, 10.2.0.0/16] }, mode: off },
            { id: c, match: { path: /a }, mode: off }
            """
        )
        let errors = loaded.errors.map(\.text)
        expectEqual(errors.count, 1)
        #expect(errors.first?.contains("b.match: found only requests that meet the rule") == true)
    }

    // MARK: explain, test, diff, coverage

    private static let office = """
        { id: office, match: { path: /a, client: 10.0.0.0/8 }, mode: off },
        { id: a, match: { path: /a }, mode: enforce, rate: { key: 10/s } }
        """

    @Test func `explain says for which clients a rule is`() throws {
        let configuration = try #require(loaded(Self.office).configuration)
        func explained(_ client: String?) -> Explanation {
            var sketch = RequestSketch(method: "GET", url: "/a")
            sketch.client = client.flatMap { IPAddress($0) }
            return Explanation(sketch, configuration, now: UnixTime(seconds: 0))
        }
        expectEqual(explained("10.9.9.9").rule?.id, "office")
        let outside = explained("192.0.2.1")
        expectEqual(outside.rule?.id, "a")
        #expect(outside.text.contains("client 192.0.2.1 is not from 10.0.0.0/8"), "\(outside.text)")
        #expect(outside.text.contains("a key at most 10/s, 10 at once"))
        let unknown = explained(nil)
        expectEqual(unknown.rule?.id, "a")
        #expect(unknown.text.contains("a client without an address is not from 10.0.0.0/8"))
    }

    @Test func `diff tries a rule's requests from its clients`() throws {
        let old = try #require(loaded(Self.office).configuration)
        let new = try #require(
            loaded(
                """
                { id: all, match: { path: /a, not_client: 192.0.2.0/24 }, mode: off },
                { id: office, match: { path: /a, client: [10.0.0.0/8, 192.0.2.0/24] }, mode: off },
                { id: a, match: { path: /a }, mode: enforce, rate: { key: 10/s } }
                """
            ).configuration
        )
        let lines = ConfigurationDifference(from: old, to: new).text
        #expect(lines.contains("requests: * * /a from 10.0.0.0/8 → "), "\(lines)")
    }

    @Test func `coverage finds another client, and a rule without a rate`() throws {
        let check = loaded(
            """
            { id: a, match: { path: /a, client: 10.0.0.0/8 }, mode: enforce },
            { id: b, match: { path: /a }, mode: "off" },
            { id: c, match: { path: /c, method: GET }, mode: enforce, rate: { key: 10/s } },
            { id: d, match: { path: /c }, mode: enforce }
            """
        )
        expectEqual(check.problems.map(\.text), [])
        let text = Check(check, file: "p.yaml").text
        #expect(
            text.contains("b.mode: found off for clients other than 10.0.0.0/8"),
            "\(text)"
        )
        #expect(text.contains("d.rate: found no rate for any other method"), "\(text)")
    }
}
