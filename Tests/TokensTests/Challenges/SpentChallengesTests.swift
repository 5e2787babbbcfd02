import Expectations
import Synchronization
import Testing

@testable import Tokens

@Suite struct SpentChallengesTests {
    /// A lifetime of eight minutes has periods of one.
    private static let lifetime: Int64 = 480
    private static let length: Int64 = 60

    private func set(_ capacity: Int = 1_000, lifetime: Int64 = lifetime) -> SpentChallenges {
        SpentChallenges(capacity: capacity, lifetime: lifetime)
    }

    /// Issues so many numbers, and returns the last.
    @discardableResult
    private func issue(_ count: Int, _ set: SpentChallenges, at now: Int64) -> UInt64 {
        var last: UInt64 = 0
        for _ in 0..<count { last = set.issue(now: now) }
        return last
    }

    @Test func `a million that are only issued take no memory and leave room`() {
        let set = set(1)
        let first = set.issue(now: 0)
        issue(1_000_000, set, at: 0)
        expectEqual(set.bytes, 0)
        expectEqual(set.issued, 1_000_001)
        expectEqual(set.spend(first), .spent)
        expectEqual(set.spend(first), .spentBefore)
    }

    @Test func `numbers rise, and one is spent once`() {
        let set = set()
        let numbers = (0..<1_000).map { _ in set.issue(now: 0) }
        expectEqual(numbers, Array(0..<1_000))
        for number in numbers {
            #expect(!set.isSpent(number))
            expectEqual(set.spend(number), .spent)
            #expect(set.isSpent(number))
            expectEqual(set.spend(number), .spentBefore)
        }
    }

    @Test func `a number that was never issued can't be spent`() {
        let set = set()
        for number in [0, 7, UInt64.max] { expectEqual(set.spend(number), .spentBefore) }
        _ = set.issue(now: 0)
        expectEqual(set.spend(1), .spentBefore)
        expectEqual(set.spend(1 << 40), .spentBefore)
    }

    @Test func `without room nothing more is spent, nothing is fresh again, and room comes back`() {
        let set = set(3)
        let numbers = (0..<4).map { _ in issue(448, set, at: 0) }
        expectEqual(numbers.map(set.spend), [.spent, .spent, .spent, .noRoom])
        expectEqual(numbers.map(set.isSpent), [true, true, true, false])
        expectEqual(numbers.map(set.spend), [.spentBefore, .spentBefore, .spentBefore, .noRoom])
        // Its neighbour lies in a block that is there.
        expectEqual(set.spend(numbers[0] - 1), .spent)
        // What has expired makes room when another is issued, or when there is none.
        let later = set.issue(now: Self.lifetime + Self.length)
        expectEqual(set.spend(later), .spent)
        #expect(numbers.map(set.spend).allSatisfy { $0 == .spentBefore })
    }

    @Test func `what expired makes room although nothing is issued any more`() {
        let set = set(1)
        let old = set.issue(now: 0)
        let new = set.issue(now: 300)
        expectEqual(set.spend(old), .spent)
        expectEqual(set.spend(new), .noRoom)
        set.makeRoom(now: 539)
        expectEqual(set.spend(new), .noRoom)
        set.makeRoom(now: 540)
        expectEqual(set.spend(new), .spent)
        expectEqual(set.spend(old), .spentBefore)
    }

    @Test func `what was spent is remembered for a lifetime, and its number refused for ever`() {
        let set = set()
        let number = set.issue(now: 0)
        expectEqual(set.spend(number), .spent)
        // The last challenge of its period, issued in second 59, expires in second 539.
        for now in stride(from: Self.length, to: Self.lifetime + Self.length, by: 60) {
            _ = set.issue(now: now)
            #expect(!set.isClosed(number))
            #expect(set.isSpent(number))
        }
        _ = set.issue(now: Self.lifetime + Self.length)
        #expect(set.isClosed(number))
        for now in [Int64(0), 100, 10_000] {
            _ = set.issue(now: now)
            #expect(set.isClosed(number))
            expectEqual(set.spend(number), .spentBefore)
        }
    }

