/// Base64 as RFC 4648 defines it: section 4 (`+`, `/`, padded) and section 5 (`-`, `_`).
public enum Base64 {
    private static let standard = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8
    )
    private static let urlSafe = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8
    )

    /// The value of each octet as a digit of either alphabet; 0xFF for an octet that is none.
    private static let values: [UInt8] = {
        var table = [UInt8](repeating: 0xFF, count: 256)
        for (value, octet) in standard.enumerated() { table[Int(octet)] = UInt8(value) }
        for (value, octet) in urlSafe.enumerated() { table[Int(octet)] = UInt8(value) }
        return table
    }()

    /// The padded text of section 4.
    public static func encode(_ octets: some Sequence<UInt8>) -> [UInt8] {
        encode(octets, alphabet: standard, padded: true)
    }

    /// The text of section 5 without padding, for URLs and challenges.
    public static func encodeURL(_ octets: some Sequence<UInt8>) -> [UInt8] {
        encode(octets, alphabet: urlSafe, padded: false)
    }

    /// The padded text of section 4 as a string, for messages and files.
    public static func text(_ octets: some Sequence<UInt8>) -> String {
        String(decoding: encode(octets), as: UTF8.self)
    }

    private static func encode(
        _ octets: some Sequence<UInt8>,
        alphabet: [UInt8],
        padded: Bool
    ) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity((octets.underestimatedCount / 3 + 1) * 4)
        var group: UInt32 = 0
        var held = 0
        for octet in octets {
            group = group << 8 | UInt32(octet)
            held += 1
            if held == 3 {
                for shift in [UInt32(18), 12, 6, 0] {
                    text.append(alphabet[Int(group >> shift & 63)])
                }
                group = 0
                held = 0
            }
        }
        guard held > 0 else { return text }
        group <<= held == 1 ? 16 : 8
        for shift in held == 1 ? [UInt32(18), 12] : [18, 12, 6] {
            text.append(alphabet[Int(group >> shift & 63)])
        }
        if padded { text.append(contentsOf: repeatElement(UInt8(ascii: "="), count: 3 - held)) }
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
        var octets: [UInt8] = []
        octets.reserveCapacity(end / 4 * 3 + 2)
        var group: UInt32 = 0
        var bits = 0
        for index in 0..<end {
            let value = values[Int(text[index])]
            guard value != 0xFF else { return nil }
            group = group << 6 | UInt32(value)
            bits += 6
            if bits >= 8 {
                bits -= 8
                octets.append(UInt8(truncatingIfNeeded: group >> UInt32(bits)))
                group &= (1 << UInt32(bits)) - 1
            }
        }
        return group == 0 ? octets : nil
    }

    /// The octets of a text in either alphabet; `nil` when it is not base64. See
    /// ``decode(_:)-span``.
    public static func decode(_ text: some StringProtocol) -> [UInt8]? {
        let utf8 = Array(text.utf8)
        return decode(utf8.span)
    }
}
