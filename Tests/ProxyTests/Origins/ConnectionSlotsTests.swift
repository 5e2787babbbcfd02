import Expectations
import Testing

@testable import Proxy

/// Servers are numbers from 1, event loops numbers from 0; clients have flow 7 unless it says
/// otherwise.
@Suite struct ConnectionSlotsTests {
    private var slots = ConnectionSlots()

    init() { slots.limit([1: 2], waitersMax: 3) }

    private mutating func wait(loop: Int = 0, wanted: [Int] = [1]) -> ConnectionSlots.Entry {
        slots.wait(wanted: wanted, refused: [], flow: 7, loop: loop)
    }

    private mutating func fill() {
        for _ in 0..<2 { expectEqual(slots.reserve(1), true) }
    }

    @Test mutating func `no more places are taken than there are`() {
        fill()
        #expect(!slots.hasRoom(1))
        expectEqual(slots.reserve(1), false)
        expectEqual(slots.connections(of: 1), 2)
        expectEqual(slots.freed(1, isOffered: true), nil)
        expectEqual(slots.reserve(1), true)
        expectEqual(slots.reserve(1), false)
    }

    @Test mutating func `a server without a limit has room for all`() {
        #expect(slots.hasRoom(2))
        expectEqual(slots.connections(of: 2), nil)
        expectEqual(slots.rests(2, on: 0, isShareable: true), .kept)
    }

    @Test mutating func `a place that becomes free is the first waiter's, and nobody else's`() {
        fill()
        expectEqual(wait(), .waits(1, yielding: [], displaced: nil))
        expectEqual(wait(loop: 1), .waits(2, yielding: [], displaced: nil))
        expectEqual(slots.freed(1, isOffered: true)?.id, 1)
        expectEqual(slots.reserve(1), false)
        expectEqual(slots.freed(1, isOffered: true)?.id, 2)
        expectEqual(slots.connections(of: 1), 2)
        expectEqual(slots.waiting, 0)
    }

    @Test mutating func `a place that became free just before is found`() {
        expectEqual(slots.reserve(1), true)
        expectEqual(wait(), .room)
        expectEqual(slots.waiting, 0)
    }

    @Test mutating func `no more wait than may`() {
        fill()
        for id: UInt64 in 1...3 { expectEqual(wait(), .waits(id, yielding: [], displaced: nil)) }
        expectEqual(wait(), .full)
        slots.leave(2, flow: 7)
        expectEqual(wait(), .waits(5, yielding: [], displaced: nil))
    }

    @Test mutating func `a connection goes to a waiter of its loop, and is closed for another's`() {
        fill()
        expectEqual(wait(loop: 0), .waits(1, yielding: [], displaced: nil))
        expectEqual(wait(loop: 1), .waits(2, yielding: [], displaced: nil))
        expectEqual(slots.rests(1, on: 0, isShareable: true), .given(1))
        expectEqual(slots.rests(1, on: 0, isShareable: true), .closes)
        expectEqual(slots.freed(1, isOffered: true)?.id, 2)
        expectEqual(slots.rests(1, on: 1, isShareable: true), .kept)
    }

    @Test mutating func `a connection that is one client's alone is closed for any waiter`() {
        fill()
        expectEqual(wait(loop: 0), .waits(1, yielding: [], displaced: nil))
        expectEqual(slots.rests(1, on: 0, isShareable: false), .closes)
    }

    @Test mutating func `loops that have idle connections are asked to close one for a waiter`() {
        fill()
        expectEqual(slots.rests(1, on: 3, isShareable: true), .kept)
        expectEqual(slots.rests(1, on: 3, isShareable: true), .kept)
        #expect(slots.lendsIdle)
        let idle = ConnectionSlots.Idle(server: 1, loop: 3)
        expectEqual(wait(loop: 0), .waits(1, yielding: [idle], displaced: nil))
        // A newcomer must not take what was asked for.
        #expect(!slots.lendsIdle)
        slots.leftIdle(1, on: 3)
        expectEqual(slots.freed(1, isOffered: true)?.id, 1)
        #expect(slots.lendsIdle)
        slots.leftIdle(1, on: 3)
        expectEqual(slots.reserve(1), false)
        expectEqual(wait(loop: 0), .waits(2, yielding: [], displaced: nil))
    }

    @Test mutating func `a place at a server that is down is nobody's until it is offered`() {
        fill()
        expectEqual(wait(), .waits(1, yielding: [], displaced: nil))
        expectEqual(slots.freed(1, isOffered: false), nil)
        expectEqual(slots.waiting, 1)
        expectEqual(slots.offer(1)?.id, 1)
        expectEqual(slots.offer(1), nil)
    }

    @Test mutating func `a limit that falls closes connections, and one that rises is offered`() {
        fill()
        expectEqual(wait(), .waits(1, yielding: [], displaced: nil))
        slots.limit([1: 1], waitersMax: 3)
        expectEqual(slots.rests(1, on: 0, isShareable: true), .closes)
        expectEqual(slots.freed(1, isOffered: true), nil)
        expectEqual(slots.freed(1, isOffered: true)?.id, 1)
        slots.limit([1: 4], waitersMax: 3)
        for _ in 0..<3 { expectEqual(slots.reserve(1), true) }
        expectEqual(slots.reserve(1), false)
    }

    @Test mutating func `a limit that goes and comes back counts the connections that stayed`() {
        fill()
        slots.limit([:], waitersMax: 3)
        expectEqual(slots.connections(of: 1), nil)
        slots.limit([1: 2], waitersMax: 3)
        expectEqual(slots.reserve(1), false)
        expectEqual(slots.freed(1, isOffered: true), nil)
        expectEqual(slots.reserve(1), true)
    }

    @Test mutating func `waiters who are to choose anew leave in the order of their turns`() {
        fill()
        for id: UInt64 in 1...2 { expectEqual(wait(), .waits(id, yielding: [], displaced: nil)) }
        expectEqual(slots.wakeAll().map(\.id), [1, 2])
        expectEqual(slots.waiting, 0)
    }
}
