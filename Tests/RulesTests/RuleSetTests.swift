import Cryptography
import Expectations
import HTTPWire
import RequestBinding
import Rules
import TestSupport
import Testing

@Suite struct RuleSetTests {
    /// Segments of patterns.
    private static let words = [
        "v1", "v2", "orders", "Orders", "users", "a", "b", "pay.php", "PAY.php", "x.cgi", "o;v=1",
        "index.php", "place_order", "place-order", "orders.json", "caf%C3%A9", "a%20b", "*", "*",
    ]
    /// Segments of paths, besides.
    private static let oddWords = [
        "", "", "%6Frders", "%4Frders", "users;x", ";x", "v1%3By", "a%2Fb", "v1%2f", "v1%5Ca",
        "index.html", "place.order", "v1\\orders", "pay%2Ephp", "a%2fpay.php;x%2Fb", "ME",
        "caf%c3%a9",
    ]
    private static let hosts = [
        "api.example.com", "example.com", "www.example.com", "a.api.example.com", "other.org",
    ]
    private static let methods = ["GET", "POST", "PUT", "PURGE"]

    /// Rules that each decide otherwise than the others: they observe, and one in `each` enforces.
    private func ruleSet(
        _ matches: [RouteMatch],
        origins: [PathInterpretation] = [],
        enforcing each: Int = .max
    ) throws -> RuleSet {
        let rules = (matches + [.all]).enumerated().map { index, match in
            let id = index == matches.count ? "default" : "r\(index)"
            let isEach = index < matches.count && (index + 1) % each == 0
            var demands = Rule.Demands(salt: id, mode: isEach ? .enforce : .observe)
            demands.allowEncoded = .allowable
            let origin = OriginIndex(index)
            return Rule(id: id, index: index, match: match, origin: origin, demands: demands)
        }
        return try #require(
            RuleSet(rules.dropLast(), default: rules[matches.count], origins: origins)
        )
    }

    @Test func `the store is needed where each rule denies, or enforces for all and refuses`()
        throws
    {
        func needs(_ mode: Mode, _ change: (inout Rule.Demands) -> Void = { _ in }) throws -> Bool {
            var demands = Rule.Demands(salt: "r", mode: mode)
            change(&demands)
            let origin: OriginIndex? = mode == .deny ? nil : OriginIndex(0)
            let match = RouteMatch.all
            let rule = Rule(
                id: "r",
                index: 0,
                match: match,
                origin: origin,
                demands: demands
            )
            let last = Rule(id: "default", index: 1, match: match, origin: nil, mode: .deny)
            let set = try #require(RuleSet([rule], default: last))
            return set.needsStore(at: UnixTime(seconds: 0))
        }
        #expect(try needs(.deny))
        #expect(try needs(.enforce))
        #expect(try !needs(.off))
        #expect(try !needs(.observe))
        #expect(try !needs(.enforce) { $0.onError = .forward })
        let half = Rollout(.fixed(try #require(Share(millionths: 999_999))), salt: "r")
        #expect(try !needs(.enforce) { $0.rollout = half })
    }

    /// What a rule that enforces for all needs while the store can be read and not written.
    @Test(arguments: [
        // A challenge that is required and signed: nobody waits for the disk.
        (SigningForm.lines(.all, headers: []), ChallengeRule.required, false),
        (.lines(.all, headers: []), .optional, true), (.lines(.all, headers: []), .none, true),
        (.lines([.method, .target], headers: []), .required, true),
        (.content, .required, true), (.challenge, .required, true),
    ])
    func `a store that can't be written is needed where requests wait for the disk`(
        signing: SigningForm,
        challenge: ChallengeRule,
        isNeeded: Bool
    ) throws {
        func needs(_ change: (inout Rule.Demands) -> Void = { _ in }) throws -> [Bool] {
            var demands = Rule.Demands(salt: "r", mode: .enforce)
            (demands.signing, demands.challenge) = (signing, challenge)
            change(&demands)
            let rule = Rule(
                id: "r",
                index: 0,
                match: .all,
                origin: OriginIndex(0),
                demands: demands
            )
            let last = Rule(id: "default", index: 1, match: .all, origin: nil, mode: .deny)
            let set = try #require(RuleSet([rule], default: last))
            let now = UnixTime(seconds: 0)
            return [set.needsStore(at: now, isReadable: true), set.needsStore(at: now)]
        }
        try expectEqual(needs(), [isNeeded, true])
        try expectEqual(needs { $0.onError = .forward }, [false, false])
        try expectEqual(needs { $0.accept = .assertionOrSession }, [false, true])
        let once = TokenProof(name: "once", index: 0, place: .field(Array("once".utf8)))
        try expectEqual(needs { $0.also = [once] }, [true, true])
    }

    @Test func `the store is not needed where clients pass by what it need not remember`() throws {
        func token(_ name: String, needsStore: Bool) -> TokenProof {
            TokenProof(
                name: name,
                index: 0,
                place: .field(Array(name.utf8)),
                needsStore: needsStore
            )
        }
        let (free, once) = (token("free", needsStore: false), token("once", needsStore: true))
        func needs(_ change: (inout Rule.Demands) -> Void) throws -> Bool {
            var demands = Rule.Demands(salt: "r", mode: .enforce)
            change(&demands)
            let rule = Rule(
                id: "r",
                index: 0,
                match: .all,
                origin: OriginIndex(0),
                demands: demands
            )
            let last = Rule(id: "default", index: 1, match: .all, origin: nil, mode: .deny)
            return try #require(RuleSet([rule], default: last))
                .needsStore(at: UnixTime(seconds: 0))
        }
        func accepting(_ tokens: TokenProof...) -> AcceptRule {
            AcceptRule(assertions: true, sessions: false, tokens: tokens)
        }
        #expect(try !needs { $0.accept = accepting(once, free) })
        #expect(try !needs { $0.unsupported = .require(free) })
        #expect(try !needs { $0.unsupported = .forward })
        #expect(try needs { $0.accept = accepting(once) })
        #expect(try needs { $0.also = [free] })
        #expect(
            try needs {
                $0.accept = accepting(free)
                $0.also = [once]
            }
        )
    }

    /// The rule, and the other one where there are two; -1 where there are too many
    /// interpretations.
    private func found(_ set: RuleSet, _ method: String, _ host: String, _ path: String) -> [Int] {
        let method = Array(method.utf8)
        let host = Array(host.utf8)
        var view = view(path)
        switch set.route(method: method.span, host: host.span, view: &view) {
        case .rule(let rule): return [rule.index]
        case .disputed(let route):
            return [route.found.index, route.isComplete ? route.rivals.first?.index ?? -2 : -1]
        case .malformed: return []
        }
    }

    private static func pattern(_ random: inout SeededGenerator) throws -> PathPattern {
        var parts = (0..<Int.random(in: 0...4, using: &random)).map { _ in
            words.randomElement(using: &random) ?? "a"
        }
        switch Int.random(in: 0..<8, using: &random) {
        case 0, 1: parts.append("**")
        case 2: parts.append("")
        default: break
        }
        return try PathPattern("/" + parts.joined(separator: "/"))
    }

    /// A path that one of the patterns may have in some interpretation: the pattern, changed a few
    /// times.
    private static func path(of patterns: [RouteMatch], _ random: inout SeededGenerator) -> String {
        let start = patterns.randomElement(using: &random)?.path.text ?? "/v1/orders"
        var segments = start.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
            .map { $0.contains("*") ? "users" : String($0) }
        for _ in 0..<Int.random(in: 0...4, using: &random) {
            let place = Int.random(in: 0...segments.count, using: &random)
            let word = (words.filter { $0 != "*" } + oddWords).randomElement(using: &random) ?? ""
            guard segments.indices.contains(place) else {
                segments.append(word)
                continue
            }
            let segment = segments[place]
            switch Int.random(in: 0..<7, using: &random) {
            case 0: segments[place] = segment.uppercased().replacing("%C3%A9", with: "%c3%a9")
            case 1: segments.insert("", at: place)
            case 2: segments[place] += ";x=1"
            case 3: segments.insert(contentsOf: ["", "host"], at: 0)
            case 4: segments.insert(word, at: place)
            case 5:
                guard let first = segment.utf8.first, first != UInt8(ascii: "%") else { continue }
                segments[place] = "%" + String(first, radix: 16) + segment.dropFirst()
            default:
                guard place + 1 < segments.count else { continue }
                let next = segments.remove(at: place + 1)
                segments[place] +=
                    (["%2F", "%5c", "\\"].randomElement(using: &random) ?? "") + next
            }
        }
        return "/" + segments.joined(separator: "/")
    }

    private static func match(_ random: inout SeededGenerator) throws -> RouteMatch {
        let host: HostPattern? =
            switch Int.random(in: 0..<9, using: &random) {
            case 0: HostPattern(text: hosts.randomElement(using: &random) ?? "")
            case 1: HostPattern(text: "*." + (hosts.randomElement(using: &random) ?? ""))
            default: .any
            }
        let isForAll = Int.random(in: 0..<3, using: &random) > 0
        let some = isForAll ? [] : methods.filter { _ in Bool.random(using: &random) }
        let path = try pattern(&random)
        return RouteMatch(host: host ?? .any, methods: some.isEmpty ? nil : some, path: path)
    }

    /// What asking each rule in order finds in every interpretation, as written first. What routers
    /// do counts where it leads to another rule than the default, and not from an enforced rule to
    /// one that observes.
    private func reference(
        _ matches: [RouteMatch],
        _ patterns: [ReferencePattern],
        _ made: PathInterpretation?,
        _ method: String,
        _ host: String,
        _ path: String
    ) -> [Int] {
        let (methodBytes, hostBytes) = (Array(method.utf8), Array(host.utf8))
        func enforces(_ number: Int) -> Bool {
            number < matches.count && (number + 1).isMultiple(of: 2)
        }
        let meeting = matches.indices.filter { place in
            matches[place].host.matches(hostBytes.span)
                && matches[place].takes(method: methodBytes.span)
        }
        let interpretations = made.map(ReferenceInterpretations.all) ?? [.asWritten]
        var found: [Int] = []
        for interpretation in interpretations {
            for segments in ReferenceInterpretations.segments(of: path, interpretation) {
                let first = meeting.first {
                    patterns[$0].matches(segments, interpretation)
                }
                let number = first ?? matches.count
                let isStricter = found.first.map { enforces($0) && !enforces(number) } ?? false
                guard interpretation.isDisjoint(with: .ofRouters) || first != nil && !isStricter
                else { continue }
                if !found.contains(number) { found.append(number) }
            }
        }
        return found
    }

    @Test(arguments: [0, 1, 2, 5, 10, 40, 200])
    func
        `a request has a rule when every interpretation of its origin meets it, and only then`(
            count: Int
        ) throws
    {
        var random = SeededGenerator(seed: UInt64(count) + 17)
        var disputes = 0
        for _ in 0..<3 {
            let matches = try (0..<count).map { _ in try Self.match(&random) }
            let origins = (0...count).map { _ in
                Bool.random(using: &random)
                    ? .all.subtracting(.ofRouters)
                    : PathInterpretation(rawValue: .random(in: 0 ... .max, using: &random))
            }
            let set = try ruleSet(matches, origins: origins, enforcing: 2)
            let patterns = matches.map { ReferencePattern($0.path.text) }
            // The reference tries each rule with each way to read a path.
            for _ in 0..<max(12, 40 - count) {
                let method =
                    (Self.methods + ["DELETE", "HEAD"]).randomElement(using: &random) ?? ""
                let host =
                    (Self.hosts + ["x.y.example.com", "EXAMPLE.com:80"])
                    .randomElement(using: &random) ?? ""
                let path = Self.path(of: matches, &random)
                let found = found(set, method, host, path)
                let asWritten = reference(matches, patterns, nil, method, host, path)
                try #require(found.first == asWritten[0], "\(path)")
                let all = reference(matches, patterns, origins[asWritten[0]], method, host, path)
                if all.count > 1 { disputes += 1 }
                guard found.last != -1 else { continue }
                expectEqual((found.count == 1), all.count == 1, "\(path) \(found) \(all)")
                #expect(found.allSatisfy(all.contains), "\(path) \(found) \(all)")
            }
        }
        #expect(count == 0 || disputes > 0)
    }

    @Test func `the first rule in order decides, not the most specific one`() throws {
        let set = try ruleSet([
            RouteMatch(path: try PathPattern("/v1/**")),
            RouteMatch(path: try PathPattern("/v1/orders")),
        ])
        expectEqual(found(set, "GET", "h", "/v1/orders"), [0])
        expectEqual(found(set, "GET", "h", "/v2"), [2])
    }

    @Test(arguments: bypasses)
    func `a path that some server takes for another rule's is disputed, unless it can't`(
        row: (pattern: String, path: String, steps: PathInterpretation)
    ) throws {
        let match = RouteMatch(path: try PathPattern(row.pattern))
        func found(_ made: PathInterpretation) throws -> Int {
            let set = try ruleSet([match], origins: [made, made], enforcing: 1)
            return self.found(set, "GET", "h", row.path).count
        }
        try expectEqual(found(.all), 2)
        try expectEqual(found(row.steps), 2)
        // It takes each of the steps.
        for bit in 0..<PathInterpretation.all.rawValue.nonzeroBitCount {
            let step = PathInterpretation(rawValue: 1 << UInt16(bit))
            guard row.steps.contains(step) else { continue }
            try expectEqual(found(row.steps.subtracting(step)), 1, "\(step)")
        }
        // Where every path meets one rule, nothing is disputed.
        let all = try ruleSet([RouteMatch(path: try PathPattern("/**"))])
        expectEqual(self.found(all, "GET", "h", row.path), [0])
    }

    /// Found in an attack: each signed request to a script was refused beside a rule that observes.
    @Test(arguments: [
        ("/pay.php", "/pay.php", [1]), ("/pay", "/pay.php", [2, 1]), ("/pay", "/pay", [1]),
    ])
    func `an enforced rule judges what routers take for a rule that observes, not the other way`(
        pattern: String,
        path: String,
        rules: [Int]
    ) throws {
        let paths = ["/other", pattern, "/**"]
        let set = try ruleSet(
            try paths.map { RouteMatch(path: try PathPattern($0)) },
            enforcing: 2
        )
        expectEqual(found(set, "GET", "h", path), rules)
    }

    @Test func `an undecoded path is looked up where only an undecoded segment has a rule`() throws
    {
        let set = try ruleSet([
            RouteMatch(path: try PathPattern("/v1/orders")),
            RouteMatch(path: try PathPattern("/v1/*")),
        ])
        expectEqual(found(set, "GET", "h", "/v1/%6Frders"), [0, 1])
        expectEqual(found(set, "GET", "h", "/v1/orders"), [0])
        expectEqual(found(set, "GET", "h", "/v1/a%20b"), [1])
    }

    @Test(arguments: [
        "/v1/users/JohnDoe", "/v1/users/a%20b%2Fc", "/v1/users/x;y=1", "/v1/users/joe@example.pl",
        "/v1/files/A//B/", "/v1/files/x.php/y", "/v1/files/My%20Photo;v=2.JPG/", "/v1/files",
        "/v1/users/a%3Bb", "/v1/users/%C3%A4%c3%b6", "/v1/files/a\\b%5Cc",
    ])
    func `what lies in a wildcard is nobody else's`(path: String) throws {
        let set = try ruleSet([
            RouteMatch(path: try PathPattern("/v1/orders")),
            RouteMatch(path: try PathPattern("/v1/files/**")),
            RouteMatch(path: try PathPattern("/v1/users/**")),
        ])
        expectEqual(found(set, "GET", "h", path).count, 1)
    }

    /// Rules `/v1/orders`, `/v1/place_order` and `/` that enforce, before two that are open, and a
    /// default that denies.
    @Test(arguments: [
        ("/v1/orders.json", 2), ("/v1/items.json", 1), ("/v1/place-order", 2), ("/v1/a-b_c.d", 1),
        ("/pages/index.html", 1), ("/pages/", 1), ("/pages/orders.json", 1), ("/index.html", 2),
        ("/pages/index.php/x", 1), ("/index.php/v1/orders", 2), ("/index.php/v1/x", 2),
    ])
    func `what routers do disputes a path only where it leads to a stricter rule`(
        path: String,
        count: Int
    ) throws {
        let paths: [(String, Mode)] = [
            ("/v1/orders", .enforce), ("/v1/place_order", .enforce), ("/", .enforce),
            ("/v1/*", .off), ("/pages/**", .off), ("/index.php/**", .off), ("/*", .off),
        ]
        func rules(_ paths: [(String, Mode)]) throws -> RuleSet {
            let rules = try paths.enumerated().map { index, row in
                let match = RouteMatch(path: try PathPattern(row.0))
                let origin = OriginIndex(0)
                return Rule(id: row.0, index: index, match: match, origin: origin, mode: row.1)
            }
            let last = Rule(id: "-", index: rules.count, match: .all, origin: nil, mode: .deny)
            return try #require(RuleSet(rules, default: last))
        }
        expectEqual(found(try rules(paths), "GET", "h", path).count, count)
        // A rule that enforces loses nothing to one that does not.
        let mirrored = paths.map { ($0.0, $0.1 == .off ? Mode.enforce : .off) }
        let isPlain = path.hasPrefix("/v1/") || path.hasPrefix("/pages/")
        if isPlain { expectEqual(found(try rules(mirrored), "GET", "h", path).count, 1) }
        // One that observes would stop requests once it enforces.
        let observed = paths.map { ($0.0, $0.1 == .off ? Mode.off : .observe) }
        expectEqual(found(try rules(observed), "GET", "h", path).count, count)
        let open = paths.map { ($0.0, Mode.off) }
        expectEqual(found(try rules(open), "GET", "h", path).count, 1)
    }

    @Test func `rules that decide alike do not dispute a path`() throws {
        func set(_ other: Mode, at origin: Int) throws -> RuleSet {
            let match = RouteMatch(path: try PathPattern("/admin"))
            let origin = OriginIndex(origin)
            let rule = Rule(id: "a", index: 0, match: match, origin: OriginIndex(0), mode: .off)
            let last = Rule(id: "d", index: 1, match: .all, origin: origin, mode: other)
            return try #require(RuleSet([rule], default: last))
        }
        try expectEqual(found(set(.off, at: 0), "GET", "h", "/Admin/"), [1])
        // Neither of the two refuses anything, now or later.
        try expectEqual(found(set(.off, at: 1), "GET", "h", "/Admin/"), [1])
        try expectEqual(found(set(.observe, at: 0), "GET", "h", "/Admin/"), [1, 0])
    }

    @Test func `rules with one limit of the risk decide alike where no bucket matters`() throws {
        func found(_ share: Share, _ action: RiskRule.Action) throws -> [Int] {
            let rules = try ["/v1/orders", "/v1/orders/"].enumerated().map { index, path in
                let id = "r\(index)"
                var demands = Rule.Demands(salt: id, mode: .enforce)
                var risk = RiskRule(max: 8, salt: "\(id)/risk")
                risk.action = action
                risk.rollout = Rollout(.fixed(share), salt: "\(id)/risk")
                demands.risk = risk
                return Rule(
                    id: id,
                    index: index,
                    match: RouteMatch(path: try PathPattern(path)),
                    origin: OriginIndex(0),
                    demands: demands
                )
            }
            let last = Rule(id: "-", index: 2, match: .all, origin: nil, mode: .deny)
            let set = try #require(RuleSet(rules, default: last))
            return self.found(set, "GET", "h", "/v1/orders/")
        }
        try expectEqual(found(.whole, .mark), [1])
        try expectEqual(found(.whole, .refuse), [1])
        try expectEqual(found(.none, .refuse), [1])
        let half = try #require(Share(millionths: 500_000))
        try expectEqual(found(half, .refuse), [1, 0])
    }

    @Test func `a path with more interpretations than are looked up is disputed`() throws {
        let words = (0..<60).map { "a\($0).php" }.joined(separator: "/")
        let set = try ruleSet([RouteMatch(path: try PathPattern("/b/" + words))])
        expectEqual(found(set, "GET", "h", "//x%20Y;a%3Bb/" + words + "/"), [1, -1])
    }

    @Test func `GET takes in HEAD unless an earlier rule names HEAD`() throws {
        let path = try PathPattern("/a")
        let set = try ruleSet([RouteMatch(methods: ["GET"], path: path)])
        expectEqual(found(set, "HEAD", "h", "/a"), [0])
        expectEqual(found(set, "POST", "h", "/a"), [1])
        let named = [["HEAD"], ["GET"]].map { RouteMatch(methods: $0, path: path) }
        expectEqual(found(try ruleSet(named), "HEAD", "h", "/a"), [0])
        expectEqual(found(try ruleSet(named), "GET", "h", "/a"), [1])
        expectEqual(found(try ruleSet(named.reversed()), "HEAD", "h", "/a"), [0])
        #expect(!named[0].covers(named[1]) && named[1].covers(named[0]))
    }

    @Test func `the name of a rule's method in another case is disputed`() throws {
        let set = try ruleSet([RouteMatch(methods: ["PURGE"])])
        expectEqual(found(set, "PURGE", "h", "/a"), [0])
        for method in ["purge", "Purge", "pURGE"] {
            expectEqual(found(set, method, "h", "/a"), [1, 0], "\(method)")
        }
        expectEqual(found(set, "purg", "h", "/a"), [1])
    }

    @Test(arguments: [
        ("/v1/Orders", "/v1/orders", 1), ("/v1/orders/", "/v1/orders", 1),
        ("/v1/orders", "/v1/orders/", 1), ("/a.php", "/a.php/x", 1), ("/v1/x", "/v1/*", nil),
        ("/v1/Users/*", "/v1/users/*", 1), ("/v1/a", "/v1/b", nil),
    ])
    func `a rule whose own paths are taken for another's is found`(
        first: String,
        second: String,
        disputed: Int?
    ) throws {
        let matches = try [first, second].map { RouteMatch(path: try PathPattern($0)) }
        let set = try ruleSet(matches)
        expectEqual(set.rules.dropLast().first { set.rival(of: $0) != nil }?.index, disputed)
        let exact = try ruleSet(matches, origins: [[], [], []])
        #expect(exact.rules.allSatisfy { exact.rival(of: $0) == nil })
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
