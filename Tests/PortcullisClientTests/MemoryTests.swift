import Expectations
import Foundation
import RequestBinding
import Testing

@testable import PortcullisClient

@Suite struct MemoryTests {
    private let now = Date(timeIntervalSince1970: 1_800_000_000)

    private func place(_ path: String) -> RequestPlace { RequestPlace(host: "h", path: path) }

    @Test(arguments: [
        ("/v1/orders/17", "/v1/orders/*"), ("/v1/orders/", "/v1/orders/"), ("/", "/"),
        ("/users/0c1d6c2e-55b4-4b8e-9e10-0c1b2d3e4f50/avatar", "/users/*/avatar"),
        ("/blobs/deadbeef01", "/blobs/*"), ("/v2/cafe", "/v2/cafe"), ("/v1", "/v1"),
        ("/t/a-text-that-is-longer-than-names", "/t/*"),
    ])
    func `paths that differ by an identifier are one route`(path: String, shape: String) {
        expectEqual(LearnedRoutes.Route(method: "GET", place: place(path)).path, shape)
    }

    @Test func `learned routes are bounded, and the one used longest ago gives way`() {
        var routes = LearnedRoutes(limit: 2)
        let all = ["/a", "/b", "/c"].map { LearnedRoutes.Route(method: "GET", place: place($0)) }
        routes.learn(SigningRequirement(), for: all[0])
        routes.learn(nil, for: all[1])
        _ = routes.entry(for: all[0])
        routes.learn(nil, for: all[2])
        expectEqual(routes.count, 2)
        expectEqual(routes.entry(for: all[0])?.requirement, SigningRequirement())
        expectEqual(routes.entry(for: all[1]), nil)
    }

    @Test func `challenges are used newest first, bounded, and only while they live`() {
        var pool = ChallengePool(limit: 3)
        for (place, text) in ["a", "b", "c", "d", "d"].enumerated() {
            pool.add(text, until: now.addingTimeInterval(Double(100 - place * 10)))
        }
        expectEqual(pool.count, 3)
        expectEqual(pool.take(now: now.addingTimeInterval(75))?.text, "c")
        expectEqual(pool.take(now: now.addingTimeInterval(75))?.text, "b")
        expectEqual(pool.take(now: now)?.text, nil)
        // A cached answer brings one again that was used.
        pool.add("b", until: now.addingTimeInterval(100))
        expectEqual(pool.take(now: now)?.text, nil)
    }

    @Test func `a turnstile lets one through at a time, in order, and nobody waits for ever`()
        async throws
    {
        let clock = ManualClock()
        let turnstile = Turnstile(clock: clock)
        let held = try #require(await turnstile.enter(within: 5))
        let order = Guarded<[Int]>([])
        let first = Task {
            let turn = await turnstile.enter(within: 50)
            order.withLock { $0.append(1) }
            return turn
        }
        while await turnstile.waitingCount < 1 { await Task.yield() }
        let late = Task { await turnstile.enter(within: 5) }
        while await turnstile.waitingCount < 2 { await Task.yield() }
        clock.advance(by: 6)
        await expectEqual(late.value, nil)
        await turnstile.leave(held)
        let next = try #require(await first.value)
        expectEqual(order.withLock { $0 }, [1])
        // A turn that has ended ends nobody else's.
        await turnstile.leave(held)
        await expectEqual(turnstile.enter(within: 0), nil)
        await turnstile.leave(next)
        #expect(await turnstile.enter(within: 0) != nil)
    }

    @Test func `work ends once, and asking for it ends with its time or its task`() async {
        let clock = ManualClock()
        let work = SharedWork<Int>()
        let time = clock.now.addingTimeInterval(1)
        async let early = work.value(until: time, by: clock)
        clock.advance(by: 2)
        await expectEqual(early, nil)
        await expectEqual(work.value(until: time, by: clock), nil)
        let cancelled = Task { await work.value(until: .distantFuture, by: clock) }
        cancelled.cancel()
        await expectEqual(cancelled.value, nil)
        work.end(with: 1)
        work.end(with: 2)
        await expectEqual(work.value(until: clock.now, by: clock), 1)
    }
}
