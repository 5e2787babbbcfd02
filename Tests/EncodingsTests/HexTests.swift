import Encodings
import Expectations
import Testing

@Suite struct HexTests {
    @Test func `every byte comes back from both cases`() {
        let all = (UInt8.min...UInt8.max).map { $0 }
        expectEqual(Hex.decode(Hex.text(all)), all)
        expectEqual(Hex.decode(Hex.text(all).uppercased()), all)
        expectEqual(Hex.text([0, 0x0F, 0xF0, 0xAB]), "000ff0ab")
    }

    @Test(arguments: ["0", "0g", "é0", " 00", "0x00", "000"])
    func `an odd number of digits or another character is not hexadecimal`(text: String) {
        expectEqual(Hex.decode(text), nil)
    }
}
