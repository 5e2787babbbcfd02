import ConfigurationReading
import Cryptography
import Expectations
import HTTPWire
import Proxy
import RequestBinding
import Rules
import Testing

/// The section `proofs`, and what rules say of it.
struct ProofSettingTests {
    private static let keys = """
        {"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}
        """
    private static let jwt =
        "kind: jwt, keys: { file: keys.json }, issuer: joe, audience: shop, algorithms: [EdDSA]"

    private static func loaded(
        proofs: String = "{ check: { field: X-Check, \(jwt) } }",
        rule: String = "mode: enforce, accept: [assertion, check]",
        apps: String = "apps: [{ id: TEAM123456.a, environments: [production] }]",
        store: String = "store: { sqlite: p.db }"
    ) -> LoadedConfiguration {
        load(
            """
            listen: [{ address: "127.0.0.1:0" }]
            origins: { a: { servers: ["s:80"] } }
            \(apps)
            \(store)
            default: { origin: a, mode: off }
            proofs: \(proofs)
            rules: [{ id: r, match: { path: /r }, \(rule) }]
            """,
            files: ["keys.json": keys]
        )
    }

    private static func problems(_ loaded: LoadedConfiguration) -> [String] {
        loaded.problems.map(\.text)
    }

    @Test func `a rule holds the proofs that it names`() throws {
        let loaded = Self.loaded(
            proofs: """
                { check: { field: X-Check, \(Self.jwt) }, page: { cookie: p, on_error: forward, \
                \(Self.jwt) } }
                """,
            rule: "mode: enforce, accept: [session, check, assertion], also: [page]"
        )
        expectEqual(Self.problems(loaded), [])
        let rule = try #require(loaded.configuration?.rules.rules.first)
        expectEqual(rule.accept.names, ["assertion", "session", "check"])
        #expect(rule.also.map(\.name) == ["page"] && rule.tokens.map(\.index) == [0, 1])
        expectEqual(rule.tokens[0].place, .field(Array("x-check".utf8)))
        expectEqual(rule.tokens[1].place, .cookie(Array("p".utf8)))
        expectEqual(rule.tokens.map(\.onError), [.refuse, .forward])
        #expect(rule.namesTokens)
        #expect(rule.demandLines.contains("asks for page (cookie p) beside the proof"))
    }

    /// A front that leaves one of them out has each such request refused.
    @Test func `the fields of rules are those that they sign, and those of tokens and proofs`()
        throws
    {
        let loaded = Self.loaded(
            proofs: "{ check: { field: X-Check, \(Self.jwt) }, page: { cookie: p, \(Self.jwt) } }",
            rule: "mode: enforce, accept: [assertion, check], also: [page], headers: [x-account], "
                + "fields: { key_id: X-Key }"
        )
        expectEqual(Self.problems(loaded), [])
        let names = try #require(loaded.configuration).fieldsOfRules
        #expect(names.contains("app-attest-assertion"))
        expectEqual(
            names.filter { !$0.hasPrefix("app-attest-") },
            [
                "cookie", "x-account", "x-check", "x-key",
            ]
        )
        let idle = Self.loaded(rule: "mode: off")
        #expect(try #require(idle.configuration).fieldsOfRules.isEmpty)
    }

    @Test func `a rule that takes only tokens signs nothing, and needs neither app nor store`()
        throws
    {
        let loaded = Self.loaded(rule: "mode: enforce, accept: [check]", apps: "", store: "")
        expectEqual(Self.problems(loaded), [])
        let rule = try #require(loaded.configuration?.rules.rules.first)
        #expect(!rule.accept.takesAssertions && rule.signing == .lines([], headers: []))
        #expect(rule.body == .none && rule.challenge == .none)
    }

