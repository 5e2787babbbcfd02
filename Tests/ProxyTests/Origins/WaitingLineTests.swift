import Expectations
import Testing

@testable import Proxy

@Suite struct WaitingLineTests {
    private var line = WaitingLine()

    private static func waiter(_ id: UInt64, flow: Int) -> WaitingLine.Waiter {
        WaitingLine.Waiter(id: id, loop: 0, flow: flow)
    }

    /// Lets waiters enter, each from a flow; their numbers count from 1.
    private mutating func fill(_ flows: [Int]) {
        for (place, flow) in flows.enumerated() {
            let waiter = Self.waiter(UInt64(place + 1), flow: flow)
            expectEqual(line.enter(waiter, max: 100), .entered)
        }
    }

    /// Serves all, and says who was served in which order.
    private mutating func order() -> [UInt64] {
        var served: [UInt64] = []
        while let next = line.first(for: 0) {
            served.append(next.id)
            line.serve(next)
        }
        #expect(line.isEmpty)
        return served
    }

    @Test mutating func `waiters of one address are served in the order in which they came`() {
        fill([7, 7, 7, 7])
        expectEqual(order(), [1, 2, 3, 4])
    }

    @Test mutating func `addresses take turns, however many requests of one wait`() {
        fill([7, 7, 7, 7, 8, 9, 8])
        expectEqual(order(), [1, 5, 6, 2, 7, 3, 4])
    }

    @Test mutating func `who goes leaves the line, and the others keep their places`() {
        fill([7, 8, 7, 9])
        expectEqual(line.remove(2, of: 8), true)
        expectEqual(line.remove(2, of: 8), false)
        expectEqual(line.remove(1, of: 9), false)
        expectEqual(line.count, 3)
        expectEqual(order(), [1, 4, 3])
    }

    @Test mutating func `a waiter that can't use a server is passed over for it`() {
        var picky = Self.waiter(1, flow: 7)
        picky.refused = [5]
        expectEqual(line.enter(picky, max: 2), .entered)
        expectEqual(line.enter(Self.waiter(2, flow: 7), max: 2), .entered)
        expectEqual(line.first(for: 5)?.id, 2)
        expectEqual(line.first(for: 6)?.id, 1)
    }

    @Test mutating func `one address that fills the line can't keep another out`() {
        fill([7, 7, 7])
        expectEqual(line.enter(Self.waiter(4, flow: 7), max: 3), .full)
        expectEqual(
            line.enter(Self.waiter(5, flow: 8), max: 3),
            .displaced(Self.waiter(3, flow: 7))
        )
        // Both would have two now: nobody gains by a change.
        expectEqual(line.enter(Self.waiter(6, flow: 8), max: 3), .full)
        expectEqual(line.count, 3)
        expectEqual(order(), [1, 5, 2])
    }

    @Test mutating func `a line without room takes nobody`() {
        expectEqual(line.enter(Self.waiter(1, flow: 7), max: 0), .full)
        #expect(line.isEmpty)
    }
}
