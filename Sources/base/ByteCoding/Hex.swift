/// Hexadecimal text, lower case, two digits a byte.
public enum Hex {
    private static let digits = Array("0123456789abcdef".utf8)

    /// The digits of all bytes in order.
    public static func text(_ octets: some Sequence<UInt8>) -> String {
        var text: [UInt8] = []
        text.reserveCapacity(octets.underestimatedCount * 2)
        for octet in octets {
            text.append(digits[Int(octet >> 4)])
            text.append(digits[Int(octet & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The bytes of a text of an even number of digits in either case; `nil` otherwise.
    public static func decode(_ text: some StringProtocol) -> [UInt8]? {
        let digits = Array(text.utf8)
        guard digits.count % 2 == 0 else { return nil }
        var octets: [UInt8] = []
        octets.reserveCapacity(digits.count / 2)
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = value(digits[index]), let low = value(digits[index + 1]) else {
                return nil
            }
            octets.append(high << 4 | low)
        }
        return octets
    }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
