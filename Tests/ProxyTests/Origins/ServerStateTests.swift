import EventLoops
import Expectations
import Testing

@testable import Proxy

@Suite struct ServerStateTests {
    private let state = ServerState()
    private var rule = Ejection()

    init() {
        rule.time = 10_000
        rule.timeMax = 60_000
    }

    @Test func `requests under way and those that have ended are counted`() {
        for _ in 0..<3 { state.began() }
        #expect((state.active, state.served) == (3, 0))
        state.ended(hadRequest: true, waited: 7)
        state.ended(hadRequest: false)
        #expect((state.active, state.served) == (1, 1))
        state.ended(hadRequest: true, waited: .max - 9)
        expectEqual(state.waited, .nanoseconds(Int64.max))
        #expect((state.active, state.served) == (0, 2))
    }

    @Test func `a success between failures begins the count anew`() {
        expectEqual(state.requestFailed(), 1)
        expectEqual(state.requestFailed(), 2)
        state.succeeded()
        expectEqual(state.requestFailed(), 1)
    }

    @Test func `an ejection ends by itself, and the next one is longer`() {
        var now: UInt64 = 1_000
        for seconds: UInt64 in [10, 20, 40, 60, 60] {
            state.eject(rule, now: now)
            expectEqual(state.standing(now: now + seconds * 1_000 - 1), .paused)
            expectEqual(state.condition(now: now), .ejected)
            now += seconds * 1_000
            expectEqual(state.standing(now: now), .fit)
            expectEqual(state.condition(now: now), .up)
        }
        expectEqual(state.ejections, 5)
        // It went well for long enough.
        now += 60_001
        state.eject(rule, now: now)
        expectEqual(state.standing(now: now + 10_000), .fit)
    }

    @Test func `no more servers are ejected than may be`() {
        let origin = OriginState()
        let servers = (0..<3).map { _ in ServerState() }
        origin.take(servers)
        for server in servers { origin.eject(server, rule, now: 1) }
        expectEqual(servers.map { $0.isEjected(now: 2) }, [true, false, false])
        origin.eject(servers[1], rule, now: 10_001)
        expectEqual(servers.map { $0.isEjected(now: 10_002) }, [false, true, false])
    }

    @Test func `an origin's only server is never ejected`() {
        let origin = OriginState()
        origin.take([state])
        origin.eject(state, rule, now: 1)
        expectEqual(state.standing(now: 2), .fit)
    }

    @Test func `a server that came back gets its share step by step`() {
        expectEqual(state.share(slowStart: 10_000, now: 5), 256)
        state.eject(rule, now: 0)
        expectEqual(state.share(slowStart: 10_000, now: 10_000), 1)
        expectEqual(state.share(slowStart: 10_000, now: 12_500), 64)
        expectEqual(state.share(slowStart: 10_000, now: 15_000), 128)
        expectEqual(state.share(slowStart: 10_000, now: 20_000), 256)
        expectEqual(state.share(slowStart: 0, now: 10_000), 256)
    }

    @Test func `a drained server gets nothing until it is undrained`() {
        state.drain()
        #expect(state.isClosed)
        expectEqual(state.condition(now: 1), .drained)
        state.undrain(now: 2)
        #expect(!state.isClosed)
        expectEqual(state.condition(now: 3), .up)
    }

    @Test func `checks take a server out and back after so many in a row`() {
        var check = ServerCheck()
        (check.healthy, check.unhealthy) = (2, 3)
        var streak = CheckStreak()
        let steps: [(CheckResult, CheckStreak.Change?)] = [
            (.passed, nil), (.failed, nil), (.timeout, nil), (.passed, nil), (.failed, nil),
            (.status(500), nil), (.failed, .down), (.failed, nil), (.passed, nil), (.failed, nil),
            (.passed, nil), (.passed, .up), (.passed, nil),
        ]
        for (result, change) in steps { expectEqual(streak.took(result, check), change) }
    }

    @Test func `a server is used again when it is checked no more`() {
        var check = ServerCheck()
        check.unhealthy = 1
        expectEqual(state.checked(.failed, check, now: 1, wall: 7), .down)
        #expect(state.isClosed)
        expectEqual(state.lastCheck?.what, .failed)
        expectEqual(state.lastCheck?.at, 7)
        state.forgetChecks(now: 2)
        #expect(!state.isClosed)
    }

    @Test func `a server that takes no connection is tried once a second`() {
        let health = state.health
        #expect(!health.beginEarlyTrial(now: 5_000))
        health.failed(.connectTimedOut, begunAt: 5_000, now: 8_000)
        #expect(health.beginEarlyTrial(now: 8_001))
        #expect(!health.beginEarlyTrial(now: 9_000))
        #expect(health.beginEarlyTrial(now: 9_001))
        expectEqual(state.condition(now: 9_001), .unreachable)
        health.connected(now: 9_002)
        #expect(!health.beginEarlyTrial(now: 20_000))
        expectEqual(state.condition(now: 9_003), .up)
    }

    @Test func `retries are a share of the requests under way, and some in any case`() {
        var rule = RetryRule()
        (rule.budget, rule.minimum) = (20, 3)
        #expect(rule.allows(retrying: 2, active: 0))
        #expect(!rule.allows(retrying: 3, active: 10))
        #expect(rule.allows(retrying: 19, active: 100))
        #expect(!rule.allows(retrying: 20, active: 100))
        let origin = OriginState()
        // An origin without retries has none left.
        #expect(!origin.mayRetry(rule))
        rule.max = 1
        for _ in 0..<3 {
            #expect(origin.mayRetry(rule))
            origin.retryBegan()
        }
        #expect(!origin.mayRetry(rule))
        origin.retryEnded()
        #expect(origin.mayRetry(rule))
    }

    @Test func `the same address keeps its state over a reload, and what is gone is forgotten`()
        throws
    {
        let registry = OriginRegistry()
        let (one, two) = (try #require(address(1)), try #require(address(2)))
        func origin(_ servers: [ServerState]) -> OriginSettings {
            OriginSettings(
                name: "shop",
                servers: servers.map {
                    OriginServerSettings(name: "a:1", address: one, state: $0)
                },
                state: registry.origin("shop")
            )
        }
        let state = registry.server("a:1", at: one, of: "shop")
        #expect(registry.server("a:1", at: one, of: "shop") === state)
        #expect(registry.server("a:1", at: two, of: "shop") !== state)
        #expect(registry.server("a:1", at: one, of: "media") !== state)
        registry.keep([origin([state])], servers: ["a:1"])
        #expect(registry.server("a:1", at: one, of: "shop") === state)
        registry.keep([], servers: [])
        #expect(registry.server("a:1", at: one, of: "shop") !== state)
    }

    @Test func `a drained server that has no address yet is drained when it has one`() throws {
        let registry = OriginRegistry()
        let one = try #require(address(1))
        registry.drain("a:1")
        registry.keep([], servers: ["a:1"])
        expectEqual(registry.server("a:1", at: one, of: "shop").condition(now: 0), .drained)
        registry.keep([], servers: [])
        expectEqual(registry.drained, [])
    }

    private func address(_ last: Int) -> SocketAddress? {
        SocketAddress(ip: "127.0.0.\(last)", port: 80)
    }
}