    @Test func `memory follows what is spent within a lifetime, not what ever was`() {
        let set = set(1_000_000)
        var most = 0
        for now in Int64(0)..<1_500 {
            let last = issue(100, set, at: now)
            #expect(((last - 49)...last).allSatisfy { set.spend($0) == .spent })
            most = max(most, set.bytes)
        }
        // 48,000 numbers of a lifetime in some 110 blocks, and 64 small tables for ten periods.
        let room = 64 * 4 * 64 * 11
        #expect(most <= room)
    }

    @Test func `a step of the clock forth and back makes no spent number fresh`() {
        let set = set()
        let number = set.issue(now: 1_000)
        expectEqual(set.spend(number), .spent)
        // All expires, is forgotten, and then it is the time of the issue again.
        _ = set.issue(now: 1_000_000)
        #expect(set.isClosed(number))
        let next = set.issue(now: 1_000)
        #expect(!set.isOver(1_000 + Self.lifetime, now: 1_000))
        expectEqual(set.spend(number), .spentBefore)
        expectEqual(set.spend(next), .spent)
        expectEqual(set.spend(next), .spentBefore)
    }

    @Test func `after a long step of the clock back what is issued is good at once`() {
        let set = set()
        let old = set.issue(now: 1_000_000)
        let number = set.issue(now: 500)
        #expect(set.isClosed(old))
        #expect(set.isOver(1_000_000 + Self.lifetime, now: 500))
        #expect(!set.isClosed(number))
        expectEqual(set.spend(number), .spent)
    }

    @Test func `a short step of the clock back leaves numbers good, spent ones spent`() {
        let set = set()
        let spent = set.issue(now: 1_000)
        let fresh = set.issue(now: 1_000)
        expectEqual(set.spend(spent), .spent)
        _ = set.issue(now: 800)
        expectEqual(set.spend(spent), .spentBefore)
        expectEqual(set.spend(fresh), .spent)
        #expect(!set.isOver(1_000 + Self.lifetime, now: 800))
        #expect(set.isOver(1_000 + Self.lifetime, now: 519))
    }

    @Test
    func `a clock that steps back again and again closes old periods and never stops issuing`() {
        let set = set()
        var past: [UInt64] = []
        for step in 0..<1_000 {
            let number = set.issue(now: step.isMultiple(of: 2) ? 1_000 : 800)
            expectEqual(set.spend(number), .spent)
            past.append(number)
            #expect(past.suffix(40).allSatisfy { set.spend($0) == .spentBefore })
        }
        expectEqual(Set(past).count, past.count)
        #expect(set.bytes <= SpentChallenges.bytesMax(capacity: 32))
    }

    /// Event loops read the clock once a turn.
    @Test func `loops whose clocks differ by a second go on in one period`() {
        let set = set()
        _ = set.issue(now: 1_000)
        for _ in 0..<100 {
            expectEqual(set.issue(now: 999) >> 40, 0)
            expectEqual(set.issue(now: 1_001) >> 40, 0)
        }
        expectEqual(set.issue(now: 1_060) >> 40, 1)
        expectEqual(set.issue(now: 1_059) >> 40, 1)
    }

    @Test(arguments: [(Int64(1), Int64(60)), (300, 60), (3_600, 450), (1 << 32, 1 << 29)])
    func `a period is an eighth of a lifetime, and a minute at the least`(
        lifetime: Int64,
        length: Int64
    ) {
        expectEqual(ChallengeCalendar(lifetime: lifetime).length, length)
    }

    private final class Clock: Sendable {
        let seconds = Atomic<Int64>(0)
    }

    @Test func `issuing, spending and forgetting at once never spend a number twice`() async {
        let set = set(100_000, lifetime: 1)
        let clock = Clock()
        let wins = await withTaskGroup(of: [UInt64].self) { group in
            for _ in 0..<4 {
                group.addTask {
                    var wins: [UInt64] = []
                    for step in 0..<20_000 {
                        if step.isMultiple(of: 50) { clock.seconds.add(20, ordering: .relaxed) }
                        let number = set.issue(now: clock.seconds.load(ordering: .relaxed))
                        // Its neighbours too, which another event loop is about to spend.
                        for number in [number, number &- 1, number &- 2]
                        where set.spend(number) == .spent {
                            wins.append(number)
                        }
                    }
                    return wins
                }
            }
            return await group.reduce(into: [UInt64]()) { $0 += $1 }
        }
        expectEqual(wins.count, Set(wins).count)
        #expect(wins.count > 40_000)
        expectEqual(set.issued, 80_000)
    }
}
