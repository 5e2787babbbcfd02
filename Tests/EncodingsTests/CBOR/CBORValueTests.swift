import Encodings
import Expectations
import Testing

private let budget = CBORBudget(bytesMax: 1024, depthMax: 8, itemsMax: 64)

private func decoded(_ hex: String, _ budget: CBORBudget = budget) throws -> CBORValue {
    try CBORValue(decoding: try #require(Hex.decode(hex)), budget: budget)
}

private func error(_ hex: String, _ budget: CBORBudget = budget) -> CBORError? {
    do {
        _ = try decoded(hex, budget)
        return nil
    } catch {
        return error as? CBORError
    }
}

struct Good: Sendable, CustomTestStringConvertible {
    let hex: String
    let value: CBORValue

    init(_ hex: String, _ value: CBORValue) {
        self.hex = hex
        self.value = value
    }

    var testDescription: String { hex }
}

struct Bad: Sendable, CustomTestStringConvertible {
    let hex: String
    let reason: CBORError.Reason
    let offset: Int

    init(_ hex: String, _ reason: CBORError.Reason, _ offset: Int) {
        self.hex = hex
        self.reason = reason
        self.offset = offset
    }

    var testDescription: String { hex }
}

@Suite struct CBORValueTests {
    // RFC 8949, appendix A, but for indefinite lengths and bignums.
    @Test(arguments: [
        Good("00", .unsigned(0)), Good("17", .unsigned(23)), Good("1818", .unsigned(24)),
        Good("18ff", .unsigned(255)), Good("190100", .unsigned(256)),
        Good("1a00010000", .unsigned(65536)), Good("1b0000000100000000", .unsigned(1 << 32)),
        Good("1bffffffffffffffff", .unsigned(.max)), Good("20", .negative(0)),
        Good("3863", .integer(-100)), Good("3bffffffffffffffff", .negative(.max)),
        Good("40", .bytes([])), Good("4401020304", .bytes([1, 2, 3, 4])), Good("60", .text("")),
        Good("62c3bc", .text("ü")), Good("64f0908591", .text("𐅑")), Good("80", .array([])),
        Good("83010203", .array([.unsigned(1), .unsigned(2), .unsigned(3)])),
        Good("a0", .map([])),
        Good(
            "a201020304",
            .map([.init(.unsigned(1), .unsigned(2)), .init(.unsigned(3), .unsigned(4))])
        ),
        Good("c11a514b67b0", .tagged(1, .unsigned(1_363_896_240))), Good("f4", .bool(false)),
        Good("f5", .bool(true)), Good("f6", .null), Good("f0", .simple(16)),
        Good("f8ff", .simple(255)),
        Good("f93c00", .float(bits: 0x3C00, width: 2)),
        Good("fb3ff199999999999a", .float(bits: 0x3FF1_9999_9999_999A, width: 8)),
    ])
    func `is decoded, and encoded to the same bytes`(row: Good) throws {
        try expectEqual(decoded(row.hex), row.value)
        expectEqual(Hex.text(row.value.encoded), row.hex)
    }

    @Test(arguments: [
        Bad("", .truncated, 0), Bad("18", .truncated, 1), Bad("1a000000", .truncated, 4),
        Bad("42ff", .truncated, 2), Bad("82", .truncated, 1), Bad("8201", .truncated, 2),
        Bad("a101", .truncated, 2), Bad("c1", .truncated, 1),
        Bad("5bffffffffffffffff", .truncated, 9), Bad("9bffffffffffffffff", .truncated, 9),
        Bad("bb7fffffffffffffff", .truncated, 9), Bad("9affffffff", .truncated, 5),
        Bad("1800", .notShortest, 0), Bad("1817", .notShortest, 0), Bad("1900ff", .notShortest, 0),
        Bad("1a0000ffff", .notShortest, 0), Bad("1b00000000ffffffff", .notShortest, 0),
        Bad("5800", .notShortest, 0), Bad("b80101 02", .notShortest, 0),
        Bad("d80102", .notShortest, 0),
        Bad("1c", .reserved, 0), Bad("5d", .reserved, 0), Bad("fe", .reserved, 0),
        Bad("f800", .reserved, 0), Bad("f81f", .reserved, 0),
        Bad("5f4101ff", .indefiniteLength, 0), Bad("7fff", .indefiniteLength, 0),
        Bad("9fff", .indefiniteLength, 0), Bad("bfff", .indefiniteLength, 0),
        Bad("ff", .indefiniteLength, 0),
        Bad("829fff01", .indefiniteLength, 1), Bad("61ff", .notUTF8, 0), Bad("62c328", .notUTF8, 0),
        Bad("63eda080", .notUTF8, 0), Bad("62c080", .notUTF8, 0),
        Bad("a2010201 03", .duplicateKey, 3), Bad("a2616101616102", .duplicateKey, 4),
        Bad("a1a2010201030 0", .duplicateKey, 4), Bad("0000", .trailingBytes, 1),
        Bad("a000", .trailingBytes, 1), Bad("f6f6", .trailingBytes, 1),
    ])
    func `is refused with its reason and offset`(row: Bad) {
        let hex = row.hex.filter { $0 != " " }
        expectEqual(error(hex), CBORError(row.reason, at: row.offset))
    }

    @Test func `a key of another type or width is another key`() throws {
        _ = try decoded("a301006131 00413100".filter { $0 != " " })
        _ = try decoded("a2f93c0000fa3f80000000")
    }

    @Test func `depth is bounded`() throws {
        _ = try decoded(String(repeating: "81", count: 8) + "00")
        expectEqual(error(String(repeating: "81", count: 9) + "00"), CBORError(.tooDeep, at: 8))
        expectEqual(error(String(repeating: "c1", count: 9) + "00"), CBORError(.tooDeep, at: 8))
        expectEqual(error(String(repeating: "81", count: 1000) + "00"), CBORError(.tooDeep, at: 8))
        // Levels that were left are given back.
        _ = try decoded("85" + String(repeating: "8181818181818100", count: 5))
    }

    @Test func `items are bounded, those of a count before they are read`() throws {
        let few = CBORBudget(bytesMax: 1024, depthMax: 8, itemsMax: 4)
        _ = try decoded("83000000", few)
        expectEqual(error("8400000000", few), CBORError(.tooManyItems, at: 0))
        expectEqual(error("a20102030400", few)?.reason, .tooManyItems)
        expectEqual(error("828100820000", few)?.reason, .tooManyItems)
    }

    @Test func `bytes are bounded`() {
        let short = CBORBudget(bytesMax: 3, depthMax: 8, itemsMax: 4)
        expectEqual(error("420000", short), nil)
        expectEqual(error("43000000", short), CBORError(.tooLong, at: 0))
    }

    @Test func `no short input traps`() {
        for first in UInt8.min...UInt8.max {
            for second in UInt8.min...UInt8.max {
                for bytes in [[first], [first, second], [first, second, first, second, 0]] {
                    do throws(CBORError) {
                        let value = try CBORValue(decoding: bytes, budget: budget)
                        if value.encoded != bytes { Issue.record("\(bytes) came back otherwise") }
                    } catch {
                        if error.offset > bytes.count { Issue.record("\(bytes): \(error)") }
                    }
                }
            }
        }
    }
}
