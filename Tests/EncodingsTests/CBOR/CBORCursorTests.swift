import Encodings
import Expectations
import Testing

@Suite struct CBORCursorTests {
    private let budget = CBORBudget(bytesMax: 1024, depthMax: 2, itemsMax: 8)

    @Test func `walks a map without copying`() throws {
        let bytes = try #require(Hex.decode("a261614201026162f6"))
        var cursor = try CBORCursor(0..<bytes.count, budget: budget)
        try expectEqual(cursor.map(in: bytes.span), 2)
        try expectEqual(cursor.text(in: bytes.span), 2..<3)
        try expectEqual(cursor.bytes(in: bytes.span), 4..<6)
        try expectEqual(cursor.text(in: bytes.span), 7..<8)
        #expect(!cursor.isAtEnd)
        #expect(throws: CBORError(.trailingBytes, at: 8)) { try cursor.finish() }
        try expectEqual(cursor.skip(in: bytes.span), 8..<9)
        try cursor.finish()
    }

    @Test func `another type than the one expected is refused where it stands`() throws {
        let bytes = try #require(Hex.decode("8100"))
        var cursor = try CBORCursor(0..<2, budget: budget)
        #expect(throws: CBORError(.unexpectedType, at: 0)) { try cursor.map(in: bytes.span) }
        cursor = try CBORCursor(0..<2, budget: budget)
        try expectEqual(cursor.array(in: bytes.span), 1)
        #expect(throws: CBORError(.unexpectedType, at: 1)) { try cursor.text(in: bytes.span) }
    }

    @Test func `what is skipped obeys the same rules`() throws {
        for (hex, reason) in [
            ("818181 00", CBORError.Reason.tooDeep), ("a2010201 02", .duplicateKey),
            ("61ff", .notUTF8), ("1800", .notShortest),
        ] {
            let bytes = try #require(Hex.decode(hex.filter { $0 != " " }))
            var cursor = try CBORCursor(0..<bytes.count, budget: budget)
            do throws(CBORError) {
                _ = try cursor.skip(in: bytes.span)
                Issue.record("\(hex) was skipped")
            } catch {
                expectEqual(error.reason, reason)
            }
        }
    }

    @Test func `a range beyond the bytes is truncated, not a trap`() throws {
        let bytes: [UInt8] = [0x00]
        var cursor = try CBORCursor(0..<9, budget: budget)
        #expect(throws: CBORError(.truncated, at: 0)) { try cursor.unsigned(in: bytes.span) }
    }
}
