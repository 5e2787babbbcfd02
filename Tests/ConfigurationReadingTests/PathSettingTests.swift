import ConfigurationReading
import Cryptography
import Expectations
import HTTPWire
import Rules
import Testing

/// What an origin says about how it reads paths, and what check, explain and test make of it.
@Suite struct PathSettingTests {
    private func load(_ paths: String?, _ rules: String) -> LoadedConfiguration {
        let paths = paths.map { ", paths: \($0)" } ?? ""
        return ConfigurationReadingTests.load(
            """
            listen: [{ address: "127.0.0.1:0" }]
            origins: { shop: { servers: ["s:80"]\(paths) }, media: { servers: ["m:80"] } }
            apps: [{ id: TEAM123456.a, environments: [production] }]
            store: { sqlite: p.db }
            default: { origin: shop, mode: off }
            rules:
            \(rules)
            """
        )
    }

    private static let orders =
        "  - { id: orders, match: { method: POST, path: /v1/orders }, mode: enforce }"

    private func refusal(_ request: String, _ paths: String?, _ rules: String) throws -> String? {
        let configuration = try #require(load(paths, rules).configuration)
        let parts = request.split(separator: " ").map(String.init)
        let sketch = RequestSketch(method: parts[0], url: "https://a" + parts[1])
        switch configuration.rule(for: sketch) {
        case .rule: return nil
        case .noRule(let reason): return reason
        }
    }

    @Test(arguments: [
        ("case: sensitive", "/V1/Orders"), ("slashes: exact", "/v1//orders"),
        ("slashes: exact", "/v1/orders/"), ("parameters: kept", "/v1/orders;x"),
        ("parameters: kept", "/v1/orders%3bx"), ("network_path: kept", "//x/v1/orders"),
        ("script_prefix: none", "/index.php/v1/orders"), ("format: kept", "/v1/orders.json"),
        ("index: kept", "/v1/orders/index.php"), ("punctuation: kept", "/v1/place.order"),
    ])
    func `an origin's word turns one reading off and no other`(setting: String, path: String) throws
    {
        let request = "POST \(path)"
        let others = [
            "case: sensitive", "slashes: exact", "parameters: kept", "network_path: kept",
            "path_info: none", "encoded_slash: kept", "escapes: decoded", "script_prefix: none",
            "format: kept", "index: kept", "punctuation: kept",
        ].filter { $0 != setting }
        let rules =
            "\(Self.orders)\n  - { id: place, match: { path: /v1/place_order }, mode: enforce }"
        try expectEqual(refusal(request, nil, rules), "path-ambiguous")
        try expectEqual(refusal(request, "{ \(setting) }", rules), nil)
        let without = "{ \(others.joined(separator: ", ")) }"
        try expectEqual(refusal(request, without, rules), "path-ambiguous")
        let any = "{ \(setting.split(separator: ":")[0]): any }"
        try expectEqual(refusal(request, any, rules), "path-ambiguous")
    }

    @Test(arguments: [
        (
            "path_info: none", "POST /pay.php/x",
            "  - { id: pay, match: { path: /pay.php }, mode: enforce }"
        ),
        (
            "escapes: decoded", "POST /v1/%6Frders",
            "\(orders)\n  - { id: any, match: { path: \"/v1/*\" }, mode: off }"
        ),
        (
            "encoded_slash: kept", "GET /files/a%2Fx",
            """
              - { id: a, match: { path: /files/a/** }, mode: enforce }
              - { id: files, match: { path: /files/** }, mode: off, allow_encoded: [slash] }
            """
        ),
    ])
    func `an origin's word turns a reading off that takes a rule of its kind`(
        setting: String,
        request: String,
        rules: String
    ) throws {
        try expectEqual(refusal(request, nil, rules), "path-ambiguous")
        try expectEqual(refusal(request, "{ \(setting) }", rules), nil)
    }

    @Test func `the origin of the rule that the path meets as written has the word`() throws {
        let rules =
            "\(Self.orders)\n  - { id: m, match: { path: /v1/** }, origin: media, mode: off }"
        // The rule for what is written is the one for media, which may do whatever servers do.
        try expectEqual(refusal("POST /v1/Orders", "{ case: sensitive }", rules), "path-ambiguous")
        try expectEqual(refusal("POST /V1/orders", "{ case: sensitive }", rules), nil)
    }

