import Testing

@testable import Services

@Suite struct GatheringTests {
    @Test func `who asks while a gathering runs is served by the next`() {
        var gathering = Gathering<Int>()
        #expect(gathering.asked(1) == .begin(number: 1))
        #expect(gathering.asked(2) == .none)
        #expect(gathering.asked(3) == .none)
        var end = gathering.ended(1)
        #expect(end.served == [1])
        #expect(end.action == .begin(number: 2))
        end = gathering.ended(2)
        #expect(end.served == [2, 3])
        #expect(end.action == .none)
        #expect(gathering.asked(1) == .begin(number: 3))
    }

    @Test func `a gathering that completes twice serves nobody`() {
        var gathering = Gathering<Int>()
        _ = gathering.asked(1)
        _ = gathering.ended(1)
        _ = gathering.asked(2)
        let late = gathering.ended(1)
        #expect(late.served.isEmpty && late.action == .none)
        #expect(gathering.ended(2).served == [2])
    }

    @Test func `who withdrew is not served, and asks again for the next`() {
        var gathering = Gathering<Int>()
        _ = gathering.asked(1)
        gathering.withdrawn(1)
        #expect(gathering.asked(1) == .none)
        let end = gathering.ended(1)
        #expect(end.served.isEmpty && end.action == .begin(number: 2))
        gathering.withdrawn(1)
        let last = gathering.ended(2)
        #expect(last.served.isEmpty && last.action == .none)
    }
}
