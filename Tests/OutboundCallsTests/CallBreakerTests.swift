import Expectations
import Testing

@testable import OutboundCalls

struct CallBreakerTests {
    private static let second: UInt64 = 1_000_000_000

    /// One that has failed as often as it may.
    private static func opened(now: UInt64 = 0) -> CallBreaker {
        var breaker = CallBreaker()
        for _ in 0..<CallBreaker.failuresMax { breaker.failed(.call, now: now, random: .max) }
        return breaker
    }

    @Test func `five failures in a row leave the host alone, and a success between starts anew`() {
        var breaker = CallBreaker()
        for _ in 0..<4 { breaker.failed(.call, now: 0, random: 0) }
        expectEqual(breaker.asked(now: 0), .call)
        breaker.succeeded(.call)
        for _ in 0..<4 { breaker.failed(.call, now: 0, random: 0) }
        expectEqual(breaker.condition, .closed)
        breaker.failed(.call, now: 0, random: 0)
        expectEqual(breaker.condition, .open)
        expectEqual(breaker.asked(now: 0), .refused)
    }

    @Test func `after the pause one call decides, and others wait for it`() {
        var breaker = Self.opened()
        expectEqual(breaker.asked(now: 2 * Self.second), .probe)
        expectEqual(breaker.condition, .halfOpen)
        expectEqual(breaker.asked(now: 3 * Self.second), .refused)
        breaker.succeeded(.probe)
        expectEqual(breaker.asked(now: 3 * Self.second), .call)
    }

    @Test func `a probe that fails makes the pause twice as long, up to two minutes`() {
        var breaker = Self.opened()
        var now: UInt64 = 0
        for seconds in [2, 4, 8, 16, 32, 64, 120, 120] as [UInt64] {
            // Jitter leaves at least half.
            expectEqual(breaker.asked(now: now + seconds * Self.second / 2 - 1), .refused)
            now += seconds * Self.second
            expectEqual(breaker.asked(now: now), .probe, "\(seconds)")
            breaker.failed(.probe, now: now, random: .max)
        }
    }

    @Test func `late news of calls from before decides nothing`() {
        var breaker = Self.opened()
        breaker.succeeded(.call)
        breaker.failed(.call, now: 0, random: 0)
        expectEqual(breaker.condition, .open)
        expectEqual(breaker.asked(now: 2 * Self.second), .probe)
        breaker.succeeded(.call)
        breaker.failed(.call, now: 0, random: 0)
        expectEqual(breaker.condition, .halfOpen)
    }

    @Test func `a probe that is not made after all leaves the next one to decide`() {
        var breaker = Self.opened()
        expectEqual(breaker.asked(now: 2 * Self.second), .probe)
        breaker.probeDropped(now: 2 * Self.second)
        expectEqual(breaker.asked(now: 2 * Self.second), .probe)
    }

    @Test func `a host is left alone for as long as it asks, at most an hour`() {
        var breaker = CallBreaker()
        breaker.throttled(.call, for: .seconds(90), now: 0, random: 0)
        expectEqual(breaker.asked(now: 90 * Self.second - 1), .refused)
        expectEqual(breaker.asked(now: 90 * Self.second), .probe)
        var other = CallBreaker()
        other.throttled(.call, for: .seconds(Int64.max), now: 0, random: 0)
        expectEqual(other.asked(now: 3_600 * Self.second - 1), .refused)
        expectEqual(other.asked(now: 3_600 * Self.second), .probe)
    }

    @Test(arguments: [
        (CallReply.answered(status: 200, retryAfter: nil, body: []), CallOutcome.worked),
        (.answered(status: 304, retryAfter: nil, body: []), .worked),
        (.answered(status: 400, retryAfter: nil, body: []), .worked),
        (.answered(status: 401, retryAfter: nil, body: []), .failed),
        (.answered(status: 403, retryAfter: nil, body: []), .worked),
        (.answered(status: 404, retryAfter: nil, body: []), .worked),
        (.answered(status: 429, retryAfter: nil, body: []), .throttled(retryAfter: nil)),
        (.answered(status: 429, retryAfter: 7, body: []), .throttled(retryAfter: .seconds(7))),
        (.answered(status: 500, retryAfter: 7, body: []), .failed),
        (.answered(status: 503, retryAfter: nil, body: []), .failed),
        (.answered(status: 503, retryAfter: 7, body: []), .throttled(retryAfter: .seconds(7))),
        (.failed(.timeout), .failed), (.failed(.unreachable), .failed),
    ])
    func `each reply says one thing about the host`(_ reply: CallReply, _ outcome: CallOutcome) {
        expectEqual(CallOutcome(reply, timeout: .seconds(1)), outcome)
    }

    @Test func `what was not sent says nothing about the host`() {
        for fault in CallFailure.allCases {
            expectEqual(CallOutcome(.unsent(fault), timeout: .seconds(1)), nil)
        }
    }

    @Test func `pauses grow to their limit whatever the numbers`() {
        let pauses = BackOff(first: .seconds(1), most: .seconds(60))
        expectEqual(pauses.pause(after: 0, random: 0), .milliseconds(500))
        #expect(pauses.pause(after: 1, random: .max) <= .seconds(1))
        expectEqual(pauses.pause(after: .max, random: 0), .seconds(30))
        #expect(pauses.pause(after: .max, random: .max) <= .seconds(60))
        expectEqual(BackOff(first: .zero, most: .zero).pause(after: 3, random: 9), .zero)
        let endless = BackOff(first: .seconds(Int64.max), most: .seconds(Int64.max))
        #expect(endless.pause(after: .max, random: .max) > .seconds(1))
    }
}
