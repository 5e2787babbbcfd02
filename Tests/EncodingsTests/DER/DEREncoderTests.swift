import Encodings
import Expectations
import Testing

@Suite struct DEREncoderTests {
    /// X.690 §8.19 and RFC 5758 §3.2, which has the second one in hexadecimal.
    @Test(arguments: [
        ([2, 5, 29, 15], "0603551d0f"), ([1, 2, 840, 10045, 4, 3, 2], "06082a8648ce3d040302"),
        ([1, 2, 840, 113_635, 100, 8, 2], "06092a864886f763640802"), ([2, 5], "060155"),
        ([0, 9, 127, 128, 16_383, 16_384], "0609097f8100ff7f818000"),
    ])
    func `an object identifier is its arcs in base 128`(arcs: [UInt32], hex: String) {
        expectEqual(Hex.text(DEREncoder.objectIdentifier(arcs)), hex)
    }

    @Test func `a bit string of whole bytes has no unused bits`() {
        expectEqual(DEREncoder.bitString([0xAB, 0xCD]), [0x03, 0x03, 0x00, 0xAB, 0xCD])
    }

    @Test(arguments: [0, 1, 127, 128, 255, 256, 65_536])
    func `what is written is read again`(count: Int) throws {
        let content = [UInt8](repeating: 7, count: count)
        let tag = DERTag.explicit(1204)
        let element = DEREncoder.element(tag, content)
        var cursor = DERCursor(0..<element.count)
        try expectEqual(Array(element[cursor.next(tag, in: element.span)]), content)
        #expect(cursor.isAtEnd)
    }
}
