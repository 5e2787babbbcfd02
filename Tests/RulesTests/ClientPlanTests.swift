import Encodings
import Expectations
import Foundation
import HTTPWire
import RequestBinding
import Rules
import TestSupport
import Testing

/// The plan that apps are shipped with.
@Suite struct ClientPlanTests {
    private struct Plan: Decodable {
        struct Entry: Decodable {
            let name: String?
            let hosts: [String]?
            let methods: [String]?
            let paths: [String]?
            let sign: [String]
            let form: String?
            let device: Bool?
        }
        let rules: [Entry]
        let unmatched: Entry?
    }

    private static func rule(
        _ index: Int,
        _ match: RouteMatch,
        _ mode: Mode = .observe,
        _ edit: (inout Rule.Demands) -> Void = { _ in }
    ) -> Rule {
        var demands = Rule.Demands(salt: "r\(index)", mode: mode)
        demands.signing = .lines(.all, headers: [])
        demands.challenge = .required
        edit(&demands)
        let origin = mode == .deny ? nil : OriginIndex(index)
        return Rule(
            id: "r\(index)",
            index: index,
            match: match,
            origin: origin,
            demands: demands
        )
    }

    private static func set(_ rules: [Rule], _ mode: Mode = .off) throws -> RuleSet {
        let interpretations = [PathInterpretation](repeating: .asWritten, count: rules.count + 1)
        let fallback = rule(rules.count, .all, mode)
        return try #require(RuleSet(rules, default: fallback, origins: interpretations))
    }

    private static func found(
        _ set: RuleSet,
        _ method: String,
        _ host: String,
        _ path: String
    ) -> Int? {
        let (method, host) = (Array(method.utf8), Array(host.utf8))
        var view = view(path)
        switch set.route(method: method.span, host: host.span, view: &view) {
        case .rule(let rule): return rule.index
        case .disputed(let route): return route.found.index
        case .malformed: return nil
        }
    }

    // MARK: Matching

    @Test func `the gateway matches paths, hosts and methods as the shared vectors say`() throws {
        let vectors = try MatchingVectors.load()
        for one in vectors.paths {
            let set = try Self.set([
                Self.rule(0, RouteMatch(path: try PathPattern(one.pattern)))
            ])
            let found = Self.found(set, "GET", "h", one.path)
            expectEqual(found, one.matches ? 0 : 1, "\(one.pattern) \(one.path)")
        }
        for one in vectors.hosts {
            let pattern = try #require(HostPattern(text: one.pattern))
            expectEqual(pattern.text, one.pattern)
            let set = try Self.set([Self.rule(0, RouteMatch(host: pattern))])
            let found = Self.found(set, "GET", one.host, "/")
            expectEqual(found, one.matches ? 0 : 1, "\(one.pattern) \(one.host)")
        }
        for one in vectors.methods {
            let methods = one.pattern == ["*"] ? nil : one.pattern
            let set = try Self.set([Self.rule(0, RouteMatch(methods: methods))])
            let found = Self.found(set, one.method, "h", "/")
            expectEqual(found, one.matches ? 0 : 1, "\(one.pattern) \(one.method)")
        }
    }

    /// An app's matching by the plan: by the description in the client's guide, and by nothing of
    /// the gateway's code.
    private enum AppMatching {
        static func segments(_ path: some StringProtocol) -> [String] {
            let rest = path.dropFirst()
            guard !rest.isEmpty else { return [] }
            return rest.split(separator: "/", omittingEmptySubsequences: false)
                .map { $0.removingPercentEncoding ?? String($0) }
        }

        static func matches(path: String, _ pattern: String) -> Bool {
            let hasRest = pattern.hasSuffix("/**")
            let wanted = segments(hasRest ? pattern.dropLast(3) : pattern[...])
            let given = segments(path)
            guard hasRest ? given.count >= wanted.count : given.count == wanted.count else {
                return false
            }
            return zip(wanted, given).allSatisfy { $0 == "*" ? !$1.isEmpty : $0 == $1 }
        }

        static func matches(host: String, _ pattern: String) -> Bool {
            let name = String(host.lowercased().prefix { $0 != ":" })
            if pattern == "*" { return true }
            guard pattern.hasPrefix("*.") else { return name == pattern }
            return name.hasSuffix(pattern.dropFirst()) && name.count > pattern.count - 1
        }

        static func rule(_ plan: Plan, _ method: String, _ host: String, _ path: String) -> Int {
            let found = plan.rules.firstIndex { entry in
                (entry.methods ?? []).contains { $0 == "*" || $0 == method }
                    && (entry.hosts ?? []).contains { matches(host: host, $0) }
                    && (entry.paths ?? []).contains { matches(path: path, $0) }
            }
            return found ?? plan.rules.count
        }
    }

    @Test func `an app's matching agrees with the shared vectors`() throws {
        for one in try MatchingVectors.load().paths {
            expectEqual(
                AppMatching.matches(path: one.path, one.pattern),
                one.matches,
                "\(one.pattern) \(one.path)"
            )
        }
    }

