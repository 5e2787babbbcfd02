import Expectations
import Testing

@testable import Proxy

@Suite struct ServerHealthTests {
    private let health = ServerHealth()

    @Test func `a server without failures is fit`() {
        expectEqual(health.standing(now: 10), .fit)
        health.connected(now: 1)
        health.responded(now: 20)
        expectEqual(health.standing(now: 30), .fit)
    }

    @Test func `a failure pauses a server for five seconds, then one trial is due`() {
        health.failed(.connectTimedOut, begunAt: 1_000, now: 4_000)
        expectEqual(health.standing(now: 4_000), .paused)
        expectEqual(health.standing(now: 8_999), .paused)
        expectEqual(health.standing(now: 9_000), .trialDue)
        expectEqual(health.beginTrial(now: 9_000), .connectTimedOut)
        // Another event loop finds the trial taken.
        expectEqual(health.standing(now: 9_001), .paused)
        expectEqual(health.beginTrial(now: 9_001), nil)
    }

    @Test func `a pause doubles with each timeout, up to forty seconds`() {
        var now: UInt64 = 1_000
        for seconds: UInt64 in [5, 10, 20, 40, 40, 40] {
            health.failed(.silent, begunAt: now, now: now + 1)
            expectEqual(health.standing(now: now + seconds * 1_000), .paused)
            expectEqual(health.standing(now: now + seconds * 1_000 + 1), .trialDue)
            now += seconds * 1_000 + 1
        }
    }

    @Test func `a refusal is tried again every five seconds`() {
        for start: UInt64 in [1_000, 7_000, 13_000] {
            health.failed(.refused, begunAt: start, now: start)
            expectEqual(health.standing(now: start + 4_999), .paused)
            expectEqual(health.standing(now: start + 5_000), .trialDue)
        }
    }

    @Test func `requests that began before a failure was noted don't prolong the pause`() {
        for now: UInt64 in 60_000..<60_050 { health.failed(.silent, begunAt: 100, now: now) }
        expectEqual(health.standing(now: 65_000), .trialDue)
    }

    @Test func `a connect that ends well ends the pause of one that did not`() {
        health.failed(.connectTimedOut, begunAt: 0, now: 3_000)
        health.connected(now: 1)
        expectEqual(health.standing(now: 3_001), .fit)
    }

    @Test func `a connect that ends well says nothing about responses`() {
        health.failed(.silent, begunAt: 1, now: 3_000)
        health.connected(now: 1)
        expectEqual(health.standing(now: 3_001), .paused)
        health.responded(now: 3_002)
        expectEqual(health.standing(now: 3_003), .fit)
    }

    @Test func `a server that answers others is not paused for one slow response`() {
        health.responded(now: 500)
        health.wasSilent(since: 400, now: 60_400)
        expectEqual(health.standing(now: 60_401), .fit)
        health.wasSilent(since: 501, now: 60_501)
        expectEqual(health.standing(now: 60_502), .paused)
    }

    @Test func `a server that takes suspiciously long is passed over until its connect ends`() {
        health.suspected(until: 3_000)
        expectEqual(health.standing(now: 2_999), .paused)
        expectEqual(health.standing(now: 3_000), .trialDue)
        health.connected(now: 1)
        expectEqual(health.standing(now: 3_001), .fit)
    }

    @Test func `a suspicion does not shorten a pause`() {
        health.failed(.silent, begunAt: 1, now: 1_000)
        health.suspected(until: 2_000)
        expectEqual(health.standing(now: 5_999), .paused)
    }
}
