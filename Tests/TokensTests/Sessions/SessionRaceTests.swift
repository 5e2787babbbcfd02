import Dispatch
import Expectations
import RequestBinding
import SoftwareAuthenticator
import Synchronization
import Testing

@testable import Tokens

@Suite struct SessionRaceTests {
    @Test func `of many loops that use one number at once exactly one succeeds`() throws {
        let opening = Opening()
        let session = try #require(opening.session(try opening.open(Opening.makeKey())))
        let numbers: [SequenceNumber] = (1...2_000).map { SequenceNumber(known: $0) }
        let admitted = numbers.map { _ in Atomic<Int>.Holder() }
        DispatchQueue.concurrentPerform(iterations: 4) { loop in
            // Each event loop in an order of its own, all within the window.
            for index in numbers.indices {
                let place = loop.isMultiple(of: 2) ? index : index ^ 1
                if session.use(numbers[place]) { admitted[place].add() }
            }
        }
        #expect(admitted.allSatisfy { $0.count == 1 })
    }

    @Test func `sessions that are opened on many loops at once stay within the limits`() throws {
        let opening = Opening(sessionsMax: 40)
        let keys = (0..<8).map { _ in Opening.makeKey() }
        let assertions = try keys.map { try Opening.evidence($0) }
        DispatchQueue.concurrentPerform(iterations: 8) { loop in
            for number in 0..<500 {
                let place = (loop + number) % keys.count
                let opened = opening.table.open(keys[place].keyID, assertions[place], now: 1_000)
                _ = opening.table.find(opened.id.span, now: 1_000)
            }
        }
        expectEqual(opening.table.count(now: 1_000), 32)
        expectEqual(opening.table.opened, 4_000)
        expectEqual(opening.table.evicted, 3_968)
    }
}

extension Atomic<Int> {
    /// An atomic that an array can hold.
    final class Holder: Sendable {
        private let value = Atomic<Int>(0)

        var count: Int { value.load(ordering: .relaxed) }

        func add() { value.add(1, ordering: .relaxed) }
    }
}
