import HTTPWire
import Rules
import Testing

/// A generator that gives the same numbers at every run (SplitMix64).
private struct Seeded: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

@Suite struct RuleSetTests {
    private static let words = ["v1", "v2", "orders", "users", "a", "b", "c", "items", "me", ""]
    private static let hosts = [
        "api.example.com", "example.com", "www.example.com", "a.api.example.com", "other.org",
    ]
    private static let methods = ["GET", "POST", "PUT", "PURGE"]

    private func ruleSet(_ matches: [RouteMatch]) throws -> RuleSet {
        let rules = matches.enumerated().map { index, match in
            Rule(id: "r\(index)", index: index, match: match, origin: OriginIndex(0), mode: .off)
        }
        let fallback = Rule(
            id: "default",
            index: rules.count,
            match: .all,
            origin: OriginIndex(0),
            mode: .off
        )
        return try #require(RuleSet(rules, default: fallback))
    }

    private func found(_ set: RuleSet, _ method: String, _ host: String, _ path: String) -> [Int] {
        let method = Array(method.utf8)
        let host = Array(host.utf8)
        switch set.route(method: method.span, host: host.span, view: view(path)) {
        case .rule(let rule): return [rule.index]
        case .disputed(let rule, let rival): return [rule.index, rival.index]
        }
    }

    private static func pattern(_ random: inout Seeded) throws -> PathPattern {
        let count = Int.random(in: 0...4, using: &random)
        var parts = (0..<count).map { place -> String in
            if Int.random(in: 0..<5, using: &random) == 0 { return "*" }
            let word = words.randomElement(using: &random) ?? "a"
            return word.isEmpty && place < count - 1 ? "c" : word
        }
        if Int.random(in: 0..<4, using: &random) == 0 { parts.append("**") }
        return try PathPattern("/" + parts.joined(separator: "/"))
    }

    private static func match(_ random: inout Seeded) throws -> RouteMatch {
        let host: HostPattern? =
            switch Int.random(in: 0..<4, using: &random) {
            case 0: HostPattern(text: hosts.randomElement(using: &random) ?? "")
            case 1: HostPattern(text: "*." + (hosts.randomElement(using: &random) ?? ""))
            default: .any
            }
        let some = methods.filter { _ in Bool.random(using: &random) }
        let path = try pattern(&random)
        return RouteMatch(host: host ?? .any, methods: some.isEmpty ? nil : some, path: path)
    }

    @Test(arguments: [0, 1, 2, 10, 100, 1000])
    func `the index finds what asking every rule in order finds`(count: Int) throws {
        var random = Seeded(state: UInt64(count) + 17)
        let matches = try (0..<count).map { _ in try Self.match(&random) }
        let set = try ruleSet(matches)
        for _ in 0..<2000 {
            let method = (Self.methods + ["DELETE"]).randomElement(using: &random) ?? "GET"
            let host =
                (Self.hosts + ["x.y.example.com", "EXAMPLE.com:80"])
                .randomElement(using: &random) ?? ""
            let segments = (0..<Int.random(in: 0...5, using: &random)).map { _ in
                Self.words.randomElement(using: &random) ?? "a"
            }
            let path = "/" + segments.joined(separator: "/")
            let methodOctets = Array(method.utf8)
            let hostOctets = Array(host.utf8)
            func first(_ reading: TargetView.Reading) -> Int {
                matches.firstIndex { match in
                    match.mismatch(
                        method: methodOctets.span,
                        host: hostOctets.span,
                        view: view(path),
                        reading: reading
                    ) == nil
                } ?? count
            }
            var expected = [first(.exact)]
            if !view(path).findings.isDisjoint(with: .readingDependent),
                first(.merged) != expected[0]
            {
                expected.append(first(.merged))
            }
            #expect(found(set, method, host, path) == expected, "\(path)")
        }
    }

    @Test func `the first rule in order decides, not the most specific one`() throws {
        let set = try ruleSet([
            RouteMatch(path: try PathPattern("/v1/**")),
            RouteMatch(path: try PathPattern("/v1/orders")),
        ])
        #expect(found(set, "GET", "h", "/v1/orders") == [0])
        #expect(found(set, "GET", "h", "/v2") == [2])
    }

    @Test(arguments: ["/admin/", "//admin", "/admin;x=1", "/admin;/"])
    func `a path that servers read in two ways is disputed where rules differ`(path: String) throws
    {
        let set = try ruleSet([RouteMatch(path: try PathPattern("/admin"))])
        #expect(found(set, "GET", "h", path) == [1, 0])
        let all = try ruleSet([RouteMatch(path: try PathPattern("/**"))])
        #expect(found(all, "GET", "h", path) == [0])
    }

    @Test func `a rule for a trailing slash can be met`() throws {
        let set = try ruleSet([RouteMatch(path: try PathPattern("/admin/"))])
        #expect(found(set, "GET", "h", "/admin/") == [0])
        #expect(found(set, "GET", "h", "/admin") == [1])
    }

    @Test func `more method names than the index can hold are refused`() throws {
        func set(_ count: Int) -> RuleSet? {
            let names = (0..<count).map { "M\($0)" }
            let match = RouteMatch(methods: names)
            return RuleSet(
                [Rule(id: "a", index: 0, match: match, origin: OriginIndex(0), mode: .off)],
                default: Rule(id: "d", index: 1, match: .all, origin: OriginIndex(0), mode: .off)
            )
        }
        #expect(set(63) != nil)
        #expect(set(64) == nil)
    }

    @Test func `rules are numbered by their place`() {
        let rule = Rule(id: "a", index: 1, match: .all, origin: OriginIndex(0), mode: .off)
        #expect(RuleSet([], default: rule) == nil)
    }
}
