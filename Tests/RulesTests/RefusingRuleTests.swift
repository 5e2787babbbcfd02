import Cryptography
import Expectations
import HTTPWire
import Rules
import TestSupport
import Testing

/// Which clients are refused before they are judged, for random rules, modes and shares.
@Suite struct RefusingRuleTests {
    private static let now = UnixTime(seconds: 1_790_000_000)
    private static let paths = [
        "/v1/orders", "/v1/place_order", "/v1/*", "/V1/Orders", "/v1/users/*", "/pay.php",
        "/admin/**", "/v1/**", "/a", "/",
    ]
    private static let methods: [[String]?] = [nil, nil, ["POST"], ["PURGE"], ["GET", "REPORT"]]
    /// The methods of requests, two of them in another case than rules name them.
    private static let asked = ["POST", "GET", "PURGE", "purge", "Report", "PATCH"]
    private static let shares = [0, 1, 250_000, 500_000, 1_000_000]

    /// Rules of one set, in the modes and shares that are tried, and in others.
    private struct Trial {
        let tried: RuleSet
        /// The same rules, each `off`.
        let off: RuleSet
        /// The same rules, each enforced for all: there every interpretation counts.
        let enforced: RuleSet

        init(_ random: inout SeededGenerator) throws {
            let matches = try (0..<Int.random(in: 1...6, using: &random)).map { _ in
                RouteMatch(
                    methods: RefusingRuleTests.methods.randomElement(using: &random) ?? nil,
                    path: try PathPattern(
                        RefusingRuleTests.paths.randomElement(using: &random) ?? "/"
                    )
                )
            }
            let modes = (0...matches.count).map { _ in
                Mode.allCases.randomElement(using: &random) ?? .off
            }
            let granted = try (0...matches.count).map { _ in
                let millionths = RefusingRuleTests.shares.randomElement(using: &random) ?? 0
                return try #require(Share(millionths: millionths))
            }
            func set(_ rule: (Int) -> (Mode, Share)) throws -> RuleSet {
                let rules = (matches + [.all]).enumerated().map { index, match in
                    let (mode, share) = rule(index)
                    var demands = Rule.Demands(salt: "r\(index)", mode: mode)
                    demands.rollout = Rollout(.fixed(share), salt: "r\(index)")
                    return Rule(
                        id: index == matches.count ? "default" : "r\(index)",
                        index: index,
                        match: match,
                        origin: mode == .deny ? nil : OriginIndex(index),
                        demands: demands
                    )
                }
                return try #require(RuleSet(rules.dropLast(), default: rules[matches.count]))
            }
            tried = try set { (modes[$0], granted[$0]) }
            off = try set { _ in (.off, .whole) }
            enforced = try set { _ in (.enforce, .whole) }
        }

        /// The other rules that a request may be meant for: those of each interpretation of its
        /// path, or all of them where it names a method of a rule in another case.
        func others(_ method: String, _ path: String, found: Int) -> Set<Int> {
            var others: Set<Int> = []
            let rules = tried.rules
            let names = rules.flatMap { $0.match.methods ?? [] }
            if !names.contains(method), names.contains(method.uppercased()) {
                return Set(rules.indices).subtracting([found])
            }
            // What a rule denies reaches no origin, which could take its path for another one.
            guard rules[found].mode != .deny else { return [] }
            var view = view(path)
            let readings = enforced.readings(
                method: Array(method.utf8).span,
                host: Array("h".utf8).span,
                view: &view
            )
            for reading in readings where reading.isRival {
                let index = reading.rule.index
                // The habits of routers count only where they lead to a rule that is not off, and
                // is as strict as an enforced one.
                let isStricter = rules[found].mode == .enforce && rules[index].mode == .observe
                if reading.interpretation.isDisjoint(with: .ofRouters)
                    || rules[index].mode != .off && !isStricter
                {
                    others.insert(index)
                }
            }
            return others.subtracting([found])
        }
    }

    /// What becomes of a request before it is judged.
    private enum Fate: Equatable {
        case malformed(Malformed.Reason)
        /// One rule judges it.
        case judged
        case refused
        /// It is forwarded, whatever its proof.
        case unjudged
    }

    private static func route(_ set: RuleSet, _ method: String, _ path: String) -> RuleSet.Route {
        var view = view(path)
        return set.route(
            method: Array(method.utf8).span,
            host: Array("h".utf8).span,
            view: &view
        )
    }