    @Test func `nothing is said of keys where a rule takes only tokens`() throws {
        func loaded(_ environments: String) -> LoadedConfiguration {
            Self.loaded(
                rule: "mode: enforce, accept: [check], rollout: { percent: 50% }",
                apps: "apps: [{ id: TEAM123456.a, environments: [\(environments)] }]"
            )
        }
        let both = loaded("production, development")
        let text = Check(both, file: "p.yaml").text
        #expect(!text.contains("admits development keys"), "\(text)")
        let configuration = try #require(both.configuration)
        let before = try #require(loaded("production").configuration)
        #expect(ConfigurationDifference(from: before, to: configuration).endpoints.isEmpty)
        let keyID = String(repeating: "A", count: 43) + "="
        var sketch = RequestSketch(
            method: "GET",
            url: "https://a/r",
            headers: [(name: "App-Attest-Key-Id", value: keyID)]
        )
        sketch.client = IPAddress("192.0.2.7")
        let explained = Explanation(
            sketch,
            configuration,
            now: UnixTime(seconds: 0),
            lookUp: { _ in KeyFinding.notStored }
        ).text
        #expect(!explained.contains("client data") && !explained.contains("key-unknown"))
        #expect(explained.contains("rollout: address 192.0.2.7 is in bucket"), "\(explained)")
    }

    @Test func `explain knows no verdict about a key where a token may be taken instead`() throws {
        let configuration = try #require(Self.loaded().configuration)
        let keyID = String(repeating: "A", count: 43) + "="
        let explained = Explanation(
            RequestSketch(
                method: "GET",
                url: "https://a/r",
                headers: [(name: "App-Attest-Key-Id", value: keyID)]
            ),
            configuration,
            now: UnixTime(seconds: 0),
            lookUp: { _ in KeyFinding.notStored }
        ).text
        #expect(explained.contains(": not stored"), "\(explained)")
        #expect(!explained.contains("the rule's verdict"), "\(explained)")
    }

    @Test func `no assertion is made for the host of a rule that takes only tokens`() {
        let loaded = Self.loaded(
            rule: """
                mode: off }, \
                { id: t, match: { host: a.example }, mode: enforce, accept: [check] }, \
                { id: s, match: { host: b.example }, mode: enforce
                """
        )
        expectEqual(Self.problems(loaded), [])
    }

    @Test func `a device that can't attest may be asked for a token`() throws {
        let loaded = Self.loaded(rule: "mode: enforce, unsupported: { require: check }")
        expectEqual(Self.problems(loaded), [])
        let rule = try #require(loaded.configuration?.rules.rules.first)
        expectEqual(rule.unsupported, .require(rule.tokens[0]))
        expectEqual(rule.accept, .assertion)
    }

    @Test(arguments: [
        (
            "mode: enforce, accept: [assertion, chekc]",
            """
            p.yaml:7: r.accept[1]: found "chekc"; use assertion, session, check (did you \
            mean check?)
            """
        ),
        (
            "mode: enforce, accept: [session, check]",
            "p.yaml:7: r.accept: found it without assertion; use [assertion] or [assertion,"
        ),
        (
            "mode: enforce, accept: [check], sign: content",
            "p.yaml:7: r.sign: found it with an accept that takes only tokens, where it has"
        ),
        (
            "mode: enforce, accept: [check], on_error: forward",
            "p.yaml:7: r.on_error: found it with an accept that takes only tokens, where it"
        ),
        (
            "mode: enforce, accept: [check], guard: { refused: 2% }",
            "p.yaml:7: r.guard: found it with an accept that takes only tokens, where it has"
        ),
        (
            "mode: enforce, accept: [assertion, check], also: [check]",
            "p.yaml:7: r.also[0]: found check, which accept takes as a proof by itself; use"
        ),
        (
            "mode: enforce, also: [human]",
            "p.yaml:7: r.also[0]: found \"human\"; use check"
        ),
        (
            "mode: enforce, unsupported: { require: no }",
            "p.yaml:7: r.unsupported.require: found \"no\"; use check"
        ),
        (
            "mode: enforce, unsupported: {}",
            "p.yaml:7: r.unsupported.require: found no such key; use require: the name of"
        ),
        (
            "mode: enforce, accept: [assertion, check], unsupported: { require: check }",
            "p.yaml:7: r.unsupported.require: found check, which accept takes from every"
        ),
        (
            "mode: off",
            "p.yaml:6: warning: proofs.check: found a proof that no rule names; use it in a rule's"
        ),
    ])
    func `a rule that says something else is reported`(_ rule: String, _ problem: String) {
        let found = Self.problems(Self.loaded(rule: rule))
        #expect(found.contains { $0.hasPrefix(problem) }, "\(found)")
    }