    @Test(arguments: [
        ("{ cases: any }", "p.yaml:2: origins.shop.paths.cases: found an unknown key; use case"),
        (
            "{ case: sensitiv }",
            """
            p.yaml:2: origins.shop.paths.case: found "sensitiv"; use any | sensitive (did you \
            mean sensitive?)
            """
        ),
        ("exact", "p.yaml:2: origins.shop.paths: found \"exact\"; use a mapping with case"),
    ])
    func `a word that no origin has is refused`(paths: String, problem: String) {
        let texts = load(paths, Self.orders).errors.map(\.text)
        #expect(texts.count == 1 && texts.allSatisfy { $0.hasPrefix(problem) }, "\(texts)")
    }

    @Test func `check says what an origin does not do to paths`() {
        let loaded = load("{ case: sensitive, path_info: none }", Self.orders)
        let text = Check(loaded, file: "p.yaml").text
        #expect(text.contains("origin   shop: s:80; paths case: sensitive, path_info: none\n"))
        #expect(text.contains("origin   media: m:80\n"))
    }

    @Test func `a rule that servers take for another rule is refused with both ways out`() throws {
        let rules = """
              - { id: upper, match: { path: /v1/Orders }, mode: enforce }
              - { id: lower, match: { path: /v1/orders }, mode: off }
            """
        let texts = load(nil, rules).errors.map(\.text)
        expectEqual(
            texts,
            [
                """
                p.yaml:8: lower.match: found only requests that meet rule upper too: servers \
                that ignore case read their path as /v1/orders; use one rule for both; or paths: \
                { case: sensitive } for the origin shop, if it does not do that
                """
            ]
        )
        #expect(load("{ case: sensitive }", rules).errors.isEmpty)
        // Rules that decide alike may stand beside one another.
        #expect(load(nil, rules.replacing("enforce", with: "off")).errors.isEmpty)
    }

    @Test func `explain shows which servers meet which rule`() throws {
        let configuration = try #require(load(nil, Self.orders).configuration)
        let sketch = RequestSketch(method: "POST", url: "https://a/V1//Orders/")
        let found = Explanation(sketch, configuration, now: UnixTime(seconds: 1_797_292_800))
        expectEqual(
            found.text,
            """
            POST https://a/V1//Orders/
              not orders (p.yaml:7): path /V1//Orders/ is not /v1/orders
              rule default (p.yaml:5): off → shop
              but orders (p.yaml:7) for servers that read it as /v1/orders:
                they ignore case, merge slashes or drop one at the end; see paths of the origin
              refused with 400: path-ambiguous

            """
        )
        #expect(
            found.json.contains(
                """
                "readings": [{"rule": "orders", "place": "p.yaml:7", "path": "/v1/orders", \
                "reading": ["case", "slashes"]}]
                """
            ),
            "\(found.json)"
        )
    }

    @Test(arguments: ["get", "Post", "propfind"])
    func `a method that is registered in upper case is refused in another`(name: String) {
        let rule = "  - { id: a, match: { method: [\(name)], path: /a }, mode: off }"
        let texts = load(nil, rule).errors.map(\.text)
        expectEqual(texts.count, 1)
        expectEqual(texts.first?.contains("(did you mean \(name.uppercased())?)"), true, "\(texts)")
    }

    @Test func `hosts are addresses in whatever spelling`() throws {
        let rules = """
              - { id: a, match: { host: "[2001:DB8:0:0::1]" }, mode: enforce }
              - { id: b, match: { host: "[::ffff:192.0.2.1]" }, mode: enforce }
            """
        let configuration = try #require(load(nil, rules).configuration)
        let hosts = configuration.rules.rules.prefix(2).map(\.match.host.text)
        expectEqual(hosts, ["[2001:db8::1]", "192.0.2.1"])
        let twice = rules.replacing("[::ffff:192.0.2.1]", with: "[2001:db8::1]")
        expectEqual(load(nil, twice).errors.map(\.text).count, 1)
    }
}
