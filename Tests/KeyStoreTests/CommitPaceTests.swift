import Expectations
import Testing

@testable import KeyStore

@Suite struct CommitPaceTests {
    private static let millisecond: UInt64 = 1_000_000

    /// Batches of one size at even beats, and the rest asked for right after the last began.
    private func rest(after count: Int, of size: Int, every interval: UInt64) -> UInt64 {
        var pace = CommitPace()
        var now = Self.millisecond
        for _ in 0..<count {
            now += interval
            pace.began(size, now: now)
        }
        return pace.rest(now: now)
    }

    @Test func `nobody waits for others before the first batch`() {
        expectEqual(CommitPace().rest(now: 0), 0)
        expectEqual(CommitPace().rest(now: .max), 0)
    }

    @Test(arguments: [(1, UInt64(1)), (6, 1), (60, 10)])
    func `below the rate there is no rest`(size: Int, milliseconds: UInt64) {
        expectEqual(rest(after: 50, of: size, every: milliseconds * Self.millisecond), 0)
    }

    @Test func `above the rate a batch waits for a crowd, and never longer than the interval`() {
        // 8 a millisecond: a crowd would take five.
        let busy = rest(after: 50, of: 8, every: Self.millisecond)
        expectEqual(busy, CommitPace.intervalMax)
        // 40 a millisecond: a crowd has come after one.
        let crowded = rest(after: 50, of: 40, every: Self.millisecond)
        #expect((Self.millisecond...Self.millisecond * 101 / 100).contains(crowded))
    }

    @Test func `where requests wait for an event loop, few changes wait for others, too`() {
        var pace = CommitPace()
        for beat in 1...50 { pace.began(6, now: UInt64(beat) * Self.millisecond) }
        let last = 50 * Self.millisecond
        expectEqual(pace.rest(now: last), 0)
        pace.isBusy = true
        expectEqual(pace.rest(now: last), CommitPace.intervalMax)
        expectEqual(pace.rest(now: last + CommitPace.intervalMax), 0)
        pace = CommitPace()
        pace.isBusy = true
        expectEqual(pace.rest(now: last), 0)
    }

    @Test func `time that has passed since the last batch began is no rest`() {
        var pace = CommitPace()
        for beat in 1...50 { pace.began(10, now: UInt64(beat) * Self.millisecond) }
        let last = 50 * Self.millisecond
        let rest = CommitPace.intervalMax - Self.millisecond
        expectEqual(pace.rest(now: last + Self.millisecond), rest)
        expectEqual(pace.rest(now: last + CommitPace.intervalMax), 0)
        expectEqual(pace.rest(now: last + 100 * Self.millisecond), 0)
    }

    @Test func `a burst after silence does not begin a rest, and silence ends one`() {
        var pace = CommitPace()
        pace.began(200, now: 10_000 * Self.millisecond)
        expectEqual(pace.rest(now: 10_000 * Self.millisecond), 0)
        for beat in 1...50 {
            pace.began(40, now: (10_000 + UInt64(beat) * 4) * Self.millisecond)
        }
        #expect(pace.rest(now: 10_200 * Self.millisecond) > 0)
        for second in 0..<6 {
            pace.began(1, now: (11_000 + UInt64(second) * 1_000) * Self.millisecond)
        }
        expectEqual(pace.rest(now: 16_000 * Self.millisecond), 0)
    }

    @Test func `a clock that stands still or goes back is no trap`() {
        var pace = CommitPace()
        pace.began(.max, now: 5)
        pace.began(.max, now: 5)
        pace.began(262_144, now: 4)
        #expect(pace.rest(now: 0) <= CommitPace.intervalMax)
    }
}
