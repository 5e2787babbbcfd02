import Expectations
import Testing

@testable import LoadGenerator

@Suite struct PacingTests {
    private static func pacing(
        rate: Double?,
        count: UInt64? = nil,
        duration: UInt64? = nil,
        warmUp: UInt64 = 0
    ) -> Pacing {
        Pacing(rate: rate, countLimit: count, duration: duration, warmUp: warmUp)
    }

    @Test func `loops take turns, so that all together keep one beat`() {
        let pacing = Self.pacing(rate: 1_000)
        let due = (0..<4).flatMap { number in
            (0..<3).map { pacing.due(UInt64(number), loop: $0, of: 3) }
        }
        expectEqual(due, (0..<12).map { UInt64($0) * 1_000_000 })
    }

    @Test func `the beat does not drift over a day`() {
        let pacing = Self.pacing(rate: 30_000)
        expectEqual(pacing.due(30_000 * 86_400, loop: 0, of: 1), 86_400_000_000_000)
    }

    @Test func `in a closed loop nothing is due`() {
        expectEqual(Self.pacing(rate: nil).due(7, loop: 0, of: 1), nil)
    }

    @Test(arguments: [1, 2, 3, 7])
    func `the loops' shares add up to the count`(loops: Int) {
        let pacing = Self.pacing(rate: nil, count: 100)
        let shares = (0..<loops).map { pacing.countLimit(loop: $0, of: loops) }
        expectEqual(shares.reduce(0, +), 100)
        #expect((shares.max() ?? 0) - (shares.min() ?? 0) <= 1)
    }

    @Test func `how many there will be is known by rate and time, or by count`() {
        let second: UInt64 = 1_000_000_000
        expectEqual(Self.pacing(rate: 50, duration: 3 * second, warmUp: second).expectedCount, 200)
        expectEqual(Self.pacing(rate: 50, count: 10, duration: second).expectedCount, 10)
        expectEqual(Self.pacing(rate: nil, count: 10, duration: second).expectedCount, 10)
        expectEqual(Self.pacing(rate: nil, duration: second).expectedCount, nil)
        expectEqual(Self.pacing(rate: 50, duration: .max, warmUp: 1).end, .max)
    }
}
