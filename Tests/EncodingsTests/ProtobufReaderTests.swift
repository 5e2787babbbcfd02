import Encodings
import Expectations
import Testing

@Suite struct ProtobufReaderTests {
    private func read(_ bytes: [UInt8]) throws(ProtobufReader.Fault) -> [String] {
        var found: [String] = []
        var reader = ProtobufReader(0..<bytes.count)
        while let field = try reader.next(bytes.span) {
            found.append("\(field.number) \(field.value)")
        }
        return found
    }

    @Test func `fields come in their order`() throws {
        var writer = ProtobufWriter()
        writer.field(1, 300)
        writer.field(2, "ab".utf8)
        writer.message(3) { $0.field(1, UInt64.max) }
        try expectEqual(
            read(writer.bytes),
            [
                "1 \(ProtobufReader.Value.varint(300))", "2 \(ProtobufReader.Value.bytes(5..<7))",
                "3 \(ProtobufReader.Value.bytes(9..<20))",
            ]
        )
        try expectEqual(
            read([0x09, 1, 2, 3, 4, 5, 6, 7, 8, 0x15, 1, 2, 3, 4]),
            ["1 fixed", "2 fixed"]
        )
        try expectEqual(read([]), [])
    }

    @Test(arguments: [
        ([0x08], ProtobufReader.Fault.truncated), ([0x08, 0x80], .truncated), ([0x80], .truncated),
        ([0x0A, 2, 1], .truncated), ([0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F], .truncated),
        ([0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1], .truncated),
        ([0x09, 1, 2, 3], .truncated), ([0x0D, 1, 2, 3], .truncated),
        ([0x08, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2], .varint),
        ([0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0], .varint),
        ([0x00, 0], .tag), ([0x0B], .tag), ([0x0C], .tag), ([0x0E], .tag), ([0x0F], .tag),
        ([0x88, 0x80, 0x80, 0x80, 0x10, 0], .tag),
    ])
    func `what is no message has a fault`(bytes: [UInt8], fault: ProtobufReader.Fault) {
        #expect(throws: fault) { try read(bytes) }
    }
}
