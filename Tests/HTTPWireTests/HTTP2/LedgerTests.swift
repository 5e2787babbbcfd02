import Expectations
import Testing

@testable import HTTPWire

struct LedgerTests {
    private typealias Head = HTTP2Ledger.FrameHead

    /// What a hundred thousand such frames at once lead to, and the first that is one too many.
    private static func flood(
        _ frame: HTTP2Ledger.FrameHead,
        _ change: (inout HTTP2Limits) -> Void = { _ in }
    ) -> (excess: HTTP2Excess, after: Int)? {
        var limits = HTTP2Limits()
        change(&limits)
        var ledger = HTTP2Ledger(limits)
        for count in 0..<100_000 {
            do throws(HTTP2Excess) {
                try ledger.frameBegan(frame, now: 1_000)
            } catch {
                return (error, count)
            }
        }
        return nil
    }

    @Test func `each kind of flood meets its own limit`() {
        #expect(Self.flood(Head(type: 3, length: 4))! == (.resets, 600))
        #expect(Self.flood(Head(type: 4))! == (.settings, 30))
        #expect(Self.flood(Head(type: 6, length: 8))! == (.pings, 120))
        #expect(Self.flood(Head(type: 0))! == (.emptyFrames, 120))
        #expect(Self.flood(Head(type: 0, flags: 8, length: 200))! == (.emptyFrames, 120))
        #expect(Self.flood(Head(type: 9, length: 1))! == (.continuations, 8))
        #expect(Self.flood(Head(type: 2, length: 5))! == (.otherFrames, 600))
        #expect(Self.flood(Head(type: 0xEE, length: 5))! == (.otherFrames, 600))
        #expect(Self.flood(Head(type: 8, length: 4))! == (.windowUpdates, 1024))
    }

    @Test func `content and complete requests are no flood`() {
        #expect(Self.flood(Head(type: 0, length: 1)) == nil)
        #expect(Self.flood(Head(type: 0, flags: 1)) == nil)
        #expect(Self.flood(Head(type: 1, flags: 5, length: 100)) == nil)
    }

    @Test func `what is off has no limit`() {
        #expect(Self.flood(Head(type: 3)) { $0.resets = nil } == nil)
    }

    @Test func `a limit is a minute's, and time makes up for what was taken`() throws {
        var allowance = HTTP2Ledger.Allowance(60)
        var taken = (0..<61).map { _ in allowance.take(now: 5_000) }
        let expected = Array(repeating: true, count: 60) + [false]
        expectEqual(taken, expected)
        var later = HTTP2Ledger.Allowance(60)
        taken = (0..<600).map { later.take(now: $0 * 1_000) }
        #expect(!taken.contains(false))
    }

    @Test func `a head is bounded over all its frames`() {
        var ledger = HTTP2Ledger(HTTP2Limits())
        #expect(throws: HTTP2Excess.headerList) {
            try ledger.frameBegan(Head(type: 1, length: 16_384), now: 0)
            try ledger.frameBegan(Head(type: 9, length: 16_384), now: 0)
            try ledger.frameBegan(Head(type: 9, length: 1), now: 0)
        }
    }

    @Test func `what heads have beyond their bound is bounded over all heads of a minute`() throws {
        let max = HTTP2Limits().head.headBytesMax
        var ledger = HTTP2Ledger(HTTP2Limits())
        /// So many heads of this many bytes, in fields of a 16th of them.
        func send(_ heads: Int, of bytes: Int, now: UInt64 = 0) throws(HTTP2Excess) {
            for _ in 0..<heads {
                for field in 1...16 {
                    try ledger.fieldCame(bytes / 16, of: bytes / 16 * field, now: now)
                }
            }
        }
        try send(1_000, of: max)
        // A few that are hardly too long are no attack.
        try send(40, of: max + max / 16)
        #expect(throws: HTTP2Excess.headerList) { try send(1, of: 3 * max) }
        // A minute later there is room for one that is far too long, and for no other.
        try send(1, of: 4 * max, now: 120_000)
        #expect(throws: HTTP2Excess.headerList) { try send(1, of: max + max / 16, now: 120_000) }
    }

    @Test func `windows may open as often as responses were sent`() throws {
        var ledger = HTTP2Ledger(HTTP2Limits())
        for _ in 0..<10_000 {
            ledger.responseSent()
            for _ in 0..<8 { try ledger.frameBegan(Head(type: 8, length: 4), now: 0) }
        }
    }

    @Test func `an instant far in the future traps nowhere`() {
        var allowance = HTTP2Ledger.Allowance(1)
        for now in [UInt64.max, 0, UInt64.max / 1000, 1] { _ = allowance.take(now: now) }
    }
}
