import Encodings

/// The sha-256 member of a `Content-Digest` field (RFC 9530 §2, a dictionary of RFC 8941 §3.2).
public enum ContentDigest {
    /// The meaning of a field.
    ///
    /// Frozen: a field has a digest, or none, or is wrong.
    @frozen
    public enum Reading: Equatable, Sendable {
        /// SHA-256 of the content, 32 bytes.
        case digest([UInt8])
        /// No sha-256 member: other algorithms only, or nothing.
        case absent
        /// Not the field's grammar, or not 32 bytes, or sha-256 twice with different values.
        case malformed
    }

    /// Reads the combined value of all lines of the field, joined by commas.
    ///
    /// Members of other algorithms are skipped when they are byte sequences, too. Parameters are
    /// not defined, so they are refused.
    public static func read(_ value: Span<UInt8>) -> Reading {
        var found: [UInt8]?
        var index = 0
        while index < value.count {
            let start = skipSpace(value, from: index)
            var end = start
            while end < value.count, value[end] != UInt8(ascii: ",") { end += 1 }
            switch member(value, from: start, to: end) {
            case .digest(let digest):
                if let found, found != digest { return .malformed }
                found = digest
            case .absent: break
            case .malformed: return .malformed
            }
            // RFC 8941 §4.2.2: no comma at the end.
            guard end + 1 != value.count else { return .malformed }
            index = end + 1
        }
        return found.map(Reading.digest) ?? .absent
    }

    /// One `name=:base64:` member.
    private static func member(_ value: Span<UInt8>, from start: Int, to end: Int) -> Reading {
        var end = end
        while end > start, isSpace(value[end - 1]) { end -= 1 }
        guard end > start else { return .malformed }
        var equals = start
        while equals < end, value[equals] != UInt8(ascii: "=") { equals += 1 }
        guard end - equals >= 3, value[equals + 1] == UInt8(ascii: ":"),
            value[end - 1] == UInt8(ascii: ":"), isKey(value, from: start, to: equals),
            let digest = sequence(value.extracting((equals + 2)..<(end - 1)))
        else { return .malformed }
        guard matches(value, from: start, to: equals) else { return .absent }
        return digest.count == 32 ? .digest(digest) : .malformed
    }

    /// The bytes of a sequence (RFC 8941 §3.3.5), which has no letters of base64url.
    private static func sequence(_ text: Span<UInt8>) -> [UInt8]? {
        for index in text.indices {
            guard text[index] != UInt8(ascii: "-"), text[index] != UInt8(ascii: "_") else {
                return nil
            }
        }
        return Base64.decode(text)
    }

    /// RFC 8941 §3.1.2: `( lcalpha / "*" ) *( lcalpha / DIGIT / "_" / "-" / "." / "*" )`.
    private static func isKey(_ value: Span<UInt8>, from start: Int, to end: Int) -> Bool {
        for index in start..<end {
            switch value[index] {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "*"): break
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"),
                UInt8(ascii: "."):
                guard index > start else { return false }
            default: return false
            }
        }
        return end > start
    }

    /// Keys of a dictionary are in lower case (RFC 8941 §3.1.2); nothing else is sha-256.
    private static func matches(_ value: Span<UInt8>, from start: Int, to end: Int) -> Bool {
        guard end - start == 7 else { return false }
        // Eight bytes at most fit in the number, and "sha-256" is seven.
        var name: UInt64 = 0
        for index in start..<end { name = name << 8 | UInt64(value[index]) }
        return name == 0x7368_612D_3235_36
    }

    private static func skipSpace(_ value: Span<UInt8>, from index: Int) -> Int {
        var index = index
        while index < value.count, isSpace(value[index]) { index += 1 }
        return index
    }

    private static func isSpace(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
    }
}
