import Encodings
import Expectations
import Testing

@Suite struct DERCursorTests {
    private func error(_ hex: String) -> DERError? {
        guard let bytes = Hex.decode(hex) else { return nil }
        do throws(DERError) {
            var cursor = DERCursor(0..<bytes.count)
            _ = try cursor.next(in: bytes.span)
            try cursor.finish()
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: [
        ("", DERError.Reason.truncated), ("04", .truncated), ("0401", .truncated),
        ("048100", .lengthNotMinimal), ("04817f", .lengthNotMinimal),
        ("04820080", .lengthNotMinimal),
        ("0480", .lengthNotDefinite), ("0485000000000100", .lengthTooLarge),
        ("04ff", .lengthTooLarge),
        ("0484ffffffff", .truncated), ("bf1e00", .tagTooLarge), ("bf8001 00", .tagTooLarge),
        ("bfffffff7f00", .tagTooLarge), ("bf", .truncated), ("050000", .trailingBytes),
    ])
    func `what is not DER is refused`(hex: String, reason: DERError.Reason) {
        expectEqual(error(hex.filter { $0 != " " })?.reason, reason)
    }

    @Test(arguments: [0, 1, 127, 128, 255, 256, 65_535, 65_536])
    func `what the encoder writes is read`(count: Int) throws {
        let content = [UInt8](repeating: 1, count: count)
        for number in [UInt32(0), 30, 31, 127, 128, 1_404, 2_097_151] {
            let bytes = DEREncoder.element(.explicit(number), content)
            var cursor = DERCursor(0..<bytes.count)
            let range = try cursor.next(.explicit(number), in: bytes.span)
            try cursor.finish()
            expectEqual(range.count, count)
        }
    }

    @Test func `small integers are non-negative and minimal`() throws {
        for value in [UInt32(0), 1, 127, 128, 255, 256, 0x7FFF_FFFF] {
            let bytes = DEREncoder.integer(value)
            var cursor = DERCursor(0..<bytes.count)
            try expectEqual(cursor.smallInteger(in: bytes.span), Int(value))
        }
        for hex in ["0200", "020180", "02020001", "02050080000000"] {
            let bytes = try #require(Hex.decode(hex))
            var cursor = DERCursor(0..<bytes.count)
            #expect(throws: DERError(.badInteger, at: 0)) {
                try cursor.smallInteger(in: bytes.span)
            }
        }
    }
}
