import AppAttest
import Cryptography
import Encodings
import Expectations
import RequestBinding
import SoftwareAuthenticator
import Testing

@testable import Tokens

/// What goes from one process to the next.
@Suite struct SessionStateTests {
    private func number(_ value: UInt64) -> SequenceNumber { SequenceNumber(known: value) }

    /// The session of an id at a table; `nil` when it is not open there.
    private func session(
        _ table: SessionTable,
        _ opened: SessionTable.Opened,
        now: Int64 = 1_000
    ) -> Session? {
        guard case .live(let session) = table.find(opened.id.span, now: now) else { return nil }
        return session
    }

    private func next(
        _ before: SessionTable,
        window: Int = 256,
        sessionsMax: Int = 1_000
    ) throws -> SessionTable {
        try SessionTable(
            SessionTable.Limits(lifetime: 600, window: window, sessionsMax: sessionsMax),
            goingOnFrom: before.state
        )
    }

    @Test func `a session goes on with the numbers that were used, twice over`() throws {
        let opening = Opening()
        let key = Opening.makeKey()
        let opened = try opening.open(key)
        let before = try #require(opening.session(opened))
        for value in [1, 2, 5, 900, 901, 700] as [UInt64] { #expect(before.use(number(value))) }
        let after = try next(try next(opening.table))
        let session = try #require(self.session(after, opened))
        expectEqual(session.keyID, key.keyID)
        expectEqual(session.evidence.app, before.evidence.app)
        expectEqual(session.evidence.counter, before.evidence.counter)
        expectEqual(session.evidence.build, before.evidence.build)
        let line = Array("x".utf8)
        expectEqual(session.signature(of: line.span), before.signature(of: line.span))
        for value in 1...1_000 as ClosedRange<UInt64> {
            expectEqual(session.admits(number(value)), before.admits(number(value)), "\(value)")
        }
        #expect(session.use(number(899)))
        #expect(!session.use(number(899)))
        // The next session is none of before.
        let fresh = after.open(key.keyID, before.evidence, now: 1_000)
        #expect(fresh.id != opened.id)
        #expect(self.session(after, fresh) != nil)
        expectEqual(after.opened, 2)
        expectEqual(after.count(now: 1_000), 2)
    }

    @Test(arguments: [64, 100, 255, 257, 320, 1_024, 4_096], [64, 256, 300, 4_096])
    func `a window of another width admits nothing that was used or refused before`(
        _ width: Int,
        _ widthBefore: Int
    ) throws {
        let opening = Opening(window: widthBefore)
        let opened = try opening.open(Opening.makeKey())
        let before = try #require(opening.session(opened))
        var random = SystemRandomNumberGenerator()
        for _ in 0..<3_000 {
            _ = before.use(number(UInt64.random(in: 1...9_000, using: &random)))
        }
        let after = try #require(session(try next(opening.table, window: width), opened))
        var admitted = 0
        for value in 1...9_100 as ClosedRange<UInt64> where after.admits(number(value)) {
            admitted += 1
            #expect(before.admits(number(value)), "\(value)")
        }
        #expect(admitted >= 100)
        // What both windows hold is lost by neither.
        let highest = try #require((1...9_000).last { !before.admits(number(UInt64($0))) })
        for value in max(1, highest - min(width, widthBefore))...highest {
            let number = number(UInt64(value))
            expectEqual(after.admits(number), before.admits(number), "\(value)")
        }
    }

    @Test func `where there is room for fewer, the oldest end`() throws {
        let opening = Opening()
        let opened = try (0..<6).map { _ in try opening.open(Opening.makeKey()) }
        let after = try next(opening.table, sessionsMax: 4)
        expectEqual(
            opened.map { session(after, $0) != nil },
            [false, false, true, true, true, true]
        )
        expectEqual(after.count(now: 1_000), 4)
        expectEqual(after.count(now: 1_600), 0)
    }

    @Test func `a key has as many sessions as it may, in whichever process they were opened`()
        throws
    {
        let opening = Opening()
        let key = Opening.makeKey()
        let opened = try (0..<SessionTable.perKeyMax).map { _ in try opening.open(key) }
        let after = try next(opening.table)
        let fresh = after.open(key.keyID, try Opening.evidence(key), now: 1_000)
        #expect(session(after, opened[0]) == nil)
        #expect((opened.dropFirst() + [fresh]).allSatisfy { session(after, $0) != nil })
        expectEqual(after.count(now: 1_000), SessionTable.perKeyMax)
    }

    @Test func `a state that is cut or changed is refused or harmless, and never crashes`() throws {
        let opening = Opening()
        let opened = try opening.open(Opening.makeKey())
        expectEqual(opening.session(opened)?.use(number(9)), true)
        let state = opening.table.state
        for count in state.indices {
            #expect(throws: ByteReader.Fault.self) {
                try SessionTable(goingOnFrom: Array(state.prefix(count)))
            }
        }
        #expect(throws: ByteReader.Fault.self) { try SessionTable(goingOnFrom: state + [0]) }
        for index in state.indices {
            for bit in 0..<8 {
                var changed = state
                changed[index] ^= 1 << bit
                _ = (try? SessionTable(goingOnFrom: changed))?.count(now: 0)
            }
        }
    }
}
