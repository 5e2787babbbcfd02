/// A set of ASCII bytes as a bit map; bytes above 0x7F are in none.
struct OctetSet: Sendable {
    /// Bit n stands for the byte n.
    let low: UInt64
    /// Bit n stands for the byte 64 + n.
    let high: UInt64

    @inline(__always)
    func contains(_ octet: UInt8) -> Bool {
        guard octet < 0x80 else { return false }
        let word = octet & 0x40 == 0 ? low : high
        return word &>> UInt64(octet & 0x3F) & 1 != 0
    }

    /// tchar (RFC 9110 §5.6.2): methods, field names, Connection options.
    static var token: OctetSet { OctetSet(low: 0x03FF_6CFA_0000_0000, high: 0x57FF_FFFF_C7FF_FFFE) }

    /// What a request target may hold: every visible byte but `#`. More than RFC 3986 has, since
    /// clients send `|`, `{`, `"` in queries, and they are forwarded as received.
    static var target: OctetSet {
        OctetSet(low: 0xFFFF_FFF6_0000_0000, high: 0x7FFF_FFFF_FFFF_FFFF)
    }

    /// What stands for itself in a path: all of these but `/`, `%`, `\` and `;`, and the space.
    static var plainInPath: OctetSet {
        OctetSet(low: 0xF7FF_7FDF_0000_0000, high: 0x7FFF_FFFF_EFFF_FFFF)
    }

    /// unreserved (RFC 3986 §2.3): a host name. Its grammar also has sub-delims and
    /// percent-encoding, which no host in DNS has and in which two parsers can differ.
    static var hostName: OctetSet {
        OctetSet(low: 0x03FF_6000_0000_0000, high: 0x47FF_FFFE_87FF_FFFE)
    }

    /// qdtext in ASCII (RFC 9110 §5.6.4), for quoted strings.
    static var quotedText: OctetSet {
        OctetSet(low: 0xFFFF_FFFB_0000_0200, high: 0x7FFF_FFFF_EFFF_FFFF)
    }
}

/// The bytes that have a name in the grammar.
enum Octet {
    static var tab: UInt8 { 0x09 }
    static var lineFeed: UInt8 { 0x0A }
    static var carriageReturn: UInt8 { 0x0D }
    static var space: UInt8 { 0x20 }

    /// OWS (RFC 9110 §5.6.3).
    @inline(__always)
    static func isBlank(_ octet: UInt8) -> Bool { octet == space || octet == tab }

    @inline(__always)
    static func isDigit(_ octet: UInt8) -> Bool { octet &- 0x30 < 10 }

    /// The value of a hexadecimal digit in either case.
    @inline(__always)
    static func hexadecimal(_ octet: UInt8) -> UInt8? {
        let digit = octet &- 0x30
        if digit < 10 { return digit }
        let letter = octet | 0x20
        guard letter >= 0x61, letter <= 0x66 else { return nil }
        return letter &- 0x57
    }
}
