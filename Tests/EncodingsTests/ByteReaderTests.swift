import Encodings
import Expectations
import Testing

@Suite struct ByteReaderTests {
    @Test func `what was written is read`() throws {
        var out = ByteWriter()
        out.byte(7)
        out.flag(true)
        out.word(.max)
        out.number(-5)
        out.text("ä")
        out.optional(UInt64(3)) { $0.word($1) }
        out.optional(UInt64?.none) { $0.word($1) }
        var bytes = ByteReader(out.bytes)
        try expectEqual(bytes.byte(), 7)
        #expect(try bytes.flag())
        try expectEqual(bytes.word(), .max)
        try expectEqual(bytes.number(), -5)
        try expectEqual(bytes.text(), "ä")
        for expected in [UInt64(3), nil] {
            let read = try bytes.optional { (bytes) throws(ByteReader.Fault) in try bytes.word() }
            expectEqual(read, expected)
        }
        try bytes.end()
    }

    @Test func `nothing is read beyond the end, and no count is believed`() {
        var short = ByteReader([1, 2, 3])
        #expect(throws: ByteReader.Fault.self) { try short.word() }
        #expect(throws: ByteReader.Fault.self) { try short.end() }
        for count in [UInt64(1), 9, UInt64(Int.max), .max] {
            var out = ByteWriter()
            out.word(count)
            var bytes = ByteReader(out.bytes)
            #expect(throws: ByteReader.Fault.self) { try bytes.block() }
        }
        var long = ByteWriter()
        long.block([1, 2, 3])
        var bytes = ByteReader(long.bytes)
        #expect(throws: ByteReader.Fault.self) { try bytes.block(max: 2) }
        var flag = ByteReader([2])
        #expect(throws: ByteReader.Fault.self) { try flag.flag() }
    }

    @Test func `a short number takes as few bytes as it needs`() throws {
        let values: [(UInt64, Int)] = [(0, 1), (127, 1), (128, 2), (1 << 62, 9), (.max, 10)]
        for (value, count) in values {
            var out = ByteWriter()
            out.short(value)
            expectEqual(out.bytes.count, count)
            var bytes = ByteReader(out.bytes)
            try expectEqual(bytes.short(), value)
            try bytes.end()
        }
        for wrong in [[0x80], Array(repeating: 0xFF, count: 9) + [2]] as [[UInt8]] {
            #expect(throws: ByteReader.Fault.self) {
                var bytes = ByteReader(wrong)
                _ = try bytes.short()
            }
        }
    }
}