    private static func fate(_ route: RuleSet.Route, _ refuses: (Rule) -> Bool) -> Fate {
        switch route {
        case .malformed(let reason, _): .malformed(reason)
        case .rule: .judged
        case .disputed(let dispute): refuses(dispute.deciding(refuses)) ? .refused : .unjudged
        }
    }

    private static func found(_ route: RuleSet.Route) -> Rule {
        switch route {
        case .malformed(_, let rule), .rule(let rule): rule
        case .disputed(let dispute): dispute.found
        }
    }

    private static func path(_ random: inout SeededGenerator) -> String {
        let pattern = paths.randomElement(using: &random) ?? "/"
        let plain = pattern.replacing("**", with: "x/y").replacing("*", with: "17")
        let count = Int.random(in: 0...3, using: &random)
        let path = PathSpelling.changed(plain, times: count, &random)
        // Some have no single meaning, whatever the rules.
        let odd = ["/..", "/../a", "%2Fx", "%00", "/%2e%2e/v1/orders"]
        let isOdd = Int.random(in: 0..<12, using: &random) == 0
        return isOdd ? path + (odd.randomElement(using: &random) ?? "") : path
    }

    /// Whether a rule refuses a client that proves nothing.
    private static func refuses(_ rule: Rule, _ client: [UInt8]) -> Bool {
        switch rule.mode {
        case .off, .observe: false
        case .deny: true
        case .enforce: rule.rollout.enforces(client.span, at: now)
        }
    }

    @Test func `what no rule may forward is the same in every mode, and so is the rule found`()
        throws
    {
        var random = SeededGenerator(seed: 48)
        var malformed = 0
        for _ in 0..<200 {
            let rules = try Trial(&random)
            for _ in 0..<30 {
                let method = Self.asked.randomElement(using: &random) ?? ""
                let path = Self.path(&random)
                let tried = Self.route(rules.tried, method, path)
                let off = Self.route(rules.off, method, path)
                let request = Comment(rawValue: "\(method) \(path)")
                expectEqual(Self.found(tried).index, Self.found(off).index, request)
                var reasons: [Malformed.Reason?] = []
                for route in [tried, off] {
                    if case .malformed(let reason, _) = route {
                        reasons.append(reason)
                    } else {
                        reasons.append(nil)
                    }
                }
                expectEqual(reasons[0], reasons[1], request)
                if reasons[1] != nil { malformed += 1 }
            }
        }
        #expect(malformed > 100)
    }

    @Test
    func `a client is refused where a rule of any interpretation refuses it, and nowhere else`()
        throws
    {
        var random = SeededGenerator(seed: 49)
        var counts: [String: Int] = [:]
        for _ in 0..<200 {
            let rules = try Trial(&random)
            for _ in 0..<30 {
                let method = Self.asked.randomElement(using: &random) ?? ""
                let path = Self.path(&random)
                // What is malformed is refused in any case; the test above has it.
                if case .malformed = Self.route(rules.off, method, path) { continue }
                let route = Self.route(rules.tried, method, path)
                let found = Self.found(route)
                let others = rules.others(method, path, found: found.index)
                    .sorted().map { rules.tried.rules[$0] }
                let client = (0..<4).map { _ in UInt8.random(in: 0...255, using: &random) }
                let fate = Self.fate(route) { Self.refuses($0, client) }
                let modes = ([found] + others).map { "\($0.id) \($0.mode)" }
                let request = "\(method) \(path) \(modes) \(fate)"
                let mayRefuse = ([found] + others).contains { Self.refuses($0, client) }
                if others.contains(where: { Self.refuses($0, client) }) {
                    expectEqual(fate, .refused, Comment(rawValue: request))
                }
                if fate == .refused { #expect(mayRefuse, Comment(rawValue: request)) }
                if fate == .unjudged { #expect(!mayRefuse, Comment(rawValue: request)) }
                counts["\(fate)", default: 0] += 1
                // A client outside every share is refused by rules that deny, and by no other.
                let outside = Self.fate(route) { $0.mode == .deny }
                if outside == .refused {
                    #expect(([found] + others).contains { $0.mode == .deny }, "\(request)")
                }
            }
        }
        for fate in [Fate.judged, .refused, .unjudged] {
            #expect(counts["\(fate)", default: 0] > 100, "\(counts)")
        }
    }
}
