import Dispatch
import Expectations
import Glibc
import HTTPWire
import Synchronization
import Testing
import Verification

@Suite struct AddressTableTests {
    private static let key: (UInt64, UInt64) = (0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210)
    private static let rate = TokenRate(1, perSeconds: 60, burst: 2)

    private let table = AddressTable(capacity: 64, key: AddressTableTests.key)

    private func hold(_ address: IPAddress, now: UInt64 = 1, max: Int? = nil) -> AddressEntry? {
        guard case .held(let entry) = table.hold(address, now: now, max: max) else { return nil }
        return entry
    }

    private func isRefused(_ address: IPAddress, max: Int) -> Bool {
        guard case .refused = table.hold(address, now: 1, max: max) else { return false }
        return true
    }

    @Test func `an address has as many connections as it may, and no more`() throws {
        let entries = try (0..<3).map { _ in try #require(hold(.v4(7), max: 3)) }
        #expect(isRefused(.v4(7), max: 3))
        #expect(hold(.v4(8), max: 3) != nil)
        entries[0].release(now: 2)
        #expect(hold(.v4(7), max: 3) != nil)
        #expect(isRefused(.v4(7), max: 3))
    }

    @Test func `without a limit there is none`() {
        for _ in 0..<1_000 { #expect(hold(.v4(7)) != nil) }
    }

    @Test func `event loops that bring a new address in the same moment give it one place`() {
        let loops = 2
        let addresses = 2_000
        let table = AddressTable(capacity: 1 << 16, key: Self.key)
        let arrived = Atomic<Int>(0)
        DispatchQueue.concurrentPerform(iterations: loops) { _ in
            for number in 0..<addresses {
                arrived.wrappingAdd(1, ordering: .releasing)
                while arrived.load(ordering: .acquiring) < (number + 1) * loops { sched_yield() }
                _ = table.hold(.v4(UInt32(number)), now: 1, max: nil)
            }
        }
        let shared = (0..<addresses).count { number in
            guard case .refused = table.hold(.v4(UInt32(number)), now: 1, max: loops) else {
                return false
            }
            return true
        }
        expectEqual(shared, addresses)
    }

    @Test func `an IPv6 address counts as its 64 bits network`() throws {
        #expect(hold(.v6(high: 9, low: 1), max: 1) != nil)
        #expect(isRefused(.v6(high: 9, low: 0xFFFF_0000_1111_2222), max: 1))
        #expect(hold(.v6(high: 10, low: 1), max: 1) != nil)
    }

    @Test func `what an address has used stays when its connections are gone`() throws {
        let first = try #require(hold(.v4(7)))
        first.addFailure(Self.rate, now: 10)
        first.addFailure(Self.rate, now: 10)
        expectEqual(first.failureWait(Self.rate, now: 10), 60_000_000_000)
        first.release(now: 10)
        let second = try #require(hold(.v4(7), now: 20))
        #expect(second.failureWait(Self.rate, now: 20) != nil)
        expectEqual(second.failureWait(Self.rate, now: 60_000_000_010), nil)
    }

    /// A call for eight challenges costs eight, although it was let in for one.
    @Test func `tokens that are owed flow in before there is another`() throws {
        let entry = try #require(hold(.v4(7)))
        let rate = TokenRate(1, burst: 2)
        let second: UInt64 = 1_000_000_000
        expectEqual(entry.takeCall(rate, now: 5 * second), nil)
        entry.oweCalls(7, rate, now: 5 * second)
        expectEqual(entry.takeCall(rate, now: 5 * second), 7 * second)
        expectEqual(entry.takeCall(rate, now: 12 * second - 1), 1)
        expectEqual(entry.takeCall(rate, now: 12 * second), nil)
        expectEqual(entry.takeRequest(rate, now: 5 * second), nil, "the buckets are apart")
        entry.oweCalls(.max, rate, now: 12 * second)
        entry.oweCalls(.min, rate, now: 12 * second)
        #expect(entry.takeCall(rate, now: 13 * second) != nil)
    }

    @Test func `to look whether a token is there takes none`() throws {
        let entry = try #require(hold(.v4(7)))
        for _ in 0..<10 { expectEqual(entry.failureWait(Self.rate, now: 5), nil) }
        expectEqual(entry.takeRequest(Self.rate, now: 5), nil)
        expectEqual(entry.takeRequest(Self.rate, now: 5), nil)
        expectEqual(entry.takeRequest(Self.rate, now: 5), 60_000_000_000)
        expectEqual(entry.failureWait(Self.rate, now: 5), nil, "the two buckets are apart")
    }

    @Test func `a flood of addresses takes no place that is held`() throws {
        let kept = try #require(hold(.v4(1), max: 1))
        kept.addFailure(Self.rate, now: 1)
        kept.addFailure(Self.rate, now: 1)
        for number in 2..<10_000 as Range<UInt32> {
            let other = try #require(hold(.v4(number), now: UInt64(number)))
            expectEqual(other.failureWait(Self.rate, now: 1), nil, "a newcomer begins anew")
            other.addFailure(Self.rate, now: 1)
            other.addFailure(Self.rate, now: 1)
            other.release(now: UInt64(number))
        }
        #expect(isRefused(.v4(1), max: 1))
        #expect(kept.failureWait(Self.rate, now: 1) != nil)
    }

    @Test func `of the idle addresses the one that was used longest ago gives way`() throws {
        let single = AddressTable(capacity: 8, key: Self.key)
        func touch(_ number: UInt32, now: UInt64) throws -> AddressEntry {
            guard case .held(let entry) = single.hold(.v4(number), now: now, max: nil) else {
                throw Full()
            }
            entry.release(now: now)
            return entry
        }
        for number in 1...8 as ClosedRange<UInt32> {
            let entry = try touch(number, now: UInt64(number))
            entry.addFailure(Self.rate, now: 0)
            entry.addFailure(Self.rate, now: 0)
        }
        _ = try touch(1, now: 9)
        _ = try touch(9, now: 10)
        #expect(try touch(1, now: 11).failureWait(Self.rate, now: 0) != nil)
        try expectEqual(touch(2, now: 12).failureWait(Self.rate, now: 0), nil)
    }

    private struct Full: Error {}

    @Test func `where all places are held a newcomer goes without, and memory does not grow`() {
        let single = AddressTable(capacity: 8, key: Self.key)
        var without = 0
        for number in 0..<100 as Range<UInt32> {
            if case .noRoom = single.hold(.v4(number), now: 1, max: 1) { without += 1 }
        }
        expectEqual(without, 92)
        expectEqual(single.capacity, 8)
    }

    @Test func `loops that hold and release at once never go over the limit and lose nothing`() {
        let most = 3
        // Never idle, so it keeps its place.
        #expect(hold(.v4(7), max: most) != nil)
        let open = Atomic<Int>(0)
        let peak = Atomic<Int>(0)
        let table = table
        DispatchQueue.concurrentPerform(iterations: 4) { loop in
            for round in 0..<20_000 as Range<UInt64> {
                // Others come and go, so that places are given and taken away all the time.
                let other = table.hold(.v4(UInt32(round) &+ 100), now: round, max: nil)
                let holding = table.hold(.v4(7), now: round, max: most)
                if case .held(let entry) = holding {
                    let now = open.add(1, ordering: .relaxed).newValue
                    peak.max(now, ordering: .relaxed)
                    open.subtract(1, ordering: .relaxed)
                    entry.release(now: round)
                }
                if case .held(let entry) = other { entry.release(now: round) }
            }
        }
        #expect(peak.load(ordering: .relaxed) < most)
        for _ in 1..<most { #expect(hold(.v4(7), max: most) != nil) }
        #expect(isRefused(.v4(7), max: most))
    }
}
