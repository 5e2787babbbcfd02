import Expectations
import Foundation
import Testing

@testable import PortcullisClient

@Suite struct RouteTableTests {
    private func routes(_ clock: ManualClock, limit: Int = 128) throws -> RouteTable {
        var configuration = PortcullisConfiguration(gateway: try Bench.url(FakeGateway.origin))
        configuration.defaultRequirement = SigningRequirement(counter: .window(64))
        configuration.clock = clock
        configuration.limits.routesLearned = limit
        return RouteTable(configuration)
    }

    private func counter(_ routes: RouteTable, _ path: String) throws -> SigningRequirement.Counter?
    {
        let url = try Bench.url(FakeGateway.origin + path)
        guard case .asks(let requirement) = routes.knowledge(method: "GET", url: url) else {
            return nil
        }
        return requirement.counter
    }

    @Test func `one replayed counter makes a route strict for a while, not for ever`() throws {
        let clock = ManualClock()
        let routes = try routes(clock)
        let url = try Bench.url(FakeGateway.origin + "/a")
        routes.expectStrict(method: "GET", url: url)
        try expectEqual(counter(routes, "/a"), .strict)
        try expectEqual(counter(routes, "/b"), .window(64))
        // What is learned meanwhile does not make it last.
        let lesson = try #require(
            RouteLesson(["sign": "method target", "headers": "", "counter": "64"])
        )
        _ = routes.learn(lesson, method: "GET", url: url)
        routes.amend(method: "GET", url: url) { $0.accepts = [.assertion] }
        try expectEqual(counter(routes, "/a"), .strict)
        clock.advance(by: 601)
        try expectEqual(counter(routes, "/a"), .window(64))
        routes.expectStrict(method: "GET", url: url)
        clock.advance(by: -1e8)
        try expectEqual(counter(routes, "/a"), .window(64))
    }

    @Test func `routes that count as strict are bounded`() throws {
        let clock = ManualClock()
        let routes = try routes(clock, limit: 2)
        for path in ["/a", "/b", "/c"] {
            routes.expectStrict(method: "GET", url: try Bench.url(FakeGateway.origin + path))
            clock.advance(by: 1)
        }
        try expectEqual(counter(routes, "/a"), .window(64))
        try expectEqual(counter(routes, "/c"), .strict)
    }
}
