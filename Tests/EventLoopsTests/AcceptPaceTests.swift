import Expectations
import Testing

@testable import EventLoops

@Suite struct AcceptPaceTests {
    /// What a pace asks for while so many wait at each event.
    private static func asked(_ waiting: [Int], max: Int = 16) -> [Int] {
        var pace = AcceptPace(max: max)
        return waiting.map { waiting in
            defer { pace.took(min(waiting, pace.count)) }
            return pace.count
        }
    }

    @Test func `while clients come one at a time, mostly one is asked for`() {
        let asked = Self.asked(Array(repeating: 1, count: 100))
        expectEqual(asked[..<4], [1, 1, 1, 1])
        // The call that finds nobody comes once in five events.
        expectEqual(asked.reduce(0, +), 120)
    }

    @Test func `in a burst more are asked for, up to the most`() {
        let asked = Self.asked(Array(repeating: 1_000, count: 40))
        expectEqual(asked.first, 1)
        expectEqual(asked.last, 16)
        expectEqual(asked, asked.sorted())
        expectEqual(Self.asked(Array(repeating: 9, count: 40), max: 4).max(), 4)
    }

    @Test func `behind a burst as many are asked for as came last`() {
        let burst = Array(repeating: 1_000, count: 40)
        expectEqual(Self.asked(burst + [3, 1, 0, 1]).suffix(3), [3, 1, 1])
    }
}
