import Testing

@testable import Proxy

/// Servers are numbers from 1, lanes numbers from 0; clients have flow 7 unless it says otherwise.
@Suite struct PlaceBookTests {
    private var book = PlaceBook()

    init() { book.limit([1: 2], waitersMax: 3) }

    private mutating func wait(lane: Int = 0, wanted: [Int] = [1]) -> PlaceBook.Entry {
        book.wait(wanted: wanted, refused: [], flow: 7, lane: lane)
    }

    private mutating func fill() {
        for _ in 0..<2 { #expect(book.reserve(1) == true) }
    }

    @Test mutating func `no more places are taken than there are`() {
        fill()
        #expect(!book.hasRoom(1))
        #expect(book.reserve(1) == false)
        #expect(book.connections(of: 1) == 2)
        #expect(book.freed(1, isOffered: true) == nil)
        #expect(book.reserve(1) == true)
        #expect(book.reserve(1) == false)
    }

    @Test mutating func `a server without a limit has room for all`() {
        #expect(book.hasRoom(2))
        #expect(book.connections(of: 2) == nil)
        #expect(book.rests(2, on: 0, isShareable: true) == .kept)
    }

    @Test mutating func `a place that becomes free is the first waiter's, and nobody else's`() {
        fill()
        #expect(wait() == .waits(1, yielding: [], displaced: nil))
        #expect(wait(lane: 1) == .waits(2, yielding: [], displaced: nil))
        #expect(book.freed(1, isOffered: true)?.id == 1)
        #expect(book.reserve(1) == false)
        #expect(book.freed(1, isOffered: true)?.id == 2)
        #expect(book.connections(of: 1) == 2)
        #expect(book.waiting == 0)
    }

    @Test mutating func `a place that became free just before is found`() {
        #expect(book.reserve(1) == true)
        #expect(wait() == .room)
        #expect(book.waiting == 0)
    }

    @Test mutating func `no more wait than may`() {
        fill()
        for id: UInt64 in 1...3 { #expect(wait() == .waits(id, yielding: [], displaced: nil)) }
        #expect(wait() == .full)
        book.leave(2, flow: 7)
        #expect(wait() == .waits(5, yielding: [], displaced: nil))
    }

    @Test mutating func `a connection goes to a waiter of its lane, and is closed for another's`() {
        fill()
        #expect(wait(lane: 0) == .waits(1, yielding: [], displaced: nil))
        #expect(wait(lane: 1) == .waits(2, yielding: [], displaced: nil))
        #expect(book.rests(1, on: 0, isShareable: true) == .given(1))
        #expect(book.rests(1, on: 0, isShareable: true) == .closes)
        #expect(book.freed(1, isOffered: true)?.id == 2)
        #expect(book.rests(1, on: 1, isShareable: true) == .kept)
    }

    @Test mutating func `a connection that is one client's alone is closed for any waiter`() {
        fill()
        #expect(wait(lane: 0) == .waits(1, yielding: [], displaced: nil))
        #expect(book.rests(1, on: 0, isShareable: false) == .closes)
    }

    @Test mutating func `lanes that have idle connections are asked to close one for a waiter`() {
        fill()
        #expect(book.rests(1, on: 3, isShareable: true) == .kept)
        #expect(book.rests(1, on: 3, isShareable: true) == .kept)
        #expect(book.lendsIdle)
        let idle = PlaceBook.Idle(server: 1, lane: 3)
        #expect(wait(lane: 0) == .waits(1, yielding: [idle], displaced: nil))
        // A newcomer must not take what was asked for.
        #expect(!book.lendsIdle)
        book.leftIdle(1, on: 3)
        #expect(book.freed(1, isOffered: true)?.id == 1)
        #expect(book.lendsIdle)
        book.leftIdle(1, on: 3)
        #expect(book.reserve(1) == false)
        #expect(wait(lane: 0) == .waits(2, yielding: [], displaced: nil))
    }

    @Test mutating func `a place at a server that is down is nobody's until it is offered`() {
        fill()
        #expect(wait() == .waits(1, yielding: [], displaced: nil))
        #expect(book.freed(1, isOffered: false) == nil)
        #expect(book.waiting == 1)
        #expect(book.offer(1)?.id == 1)
        #expect(book.offer(1) == nil)
    }

    @Test mutating func `a limit that falls closes connections, and one that rises is offered`() {
        fill()
        #expect(wait() == .waits(1, yielding: [], displaced: nil))
        book.limit([1: 1], waitersMax: 3)
        #expect(book.rests(1, on: 0, isShareable: true) == .closes)
        #expect(book.freed(1, isOffered: true) == nil)
        #expect(book.freed(1, isOffered: true)?.id == 1)
        book.limit([1: 4], waitersMax: 3)
        for _ in 0..<3 { #expect(book.reserve(1) == true) }
        #expect(book.reserve(1) == false)
    }

    @Test mutating func `a limit that goes and comes back counts the connections that stayed`() {
        fill()
        book.limit([:], waitersMax: 3)
        #expect(book.connections(of: 1) == nil)
        book.limit([1: 2], waitersMax: 3)
        #expect(book.reserve(1) == false)
        #expect(book.freed(1, isOffered: true) == nil)
        #expect(book.reserve(1) == true)
    }

    @Test mutating func `waiters who are to choose anew leave in the order of their turns`() {
        fill()
        for id: UInt64 in 1...2 { #expect(wait() == .waits(id, yielding: [], displaced: nil)) }
        #expect(book.wakeAll().map(\.id) == [1, 2])
        #expect(book.waiting == 0)
    }
}