    @Test(arguments: [1, 3, 10, 40])
    func `an app that follows the plan finds the rule that the gateway finds`(
        count: Int
    ) throws {
        var random = SystemRandomNumberGenerator()
        let words = ["v1", "orders", "Orders", "a", "b", "a%20b", "%6Frders", "x;y=1"]
        let hosts = ["api.example.com", "example.com", "b.api.example.com", "other.org"]
        let methods = ["GET", "POST", "HEAD", "PURGE"]
        func path(_ words: [String]) -> String {
            let parts = (0..<Int.random(in: 0...4, using: &random)).map { _ in
                words.randomElement(using: &random) ?? ""
            }
            return "/" + parts.joined(separator: "/")
        }
        var differing: Set<Int> = []
        for _ in 0..<20 {
            let rules = try (0..<count).map { index in
                var pattern = path(words + ["*", "*", "*"])
                if Int.random(in: 0..<4, using: &random) == 0, pattern != "/" { pattern += "/**" }
                let some = methods.filter { _ in Bool.random(using: &random) }
                let host: HostPattern? =
                    switch Int.random(in: 0..<4, using: &random) {
                    case 0: HostPattern(text: hosts.randomElement(using: &random) ?? "")
                    case 1: HostPattern(text: "*.example.com")
                    default: .any
                    }
                let match = RouteMatch(
                    host: try #require(host),
                    methods: some.isEmpty ? nil : some,
                    path: try PathPattern(pattern)
                )
                return Self.rule(index, match, [.off, .observe, .enforce][index % 3])
            }
            let set = try Self.set(rules)
            let plan = try JSONDecoder()
                .decode(Plan.self, from: Data(ClientPlan(set, endpoints: "/e").json))
            expectEqual(plan.rules.map(\.name), rules.map(\.id))
            for _ in 0..<60 {
                let method = (methods + ["DELETE"]).randomElement(using: &random) ?? ""
                let host = (hosts + ["API.example.com:8443"]).randomElement(using: &random) ?? ""
                let path = path(words + ["", "c"])
                let found = try #require(Self.found(set, method, host, path))
                differing.insert(found)
                let expected = AppMatching.rule(plan, method, host, path)
                expectEqual(found, expected, "\(method) \(host) \(path) \(rules.map(\.match.text))")
            }
        }
        #expect(differing.count > 1)
    }

    // MARK: The document

    @Test func `a plan says which rules ask for a device token`() throws {
        let rules = [Mode.enforce, .observe, .off].enumerated().map { index, mode in
            Self.rule(index, RouteMatch(methods: ["M\(index)"]), mode) {
                $0.device = DeviceRule(refused: [.neverSet])
            }
        }
        let plan = ClientPlan(try Self.set(rules, .observe), endpoints: "/e")
        let read = try JSONDecoder().decode(Plan.self, from: Data(plan.json))
        expectEqual(read.rules.map(\.device), [true, true, nil])
        expectEqual(read.unmatched.map(\.device), .some(nil))
    }

    @Test func `a plan says what is signed and nothing of policy`() throws {
        let host = try #require(HostPattern(text: "api.example.com"))
        let pointer = try #require(JSONPointer("/auth/a~1b"))
        let orders = RouteMatch(
            host: host,
            methods: ["POST"],
            path: try PathPattern("/v1/orders/**")
        )
        let rules = [
            Self.rule(0, orders, .enforce) {
                $0.signing = .lines(.all, headers: ["idempotency-key"])
                $0.counter = .window(8)
                $0.body = .held(limit: ByteCount(5), memory: ByteCount(5))
                $0.rollout = Rollout(.fixed(.none), salt: "secret")
                $0.apps = .named(["T.secret"])
                $0.fields.keyID = Array("x-key".utf8)
            },
            Self.rule(1, RouteMatch(methods: ["GET"]), .off),
            Self.rule(2, RouteMatch(methods: ["PUT"]), .deny),
            Self.rule(3, RouteMatch(methods: ["PATCH"]), .observe) {
                $0.signing = .content
                $0.challengeSource = .jsonPointer(pointer)
                $0.body = .held(limit: ByteCount(5), memory: ByteCount(5))
            },
            Self.rule(4, RouteMatch(methods: ["LINK"])) { $0.signing = .challenge },
            Self.rule(5, RouteMatch(methods: ["LOCK"])) {
                $0.counter = .strict
                $0.signing = .lines([.method, .body], headers: [])
                $0.challenge = .none
                $0.body = .streamed(limit: ByteCount(5))
            },
        ]
        let plan = ClientPlan(try Self.set(rules, .enforce), endpoints: "/.well-known/app-attest")
        let text = String(decoding: plan.json, as: UTF8.self)
        let compact = text.filter { !$0.isWhitespace }
        expectEqual(
            compact,
            """
            {"portcullis_plan":1,"endpoints":"/.well-known/app-attest","rules":[\
            {"name":"r0","hosts":["api.example.com"],"methods":["POST"],\
            "paths":["/v1/orders/**"],"sign":["method","target","body","challenge"],\
            "form":"lines","headers":["idempotency-key"],"challenge":"required",\
            "digest":"held","counter":8,"accept":["assertion"],"fields":{"key_id":"x-key"}},\
            {"name":"r1","hosts":["*"],"methods":["GET","HEAD"],"paths":["/**"],"sign":[]},\
            {"name":"r2","hosts":["*"],"methods":["PUT"],"paths":["/**"],"sign":[]},\
            {"name":"r3","hosts":["*"],"methods":["PATCH"],"paths":["/**"],\
            "sign":["content"],"form":"content","headers":[],"challenge":"required",\
            "challenge_pointer":"/auth/a~1b","digest":"held","counter":64,\
            "accept":["assertion"]},\
            {"name":"r4","hosts":["*"],"methods":["LINK"],"paths":["/**"],\
            "sign":["challenge-text"],"form":"challenge","headers":[],"challenge":"required",\
            "digest":"none","counter":64,"accept":["assertion"]},\
            {"name":"r5","hosts":["*"],"methods":["LOCK"],"paths":["/**"],\
            "sign":["method","body"],"form":"lines","headers":[],"challenge":"none",\
            "digest":"streamed","counter":"strict","accept":["assertion"]}],\
            "unmatched":{"sign":["method","target","body","challenge"],"form":"lines",\
            "headers":[],"challenge":"required","digest":"none","counter":64,\
            "accept":["assertion"]}}
            """
        )
        #expect(!text.contains("secret") && !text.contains("enforce"))
    }

