import Expectations
import Testing

@testable import EventLoops

@Suite struct FairQueueTests {
    /// Serves until nobody waits, each member for as long as `cost` says.
    private func served(
        _ queue: inout FairQueue,
        cost: (Int) -> UInt64 = { _ in 1 },
        then: (Int, inout FairQueue) -> Void = { _, _ in }
    ) -> [Int] {
        var order: [Int] = []
        while order.count < 100, let turn = queue.next() {
            order.append(turn.member)
            then(turn.member, &queue)
            queue.charge(nanoseconds: cost(turn.member), bytes: 0)
        }
        return order
    }

    private static let quantum = UInt64(FairQueue.quantum)

    @Test func `members of one flow are served in the order in which they came`() {
        var queue = FairQueue(flows: 1)
        for member in [3, 1, 2, 900] { queue.append(member, 1, to: 0) }
        #expect(!queue.isEmpty)
        expectEqual(served(&queue, cost: { _ in Self.quantum * 3 }), [3, 1, 2, 900])
        #expect(queue.isEmpty)
        expectEqual(queue.next(), nil)
    }

    @Test func `a member that is served may wait again, behind the others`() {
        var queue = FairQueue(flows: 1)
        for member in 0..<3 { queue.append(member, 1, to: 0) }
        var again = 2
        let order = served(
            &queue,
            then: { member, queue in
                guard member == 0, again > 0 else { return }
                again -= 1
                queue.append(0, 1, to: 0)
            }
        )
        expectEqual(order, [0, 1, 2, 0, 0])
    }

    @Test func `flows take turns, a quantum each`() {
        var queue = FairQueue(flows: 2)
        for member in 0..<6 { queue.append(member, 1, to: 0) }
        for member in 10..<16 { queue.append(member, 1, to: 1) }
        // Two members use a quantum up.
        let order = served(&queue, cost: { _ in Self.quantum / 2 })
        expectEqual(order, [0, 1, 10, 11, 2, 3, 12, 13, 4, 5, 14, 15])
    }

    @Test func `a flow of expensive members gets as much time as one of cheap members`() {
        var queue = FairQueue(flows: 2)
        for member in 0..<3 { queue.append(member, 1, to: 0) }
        for member in 10..<22 { queue.append(member, 1, to: 1) }
        let order = served(&queue, cost: { $0 < 10 ? Self.quantum : Self.quantum / 4 })
        expectEqual(order.prefix(15), [0, 10, 11, 12, 13, 1, 14, 15, 16, 17, 2, 18, 19, 20, 21])
    }

    @Test func `a flow in debt waits until the others have had as much time`() {
        var queue = FairQueue(flows: 2)
        for member in 0..<2 { queue.append(member, 1, to: 0) }
        for member in 10..<14 { queue.append(member, 1, to: 1) }
        let order = served(&queue, cost: { $0 < 10 ? Self.quantum * 3 : Self.quantum })
        expectEqual(order, [0, 10, 11, 12, 1, 13])
    }

    @Test func `a turn that the system held up costs no more than the most debt`() {
        var queue = FairQueue(flows: 2)
        for member in 0..<2 { queue.append(member, 1, to: 0) }
        for member in 10..<40 { queue.append(member, 1, to: 1) }
        let order = served(&queue, cost: { $0 < 10 ? .max : Self.quantum })
        expectEqual(order.firstIndex(of: 1), 10)
    }

    @Test func `a flow with little work goes before those that wait`() {
        var queue = FairQueue(flows: 3)
        for member in 0..<20 { queue.append(member, 1, to: 0) }
        for member in 20..<40 { queue.append(member, 1, to: 1) }
        var order = served(&queue, cost: { _ in Self.quantum }) { member, queue in
            if member == 3 || member == 7 { queue.append(100, 1, to: 2) }
        }
        for number in [3, 7] {
            let place = order.firstIndex(of: number) ?? 0
            let next = order.firstIndex(of: 100) ?? 0
            expectEqual(next, place + 1)
            order.remove(at: next)
        }
    }

    @Test func `a flow that begins to wait again and again does not starve the others`() {
        var queue = FairQueue(flows: 2)
        for member in 0..<5 { queue.append(member, 1, to: 0) }
        let order = served(&queue, cost: { _ in Self.quantum / 10 }) { member, queue in
            if member == 0 || member == 100 { queue.append(100, 1, to: 1) }
        }
        #expect(order.prefix(40).contains(4))
    }

    @Test func `a member that waits already keeps its place, and gets all its news at once`() {
        var queue = FairQueue(flows: 1)
        queue.append(0, 1, to: 0)
        queue.append(1, 1, to: 0)
        queue.append(0, 4, to: 0)
        #expect(queue.holds(0))
        expectEqual(queue.next().map { [$0.member, Int($0.news)] }, [0, 5])
        #expect(!queue.holds(0))
        expectEqual(queue.next().map { [$0.member, Int($0.news)] }, [1, 1])
        expectEqual(queue.next(), nil)
        #expect(!queue.holds(1000))
    }

    private static let readings: [(UInt64, Int, Int)] = [
        (50_000, 131_072, 131_072), (400_000, 131_072, 65_536), (1_300_000, 131_072, 20_164),
        (0, 4_096, 131_072), (.max, 131_072, 4_096), (100_000, 8_192, 16_384),
        (1_000_000, 4_095, 131_072), (1, 0, 131_072),
    ]

    /// What a flow reads at once after a turn of so many nanoseconds and bytes.
    @Test(arguments: readings)
    func `input that is expensive to read is read in smaller pieces`(
        nanoseconds: UInt64,
        bytes: Int,
        inputMax: Int
    ) {
        var queue = FairQueue(flows: 1)
        queue.append(0, 1, to: 0)
        expectEqual(queue.next()?.inputMax, 131_072)
        queue.charge(nanoseconds: nanoseconds, bytes: bytes)
        queue.append(0, 1, to: 0)
        expectEqual(queue.next()?.inputMax, inputMax)
    }
}