    @Test(arguments: [
        ("[]", "p.yaml:6: proofs: found a list; use a mapping: name: { kind: jwt, … }"),
        (
            "{ assertion: { field: X, JWT } }",
            "p.yaml:6: proofs.assertion: found \"assertion\"; use"
        ),
        (
            "{ Check: { field: X, JWT } }",
            "p.yaml:6: proofs.Check: found \"Check\"; use 1…32 lower-"
        ),
        ("{ check: { JWT } }", "p.yaml:6: proofs.check: found neither a field nor a cookie; use"),
        (
            "{ check: { field: X, cookie: x, JWT } }",
            "p.yaml:6: proofs.check: found a field and a cookie; use"
        ),
        (
            "{ check: { field: App-Attest-Key-Id, JWT } }",
            "p.yaml:6: proofs.check.field: found \"App-Attest-Key-Id\"; use a field name"
        ),
        (
            "{ check: { field: Cookie, JWT } }",
            "p.yaml:6: proofs.check.field: found \"Cookie\"; use a field name"
        ),
        (
            "{ check: { field: X, kind: jtw } }",
            "p.yaml:6: proofs.check.kind: found \"jtw\"; use"
        ),
        (
            "{ check: { field: X } }",
            "p.yaml:6: proofs.check.kind: found no such key; use kind: jwt"
        ),
        (
            "{ check: { field: X, kind: jwt } }",
            "p.yaml:6: proofs.check.issuer: found no such key; use issuer: the text of the iss"
        ),
        (
            "{ check: { field: X, JWT, algoritms: [EdDSA] } }",
            "p.yaml:6: proofs.check.algoritms: found an unknown key; use"
        ),
        (
            "{ check: { field: X, ISSUER, algorithms: [none], keys: K } }",
            "p.yaml:6: proofs.check.algorithms[0]: found \"none\"; use ES256, RS256, EdDSA"
        ),
        (
            "{ check: { field: X, ISSUER, algorithms: [ES256], keys: {} } }",
            "p.yaml:6: proofs.check.keys: found neither url nor file; use one of the two"
        ),
        (
            """
            { check: { field: X, kind: jwt, issuer: a, audience: b, algorithms: [ES256], keys: { \
            url: "http://a/k" } } }
            """,
            "p.yaml:6: proofs.check.keys.url: found \"http://a/k\"; use https://host/path"
        ),
        (
            """
            { check: { field: X, kind: jwt, issuer: a, audience: b, algorithms: [ES256], keys: { \
            file: none.json } } }
            """,
            "p.yaml:6: proofs.check.keys.file: found"
        ),
    ])
    func `a proof that says something else is reported`(_ proofs: String, _ problem: String) {
        let text = proofs.replacing("JWT", with: Self.jwt)
            .replacing("ISSUER", with: "kind: jwt, issuer: a, audience: b")
            .replacing("keys: K", with: "keys: { file: keys.json }")
        let found = Self.problems(Self.loaded(proofs: text))
        #expect(found.contains { $0.hasPrefix(problem) }, "\(found)")
    }

    @Test func `a token that is good once needs a store`() {
        let proofs = "{ check: { field: X-Check, once: jti, \(Self.jwt) } }"
        let bare = Self.loaded(
            proofs: proofs,
            rule: "mode: enforce, accept: [check]",
            apps: "",
            store: ""
        )
        let problem = "p.yaml:6: proofs.check.once: found it without a store"
        #expect(Self.problems(bare).contains { $0.hasPrefix(problem) })
        expectEqual(Self.problems(Self.loaded(proofs: proofs)), [])
    }

    @Test func `a rule that takes a token beside an assertion is as strong as the token`() {
        let text = Check(Self.loaded(), file: "p.yaml").text
        #expect(text.contains("r.accept: found check, which whoever has the token"), "\(text)")
    }
}
