/// Base64 as RFC 4648 defines it: section 4 (`+`, `/`, padded) and section 5 (`-`, `_`).
///
/// Tables and copies are `ContiguousArray`: Apple's systems have `Array.span` since 26 only, and
/// the app's half runs on older ones.
public enum Base64 {
    private static let standard = ContiguousArray(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8
    )
    private static let urlSafe = ContiguousArray(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8
    )

    /// The value of each byte as a digit of either alphabet; 0xFF for a byte that is no digit.
    private static let values: ContiguousArray<UInt8> = {
        var table = ContiguousArray<UInt8>(repeating: 0xFF, count: 256)
        for (value, byte) in standard.enumerated() { table[Int(byte)] = UInt8(value) }
        for (value, byte) in urlSafe.enumerated() { table[Int(byte)] = UInt8(value) }
        return table
    }()

    /// The padded text of section 4.
    public static func encode(_ bytes: some Sequence<UInt8>) -> [UInt8] {
        encode(ContiguousArray(bytes).span)
    }

    /// The padded text of section 4.
    public static func encode(_ bytes: Span<UInt8>) -> [UInt8] {
        var text: [UInt8] = []
        append(bytes, to: &text)
        return text
    }

    /// The text of section 5 without padding, for URLs and challenges.
    public static func encodeURL(_ bytes: some Sequence<UInt8>) -> [UInt8] {
        encodeURL(ContiguousArray(bytes).span)
    }

    /// The text of section 5 without padding, for URLs and challenges.
    public static func encodeURL(_ bytes: Span<UInt8>) -> [UInt8] {
        var text: [UInt8] = []
        appendURL(bytes, to: &text)
        return text
    }

    /// The text of section 5 without padding as a string, for JSON.
    package static func urlText(_ bytes: some Sequence<UInt8>) -> String {
        String(decoding: encodeURL(bytes), as: UTF8.self)
    }

    /// The padded text of section 4 as a string, for messages and files.
    public static func text(_ bytes: some Sequence<UInt8>) -> String {
        String(decoding: encode(bytes), as: UTF8.self)
    }

    /// Appends the padded text of section 4.
    public static func append(_ bytes: Span<UInt8>, to text: inout [UInt8]) {
        append(bytes, alphabet: standard, padded: true, to: &text)
    }

    /// Appends the text of section 5 without padding.
    package static func appendURL(_ bytes: Span<UInt8>, to text: inout [UInt8]) {
        append(bytes, alphabet: urlSafe, padded: false, to: &text)
    }

    /// Takes no generic sequence: such code is not specialized across modules, and then allocates
    /// an iterator's box for each byte.
    private static func append(
        _ bytes: Span<UInt8>,
        alphabet: ContiguousArray<UInt8>,
        padded: Bool,
        to text: inout [UInt8]
    ) {
        let digits = alphabet.span
        text.reserveCapacity(text.count + (bytes.count / 3 + 1) * 4)
        let rest = bytes.count % 3
        var index = 0
        while index < bytes.count - rest {
            let group = Int(bytes[index]) << 16 | Int(bytes[index + 1]) << 8 | Int(bytes[index + 2])
            text.append(digits[group >> 18])
            text.append(digits[group >> 12 & 63])
            text.append(digits[group >> 6 & 63])
            text.append(digits[group & 63])
            index += 3
        }
        guard rest > 0 else { return }
        let group = Int(bytes[index]) << 16 | (rest == 2 ? Int(bytes[index + 1]) << 8 : 0)
        text.append(digits[group >> 18])
        text.append(digits[group >> 12 & 63])
        if rest == 2 { text.append(digits[group >> 6 & 63]) }
        if padded { text.append(contentsOf: repeatElement(UInt8(ascii: "="), count: 3 - rest)) }
    }

    /// The bytes of a text in either alphabet, with or without padding; `nil` when it is not
    /// base64.
    ///
    /// Refused: any other byte (white space too), a length that no encoding has, padding that does
    /// not fill the last group, and bits that are set beyond the last byte (RFC 4648 §3.5), so
    /// that one value has few spellings.
    public static func decode(_ text: Span<UInt8>) -> [UInt8]? {
        var end = text.count
        var padding = 0
        while end > 0, padding < 2, text[end - 1] == UInt8(ascii: "=") {
            end -= 1
            padding += 1
        }
        guard end % 4 != 1, padding == 0 || (end + padding) % 4 == 0 else { return nil }
        let values = values.span
        let rest = end % 4
        var bytes: [UInt8] = []
        bytes.reserveCapacity(end / 4 * 3 + 2)
        // Checks all digits together: a byte that is no digit has bits above the six of a digit.
        var seen: UInt8 = 0
        var index = 0
        while index < end - rest {
            let (a, b) = (values[Int(text[index])], values[Int(text[index + 1])])
            let (c, d) = (values[Int(text[index + 2])], values[Int(text[index + 3])])
            seen |= a | b | c | d
            bytes.append(a << 2 | b >> 4)
            bytes.append(b << 4 | c >> 2)
            bytes.append(c << 6 | d)
            index += 4
        }
        if rest > 0 {
            let (a, b) = (values[Int(text[index])], values[Int(text[index + 1])])
            let c = rest == 3 ? values[Int(text[index + 2])] : 0
            seen |= a | b | c
            bytes.append(a << 2 | b >> 4)
            if rest == 3 { bytes.append(b << 4 | c >> 2) }
            guard rest == 3 ? c & 3 == 0 : b & 15 == 0 else { return nil }
        }
        return seen < 64 ? bytes : nil
    }

    /// The bytes of a text of section 5 without padding; `nil` for the other alphabet, and for
    /// padding.
    package static func decodeURL(_ text: Span<UInt8>) -> [UInt8]? {
        for index in text.indices {
            switch text[index] {
            case UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="): return nil
            default: break
            }
        }
        return decode(text)
    }

    /// The bytes of a text in either alphabet; `nil` when it is not base64. See
    /// ``decode(_:)-span``.
    public static func decode(_ text: some StringProtocol) -> [UInt8]? {
        decode(ContiguousArray(text.utf8).span)
    }
}
