import Expectations
import Testing

@testable import Proxy

/// What is still read of a client after its last answer.
@Suite struct LingeringTests {
    private static func lingering(drain: Int = 100) -> Lingering {
        var timeouts = Timeouts()
        timeouts.linger = 5_000
        timeouts.lingerTotal = 30_000
        var limits = ProxyLimits()
        limits.drainBytesMax = drain
        return Lingering(timeouts, limits, now: 1_000)
    }

    @Test func `each piece may take the silence, all together the total`() {
        let lingering = Self.lingering()
        expectEqual(lingering.wait(now: 1_000), 5_000)
        expectEqual(lingering.wait(now: 26_000), 5_000)
        expectEqual(lingering.wait(now: 29_000), 2_000)
        expectEqual(lingering.wait(now: 31_000), 0)
        expectEqual(lingering.wait(now: 40_000), 0)
    }

    @Test func `bytes are counted up to the limit`() {
        var lingering = Self.lingering()
        let mayGoOn = [60, 40, 1].map { lingering.discard($0) }
        expectEqual(mayGoOn, [true, true, false])
        var none = Self.lingering(drain: 0)
        let mayBegin = none.discard(1)
        #expect(!mayBegin)
    }
}
