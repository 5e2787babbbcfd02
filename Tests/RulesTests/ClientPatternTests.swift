import Expectations
import HTTPWire
import Rules
import TestSupport
import Testing

/// Addresses of clients as part of a route.
@Suite struct ClientPatternTests {
    private static func networks(_ texts: [String]) throws -> [IPNetwork] {
        try texts.map { try #require(IPNetwork($0), "\($0)") }
    }

    private static func pattern(_ texts: String..., without: [String] = []) throws -> ClientPattern
    {
        ClientPattern(try networks(texts), without: try networks(without))
    }

    private static func address(_ text: String) throws -> IPAddress {
        try #require(IPAddress(text), "\(text)")
    }

    // MARK: Matching

    @Test(arguments: [
        ("10.0.0.0", true), ("10.255.255.255", true), ("9.255.255.255", false),
        ("11.0.0.0", false), ("10.1.2.3", false), ("10.1.255.255", false), ("10.2.0.0", true),
        ("2001:db8::", true), ("2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", true),
        ("2001:db9::", false), ("::ffff:10.2.0.1", true), ("::ffff:10.1.0.1", false),
        ("192.0.2.7", true), ("192.0.2.8", false), ("::10.2.0.1", false),
    ])
    func `a client is in client and not in not_client`(_ text: String, _ isIn: Bool) throws {
        let pattern = try Self.pattern(
            "10.0.0.0/8",
            "2001:db8::/32",
            "192.0.2.7",
            without: ["10.1.0.0/16"]
        )
        expectEqual(pattern.matches(try Self.address(text)), isIn)
    }

    @Test func `a network of IPv6 has no address of IPv4, and the other way round`() throws {
        let all = (four: try Self.pattern("0.0.0.0/0"), six: try Self.pattern("::/0"))
        for text in ["0.0.0.0", "192.0.2.1", "255.255.255.255"] {
            #expect(all.four.matches(try Self.address(text)))
            #expect(!all.six.matches(try Self.address(text)))
        }
        for text in ["::", "::1", "2001:db8::1", "::fffe:ffff:ffff", "::1:0:0:0"] {
            #expect(!all.four.matches(try Self.address(text)))
            #expect(all.six.matches(try Self.address(text)))
        }
        // Networks of IPv6 with the block of mapped addresses in them.
        for bits in 0...95 {
            let around = try #require(IPNetwork.meant(by: "::fffe:0:1/\(bits)"))
            #expect(!ClientPattern([around]).matches(.v4(1)), "\(around.text)")
            #expect(ClientPattern([around]).matches(try Self.address("::fffe:0:1")))
        }
    }

    @Test func `a peer without an address is in no network`() throws {
        #expect(try !Self.pattern("0.0.0.0/0", "::/0").matches(nil))
        #expect(try Self.pattern(without: ["10.0.0.0/8"]).matches(nil))
        #expect(ClientPattern.all.matches(nil))
    }

    @Test func `a pattern matches what its networks contain, whatever they are`() {
        var random = SeededGenerator(seed: 4)
        for _ in 0..<300 {
            let (networks, excluded) = (Self.some(&random), Self.some(&random))
            let pattern = ClientPattern(networks, without: excluded)
            for _ in 0..<40 {
                let client = Self.client(&random)
                let isIn =
                    (networks.isEmpty || networks.contains { $0.contains(client) })
                    && !excluded.contains { $0.contains(client) }
                expectEqual(pattern.matches(client), isIn, "\(pattern.text): \(client.text)")
            }
        }
    }

    // MARK: What covers, and what is sampled

    @Test func `a pattern covers another one where it has all of its clients`() {
        var random = SeededGenerator(seed: 5)
        var covered = 0
        for _ in 0..<3_000 {
            let mine = ClientPattern(Self.some(&random), without: Self.some(&random))
            let other = ClientPattern(Self.some(&random), without: Self.some(&random))
            let outside = other.sample(outside: mine)
            if let outside {
                #expect(other.matches(outside) && !mine.matches(outside))
            }
            let hasNone = other.matches(nil) && !mine.matches(nil)
            expectEqual(mine.covers(other), outside == nil && !hasNone)
            if mine.covers(other) { covered += 1 }
            #expect(mine.covers(mine) && ClientPattern.all.covers(mine))
            let sample = mine.sample(sharedWith: other)
            expectEqual(sample == nil, mine.isEmpty)
            if let sample { #expect(mine.matches(sample)) }
            if let sample, !other.matches(sample) {
                #expect(!mine.meets(other) || mine.networks.isEmpty && other.networks.isEmpty)
            }
        }
        #expect(covered > 30)
    }

    @Test func `an excluded half leaves the other half, and all of it leaves none`() throws {
        let half = try Self.pattern("10.0.0.0/8", without: ["10.0.0.0/9"])
        #expect(try Self.pattern("10.128.0.0/9").covers(half))
        #expect(try half.covers(Self.pattern("10.128.0.0/9")))
        #expect(try !half.meets(Self.pattern("10.0.0.0/9")))
        #expect(try Self.pattern("10.0.0.0/8", without: ["0.0.0.0/0"]).isEmpty)
        #expect(try Self.pattern("10.0.0.0/9", "10.128.0.0/9").covers(Self.pattern("10.0.0.0/8")))
    }

    @Test func `it is written as the file says it`() throws {
        let pattern = try Self.pattern("10.0.0.0/8", "2001:db8::/32", without: ["10.1.2.3"])
        expectEqual(pattern.text, "10.0.0.0/8, 2001:db8::/32 without 10.1.2.3")
        let match = RouteMatch(clients: try Self.pattern(without: ["10.0.0.0/8"]))
        expectEqual(match.text, "* * /** from any without 10.0.0.0/8")
    }

    // MARK: Routes

    private static func rule(_ index: Int, _ match: RouteMatch, _ mode: Mode = .off) -> Rule {
        Rule(
            id: "r\(index)",
            index: index,
            match: match,
            origin: OriginIndex(index),
            mode: mode
        )
    }

    private static func found(
        _ set: RuleSet,
        _ path: String,
        from client: String?,
        method: String = "GET"
    ) throws -> [Int] {
        var view = view(path)
        let (method, host) = (Array(method.utf8), Array("h".utf8))
        let address = try client.map { try Self.address($0) }
        switch set.route(method: method.span, host: host.span, from: address, view: &view) {
        case .rule(let rule): return [rule.index]
        case .disputed(let route): return [route.found.index] + route.rivals.map(\.index)
        case .malformed: return []
        }
    }

    @Test func `the first rule for the client decides, and others do not have it`() throws {
        let path = try PathPattern("/v1/orders")
        let inside = try Self.pattern("10.0.0.0/8", "2001:db8::/32")
        let set = try #require(
            RuleSet(
                [
                    Self.rule(0, RouteMatch(path: path, clients: inside)),
                    Self.rule(1, RouteMatch(clients: try Self.pattern("192.0.2.0/24"))),
                    Self.rule(2, RouteMatch(methods: ["POST"], path: path)),
                ],
                default: Self.rule(3, .all)
            )
        )
        let rows: [(String, String?, String, [Int])] = [
            ("/v1/orders", "10.9.9.9", "GET", [0]), ("/v1/orders", "10.9.9.9", "POST", [0]),
            ("/v1/orders", "2001:db8::7", "GET", [0]), ("/v1/orders", "11.0.0.1", "POST", [2]),
            ("/v1/orders", "192.0.2.9", "POST", [1]), ("/v2", "10.9.9.9", "GET", [3]),
            ("/v1/orders", nil, "POST", [2]), ("/v2", "192.0.2.9", "GET", [1]),
        ]
        for (path, client, method, rule) in rows {
            try expectEqual(
                Self.found(set, path, from: client, method: method),
                rule,
                "\(method) \(path) from \(client ?? "-")"
            )
        }
    }

    @Test func `a rule for other clients has no say about a path that is spelled in two ways`()
        throws
    {
        let orders = try PathPattern("/v1/orders")
        let set = try #require(
            RuleSet(
                [
                    Self.rule(
                        0,
                        RouteMatch(path: orders, clients: try Self.pattern("10.0.0.0/8")),
                        .enforce
                    )
                ],
                default: Self.rule(1, .all)
            )
        )
        try expectEqual(Self.found(set, "/V1/Orders", from: "10.0.0.1"), [1, 0])
        try expectEqual(Self.found(set, "/V1/Orders", from: "192.0.2.1"), [1])
    }

