import Expectations
import Testing

@testable import Services

@Suite struct GatheringTests {
    @Test func `who asks while a gathering runs is served by the next`() {
        var gathering = Gathering<Int>()
        expectEqual(gathering.asked(1), .begin(number: 1))
        expectEqual(gathering.asked(2), .none)
        expectEqual(gathering.asked(3), .none)
        var end = gathering.ended(1)
        expectEqual(end.served, [1])
        expectEqual(end.action, .begin(number: 2))
        end = gathering.ended(2)
        expectEqual(end.served, [2, 3])
        expectEqual(end.action, .none)
        expectEqual(gathering.asked(1), .begin(number: 3))
    }

    @Test func `a gathering that completes twice serves nobody`() {
        var gathering = Gathering<Int>()
        _ = gathering.asked(1)
        _ = gathering.ended(1)
        _ = gathering.asked(2)
        let late = gathering.ended(1)
        #expect(late.served.isEmpty && late.action == .none)
        expectEqual(gathering.ended(2).served, [2])
    }

    @Test func `who withdrew is not served, and asks again for the next`() {
        var gathering = Gathering<Int>()
        _ = gathering.asked(1)
        gathering.withdrawn(1)
        expectEqual(gathering.asked(1), .none)
        let end = gathering.ended(1)
        #expect(end.served.isEmpty && end.action == .begin(number: 2))
        gathering.withdrawn(1)
        let last = gathering.ended(2)
        #expect(last.served.isEmpty && last.action == .none)
    }
}
