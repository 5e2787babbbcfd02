import Expectations
import Synchronization
import Testing
import Verification

@Suite struct ThrottleTests {
    @Test func `a burst is admitted, then one at a time as tokens flow in`() {
        let throttle = Throttle(perSecond: 10, burst: 3)
        let start: UInt64 = 5_000_000_000
        for _ in 0..<3 { expectEqual(throttle.take(now: start), nil) }
        expectEqual(throttle.take(now: start), 100_000_000)
        expectEqual(throttle.take(now: start + 99_999_999), 1)
        expectEqual(throttle.take(now: start + 100_000_000), nil)
        expectEqual(throttle.take(now: start + 100_000_000), 100_000_000)
    }

    @Test func `a reserve is left in the bucket, and one token is always to be had`() {
        let rate = TokenRate(10, burst: 4)
        let bucket = Atomic<UInt64>(0)
        let start: UInt64 = 5_000_000_000
        for _ in 0..<2 { expectEqual(rate.take(from: bucket, leaving: 2, now: start), nil) }
        expectEqual(rate.take(from: bucket, leaving: 2, now: start), 100_000_000)
        for _ in 0..<2 { expectEqual(rate.take(from: bucket, now: start), nil) }
        expectEqual(rate.take(from: bucket, leaving: 2, now: start + 200_000_000), 100_000_000)
        let full = Atomic<UInt64>(0)
        expectEqual(rate.take(from: full, leaving: 99, now: start), nil)
        expectEqual(rate.take(from: full, leaving: 99, now: start), 100_000_000)
    }

    @Test func `a clock that stands at zero is no trap`() {
        let throttle = Throttle(perSecond: 0, burst: 0)
        expectEqual(throttle.take(now: 0), nil)
        expectEqual(throttle.take(now: 0), 1_000_000_000)
    }
}