    @Test(arguments: [Mode.off, .deny])
    func `nothing is to be proven where the default judges nothing`(mode: Mode) throws {
        let plan = ClientPlan(try Self.set([], mode), endpoints: "/e")
        let text = String(decoding: plan.json, as: UTF8.self)
        #expect(text.contains(#""unmatched": null"#))
    }
}

/// What a 401 and an origin's response tell of a rule.
@Suite struct ClientNoticeTests {
    private static func rule(_ demands: Rule.Demands) -> Rule {
        Rule(
            id: "a",
            index: 0,
            match: .all,
            origin: OriginIndex(0),
            demands: demands
        )
    }

    @Test(arguments: [
        (SigningForm.lines(.all, headers: []), #"sign="method target body challenge""#, ""),
        (.lines([.challenge], headers: []), #"sign="challenge""#, ""),
        (.lines([.target], headers: ["b", "a!"]), #"sign="target""#, #"headers="b a!""#),
        (.content, #"sign="content""#, ""), (.challenge, #"sign="challenge-text""#, ""),
    ])
    func `it is a list of parameters`(form: SigningForm, sign: String, headers: String) {
        var demands = Rule.Demands(salt: "a", mode: .enforce)
        demands.signing = form
        let rule = Self.rule(demands)
        let parts = [sign, headers].filter { !$0.isEmpty }
        let asked = (parts + [#"counter="64""#]).joined(separator: ", ")
        let next = (parts + ["counter=64"]).joined(separator: ";")
        expectEqual(rule.notice.challengeParameters, asked)
        expectEqual(rule.notice.enrol, "enrol;" + next)
        expectEqual(rule.notice.signAgain, "sign-again;" + next)
    }

    @Test func `a client is told that a rule asks for a device token`() {
        var demands = Rule.Demands(salt: "a", mode: .enforce)
        demands.signing = .lines([.target], headers: [])
        demands.device = DeviceRule(refused: [.neverSet])
        demands.counter = .strict
        let notice = Self.rule(demands).notice
        expectEqual(notice.challengeParameters, #"sign="target", device="token""#)
        expectEqual(notice.enrol, #"enrol;sign="target";device="token""#)
        expectEqual(notice.signAgain, #"sign-again;sign="target";device="token""#)
    }

    @Test func `a client is told of renamed fields, and of the challenge's place in the content`() {
        var demands = Rule.Demands(salt: "a", mode: .enforce)
        demands.signing = .content
        demands.challenge = .required
        demands.challengeSource = .jsonPointer(JSONPointer(tokens: ["a b", "c/d~", "é\"\\"]))
        demands.fields.keyID = Array("x-key".utf8)
        demands.fields.assertion = Array("x-proof".utf8)
        let notice = Self.rule(demands).notice
        let names = #"fields="key_id=x-key assertion=x-proof""#
        let pointer = #"challenge_pointer="/a%20b/c~1d~0/%C3%A9%22%5C""#
        expectEqual(
            notice.challengeParameters,
            #"sign="content", "# + names + ", " + pointer + #", counter="64""#
        )
        expectEqual(
            notice.enrol,
            #"enrol;sign="content";"# + names + ";" + pointer + ";counter=64"
        )
    }

    @Test func `a client is told how many requests of a key may overtake each other`() {
        let notice = Rule.openingSessions(apps: []).notice
        expectEqual(
            notice.challengeParameters,
            #"sign="method target body challenge", counter="64""#
        )
        expectEqual(notice.enrol, #"enrol;sign="method target body challenge";counter=64"#)
        expectEqual(notice.signAgain, #"sign-again;sign="method target body challenge";counter=64"#)
    }
}
