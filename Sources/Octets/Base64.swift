/// Base64 as RFC 4648 defines it: section 4 (`+`, `/`, padded) and section 5 (`-`, `_`).
public enum Base64 {
    private static let standard = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8
    )
    private static let urlSafe = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8
    )

    /// The value of each octet as a digit of either alphabet; 0xFF for an octet that is none, so
    /// that digits are what is below 64 in any of several values.
    private static let values: [UInt8] = {
        var table = [UInt8](repeating: 0xFF, count: 256)
        for (value, octet) in standard.enumerated() { table[Int(octet)] = UInt8(value) }
        for (value, octet) in urlSafe.enumerated() { table[Int(octet)] = UInt8(value) }
        return table
    }()

    /// The padded text of section 4.
    public static func encode(_ octets: Span<UInt8>) -> [UInt8] {
        encode(octets, alphabet: standard, padded: true)
    }

    /// The padded text of section 4.
    public static func encode(_ octets: [UInt8]) -> [UInt8] { encode(octets.span) }

    /// The text of section 5 without padding, for URLs and challenges.
    public static func encodeURL(_ octets: [UInt8]) -> [UInt8] {
        encode(octets.span, alphabet: urlSafe, padded: false)
    }

    /// The padded text of section 4 as a string, for messages and files.
    public static func text(_ octets: [UInt8]) -> String {
        String(decoding: encode(octets), as: UTF8.self)
    }

    private static func encode(
        _ octets: Span<UInt8>,
        alphabet: [UInt8],
        padded: Bool
    ) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity((octets.count / 3 + 1) * 4)
        let whole = octets.count - octets.count % 3
        for index in stride(from: 0, to: whole, by: 3) {
            let group =
                Int(octets[index]) << 16 | Int(octets[index + 1]) << 8 | Int(octets[index + 2])
            text.append(alphabet[group >> 18])
            text.append(alphabet[group >> 12 & 63])
            text.append(alphabet[group >> 6 & 63])
            text.append(alphabet[group & 63])
        }
        guard whole < octets.count else { return text }
        let hasTwo = octets.count - whole == 2
        let group = Int(octets[whole]) << 16 | (hasTwo ? Int(octets[whole + 1]) << 8 : 0)
        text.append(alphabet[group >> 18])
        text.append(alphabet[group >> 12 & 63])
        if hasTwo { text.append(alphabet[group >> 6 & 63]) }
        if padded {
            text.append(UInt8(ascii: "="))
            if !hasTwo { text.append(UInt8(ascii: "=")) }
        }
        return text
    }

    /// The octets of a text in either alphabet, with or without padding; `nil` when it is not
    /// base64.
    ///
    /// Refused: any other octet (white space too), a length that no encoding has, padding that does
    /// not fill the last group, and bits that are set beyond the last octet (RFC 4648 §3.5), so
    /// that one value has few spellings.
    public static func decode(_ text: Span<UInt8>) -> [UInt8]? {
        var end = text.count
        var padding = 0
        while end > 0, padding < 2, text[end - 1] == UInt8(ascii: "=") {
            end -= 1
            padding += 1
        }
        guard end % 4 != 1, padding == 0 || (end + padding) % 4 == 0 else { return nil }
        let values = values
        var octets: [UInt8] = []
        octets.reserveCapacity(end / 4 * 3 + 2)
        let whole = end - end % 4
        for index in stride(from: 0, to: whole, by: 4) {
            let first = values[Int(text[index])]
            let second = values[Int(text[index + 1])]
            let third = values[Int(text[index + 2])]
            let fourth = values[Int(text[index + 3])]
            guard first | second | third | fourth < 64 else { return nil }
            octets.append(first << 2 | second >> 4)
            octets.append(second << 4 | third >> 2)
            octets.append(third << 6 | fourth)
        }
        guard whole < end else { return octets }
        let first = values[Int(text[whole])]
        let second = values[Int(text[whole + 1])]
        let third = end - whole == 3 ? values[Int(text[whole + 2])] : 0
        guard first | second | third < 64 else { return nil }
        octets.append(first << 2 | second >> 4)
        if end - whole == 3 { octets.append(second << 4 | third >> 2) }
        let isZeroBeyond = end - whole == 3 ? third & 3 == 0 : second & 15 == 0
        return isZeroBeyond ? octets : nil
    }

    /// The octets of a text in either alphabet; `nil` when it is not base64. See
    /// ``decode(_:)-span``.
    public static func decode(_ text: some StringProtocol) -> [UInt8]? {
        let utf8 = Array(text.utf8)
        return decode(utf8.span)
    }
}
