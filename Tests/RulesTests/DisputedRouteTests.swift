import Expectations
import HTTPWire
import Rules
import Testing

/// Which of several rules decides about a request that they dispute.
@Suite struct DisputedRouteTests {
    private func dispute(
        _ modes: [Mode],
        _ fallback: Mode = .off,
        share: Share = .whole
    ) throws -> DisputedRoute? {
        let paths = ["/v1/orders", "/v1/orders;x"]
        let rules = try modes.enumerated().map { index, mode in
            var demands = Rule.Demands(salt: "r\(index)", mode: mode)
            demands.rollout = Rollout(.fixed(share), salt: "r\(index)")
            return Rule(
                id: "r\(index)",
                index: index,
                match: RouteMatch(path: try PathPattern(paths[index])),
                origin: OriginIndex(index),
                demands: demands
            )
        }
        let last = Rule(
            id: "default",
            index: rules.count,
            match: .all,
            origin: fallback == .deny ? nil : OriginIndex(9),
            mode: fallback
        )
        let set = try #require(RuleSet(rules, default: last))
        let path = Array("/v1/orders;x/".utf8)
        var view = TargetView()
        view.read(path.span, 0..<path.count)
        let method = Array("POST".utf8)
        let host = Array("h".utf8)
        switch set.route(method: method.span, host: host.span, view: &view) {
        case .disputed(let route): return route
        case .rule, .malformed: return nil
        }
    }

    @Test(arguments: [
        ([Mode.observe], Mode.off, "r0"), ([.enforce], .off, "r0"), ([.off], .observe, "default"),
        ([.observe], .observe, "r0"), ([.observe, .enforce], .off, "r1"),
        ([.off, .observe], .off, "r1"), ([.observe, .observe], .off, "r0"),
        ([.observe], .enforce, "default"),
    ])
    func `where none refuses the client, the strictest decides, of two the earlier one`(
        modes: [Mode],
        fallback: Mode,
        deciding: String
    ) throws {
        let route = try #require(try dispute(modes, fallback))
        expectEqual(route.reason, .pathAmbiguous)
        expectEqual(route.found.id, "default")
        expectEqual(route.deciding { _ in false }.id, deciding)
    }

    @Test func `a rule that refuses the client decides before a stricter one that does not`() throws
    {
        let half = try #require(Share(millionths: 500_000))
        let route = try #require(try dispute([.enforce, .enforce], share: half))
        // A client in the rollout of the second alone.
        expectEqual(route.deciding { $0.id == "r1" }.id, "r1")
        // The first that refuses every client ends the look-up.
        let whole = try #require(try dispute([.enforce, .enforce]))
        expectEqual(whole.rivals.count, 1)
        expectEqual(whole.deciding(\.refusesAll).id, whole.rivals.first?.id)
    }

    @Test func `the other rules that judge would refuse it, too`() throws {
        let route = try #require(try dispute([.observe, .observe], .off))
        let deciding = route.deciding { _ in false }
        expectEqual(route.others(than: deciding, atMost: 16).map(\.id), ["r1"])
        expectEqual(route.others(than: deciding, atMost: 0).map(\.id), [])
        // The rule of the path as written is one of them, where another one decides.
        let found = try #require(try dispute([.enforce], .observe))
        expectEqual(found.others(than: found.rivals[0], atMost: 16).map(\.id), ["default"])
    }

    @Test func `rules that are off dispute nothing`() throws {
        #expect(try dispute([.off, .off]) == nil)
        #expect(try dispute([.off], .off) == nil)
    }
}
