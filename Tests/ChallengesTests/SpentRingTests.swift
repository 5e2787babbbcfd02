import Synchronization
import Testing

@testable import Challenges

@Suite struct SpentRingTests {
    private final class Clock: Sendable {
        let seconds = Atomic<Int64>(0)
    }

    private static let segment = SpentRing.segmentCount

    /// Issues so many numbers, and returns the last.
    private func issue(_ count: UInt64, _ ring: SpentRing, at now: Int64) throws -> UInt64 {
        var last: UInt64 = 0
        for _ in 0..<count {
            last = try #require(ring.issue(expiry: now + ring.lifetime, now: now))
        }
        return last
    }

    @Test func `the capacity is held, and no more than two segments beyond`() throws {
        let ring = SpentRing(capacity: 40_000, lifetime: 100)
        #expect(ring.capacity >= 40_000 + Self.segment)
        #expect(ring.capacity < 40_000 + 2 * Self.segment)
    }

    @Test
    func `issuing stops while the ring is full of good numbers, and goes on when they expire`()
        throws
    {
        let ring = SpentRing(capacity: 1, lifetime: 100)
        _ = try issue(ring.capacity, ring, at: 1_000)
        #expect(ring.issue(expiry: 1_199, now: 1_099) == nil)
        #expect(ring.issued == ring.capacity)
        #expect(ring.issue(expiry: 1_200, now: 1_100) == ring.capacity)
    }

    @Test func `at any time at least the capacity can be issued within a lifetime`() throws {
        let capacity = 20_000
        let ring = SpentRing(capacity: capacity, lifetime: 100)
        var now: Int64 = 0
        for _ in 0..<8 {
            _ = try issue(UInt64(capacity), ring, at: now)
            now += 100
        }
    }

    @Test
    func `numbers that are only issued take no memory, spent ones a quarter octet of the capacity`()
        throws
    {
        let ring = SpentRing(capacity: 60_000, lifetime: 100)
        _ = try issue(ring.capacity, ring, at: 0)
        #expect(ring.bitmapOctets == 0)
        for number in 0..<ring.capacity { #expect(ring.spend(number)) }
        #expect(ring.bitmapOctets == Int(ring.capacity / 4))
        var now: Int64 = 0
        for _ in 0..<3 {
            now += 100
            let last = try issue(ring.capacity, ring, at: now)
            #expect(ring.spend(last))
        }
        #expect(ring.bitmapOctets == Int(ring.capacity / 4))
    }

    @Test func `a number whose place was reused is retired for ever and can't be spent`() throws {
        let ring = SpentRing(capacity: 1, lifetime: 100)
        _ = try issue(ring.capacity, ring, at: 0)
        #expect(!ring.isRetired(5))
        #expect(ring.spend(5))
        _ = try issue(1, ring, at: 100)
        for number in [UInt64(5), 6] {
            #expect(ring.isRetired(number))
            #expect(!ring.spend(number))
        }
        #expect(!ring.isRetired(Self.segment))
    }

    @Test func `a number that was never issued is retired`() throws {
        let ring = SpentRing(capacity: 1, lifetime: 100)
        #expect(ring.isRetired(0))
        #expect(!ring.spend(0))
        #expect(!ring.spend(.max))
    }

    @Test func `the same place in the next round is fresh, and its earlier number stays refused`()
        throws
    {
        let ring = SpentRing(capacity: 1, lifetime: 100)
        _ = try issue(ring.capacity, ring, at: 0)
        #expect(ring.spend(7))
        _ = try issue(Self.segment, ring, at: 100)
        let next = ring.capacity + 7
        #expect(!ring.isSpent(next))
        #expect(ring.spend(next))
        #expect(!ring.spend(next))
        #expect(!ring.spend(7))
        #expect(ring.isSpent(7))
    }

    @Test func `a step of the clock back makes no spent number fresh`() throws {
        let ring = SpentRing(capacity: 1, lifetime: 100)
        _ = try issue(ring.capacity, ring, at: 1_000)
        #expect(ring.spend(3))
        // The clock goes on, places are reused, and then it stands at the time of the issue again.
        _ = try issue(Self.segment, ring, at: 1_100)
        #expect(!ring.isOver(1_100, now: 1_000))
        #expect(ring.isRetired(3))
        #expect(!ring.spend(3))
    }

    @Test func `after a long step of the clock back the ring is usable at once`() throws {
        let ring = SpentRing(capacity: 1, lifetime: 100)
        _ = try issue(ring.capacity, ring, at: 1_000_000)
        #expect(ring.isOver(1_000_100, now: 500))
        _ = try issue(1, ring, at: 500)
    }

    @Test func `a short step of the clock back leaves numbers good`() {
        let ring = SpentRing(capacity: 1, lifetime: 100)
        #expect(!ring.isOver(1_100, now: 950))
        #expect(ring.isOver(1_100, now: 899))
        #expect(!ring.isOver(.max, now: .max - 1))
    }

    @Test func `issuing, spending and reuse at once never spend a number twice`() async throws {
        let ring = SpentRing(capacity: 1, lifetime: 10)
        let clock = Clock()
        let wins = await withTaskGroup(of: [UInt64].self) { group in
            for _ in 0..<4 {
                group.addTask {
                    var wins: [UInt64] = []
                    for _ in 0..<60_000 {
                        let now = clock.seconds.load(ordering: .relaxed)
                        guard let number = ring.issue(expiry: now + 10, now: now) else {
                            clock.seconds.add(10, ordering: .relaxed)
                            continue
                        }
                        // Its neighbour too, which another lane is about to spend.
                        for number in [number, number == 0 ? 0 : number - 1]
                        where ring.spend(number) {
                            wins.append(number)
                        }
                    }
                    return wins
                }
            }
            return await group.reduce(into: [UInt64]()) { $0 += $1 }
        }
        #expect(wins.count == Set(wins).count)
        #expect(ring.issued > ring.capacity)
    }
}