    @Test func `a method in another case is disputed by rules for the client alone`() throws {
        let inside = RouteMatch(
            methods: ["CHECKOUT"],
            clients: try Self.pattern("10.0.0.0/8")
        )
        let set = try #require(
            RuleSet([Self.rule(0, inside, .enforce)], default: Self.rule(1, .all))
        )
        try expectEqual(Self.found(set, "/", from: "10.0.0.1", method: "checkout"), [1, 0])
        try expectEqual(Self.found(set, "/", from: "192.0.2.1", method: "checkout"), [1])
    }

    @Test func `a match covers another one where it has its clients, too`() throws {
        let (wide, narrow) = (try Self.pattern("10.0.0.0/8"), try Self.pattern("10.1.0.0/16"))
        #expect(RouteMatch.all.covers(RouteMatch(clients: narrow)))
        #expect(RouteMatch(clients: wide).covers(RouteMatch(clients: narrow)))
        #expect(!RouteMatch(clients: narrow).covers(RouteMatch(clients: wide)))
        #expect(!RouteMatch(clients: wide).covers(.all))
        var index = CoverIndex()
        #expect(index.add(RouteMatch(clients: narrow), number: 0) == nil)
        #expect(index.add(RouteMatch(clients: wide), number: 1) == nil)
        expectEqual(index.add(RouteMatch(methods: ["GET"], clients: narrow), number: 2), 0)
    }

    // MARK: Random networks, close to each other

    private static func client(_ random: inout SeededGenerator) -> IPAddress {
        let low = UInt64.random(in: 0...255, using: &random)
        return switch Int.random(in: 0..<3, using: &random) {
        case 0: .v4(0x0A00_0000 | UInt32(low))
        case 1: .v6(high: 0x2001_0db8_0000_0000, low: low)
        default: IPAddress(high: 0, low: 0xFFFE_FFFF_FF80 &+ low)
        }
    }

    private static func some(_ random: inout SeededGenerator) -> [IPNetwork] {
        (0..<Int.random(in: 0...3, using: &random)).compactMap { _ in
            let client = client(&random)
            let width = if case .v4 = client { 32 } else { 128 }
            let bits = Int.random(in: 0...8, using: &random)
            let prefix = Int.random(in: 0..<12, using: &random) == 0 ? bits : width - bits
            return IPNetwork.meant(by: "\(client.text)/\(prefix)")
        }
    }
}
