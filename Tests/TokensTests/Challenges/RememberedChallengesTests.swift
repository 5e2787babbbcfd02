import Expectations
import Testing

@testable import Tokens

@Suite struct RememberedChallengesTests {
    private func serial(
        _ number: UInt64,
        epoch: UInt64 = 1,
        expiry: Int64 = 3_600
    ) -> ChallengeSerial {
        ChallengeSerial(purpose: .enrolment, epoch: epoch, number: number, expiry: expiry)
    }

    @Test func `a challenge is added once, whatever start and period it is of`() {
        let set = RememberedChallenges(capacity: 100)
        let serials = [
            serial(0), serial(1), serial(448), serial(1 << 40), serial(0, epoch: 2),
            serial(.max, epoch: 2),
        ]
        for serial in serials {
            #expect(!set.contains(serial))
            expectEqual(set.add(serial), .added)
            expectEqual(set.add(serial), .present)
            #expect(set.contains(serial))
        }
        set.remove(serials[1])
        expectEqual(serials.map(set.contains), [true, false, true, true, true, true])
    }

    @Test func `more than 65,536 challenges of one lifetime are remembered`() {
        let set = RememberedChallenges(capacity: ChallengeIssuer.rememberedBlocksMax)
        let count: UInt64 = 1_000_000
        for number in 0..<count where set.add(serial(number)) != .added {
            Issue.record("\(number) was not added")
            return
        }
        expectEqual(set.add(serial(0)), .present)
        expectEqual(set.add(serial(count - 1)), .present)
        #expect(set.bytes < 1 << 20)
    }

    @Test func `without room nothing is added, and room comes when all of a period has expired`() {
        let set = RememberedChallenges(capacity: 3)
        let far: [UInt64] = [0, 1_000, 2_000, 3_000]
        expectEqual(far.map { set.add(serial($0)) }, [.added, .added, .added, .noRoom])
        // A neighbour needs no room.
        expectEqual(set.add(serial(1, expiry: 4_000)), .added)
        set.forgetExpired(now: 3_599)
        expectEqual(set.add(serial(3_000)), .noRoom)
        set.forgetExpired(now: 3_700)
        expectEqual(set.add(serial(3_000, expiry: 5_000)), .added)
        // The table of the neighbour stays until that has expired.
        expectEqual(set.add(serial(1, expiry: 4_000)), .present)
        set.forgetExpired(now: 4_000)
        expectEqual(set.add(serial(1 << 40, expiry: 5_000)), .added)
        #expect(set.bytes <= RememberedChallenges.bytesMax(capacity: 3))
    }

    @Test func `a clock that steps back makes no challenge fresh that was forgotten`() {
        let set = RememberedChallenges(capacity: 3)
        expectEqual(set.add(serial(7)), .added)
        set.forgetExpired(now: 1 << 60)
        set.forgetExpired(now: 0)
        #expect(set.contains(serial(7)))
        expectEqual(set.add(serial(7)), .present)
    }

    /// Counts what a call has to copy, not the time that it takes. Before, a full set was copied
    /// whole, under one lock that all event loops share.
    @Test func `no call copies more than a small part of what is remembered`() {
        let capacity = ChallengeIssuer.rememberedBlocksMax
        let set = RememberedChallenges(capacity: capacity)
        for block in 0..<UInt64(capacity) { _ = set.add(serial(block * 448)) }
        expectEqual(set.add(serial(UInt64(capacity) * 448)), .noRoom)
        expectEqual(set.copiedBlocksMax, capacity / 64)
        #expect(set.bytes <= RememberedChallenges.bytesMax(capacity: capacity))
    }
}
