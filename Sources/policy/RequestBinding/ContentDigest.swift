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
    /// Members of other algorithms are skipped. Parameters are not defined, so they are refused.
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
            value[end - 1] == UInt8(ascii: ":")
        else { return .malformed }
        guard matches(value, from: start, to: equals) else { return .absent }
        guard equals + 2 < end - 1,
            let digest = Base64.decode(value.extracting((equals + 2)..<(end - 1))),
            digest.count == 32
        else { return .malformed }
        return .digest(digest)
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
