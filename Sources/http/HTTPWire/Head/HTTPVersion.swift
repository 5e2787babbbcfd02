/// The versions that are spoken. Own messages always say 1.1 (RFC 9112 §2.3).
package enum HTTPVersion: UInt8, Sendable {
    case http10
    case http11

    /// Whether the bytes are `HTTP/DIGIT.DIGIT`, letters compared with case (RFC 9112 §2.3).
    static func hasSyntax(_ octets: Span<UInt8>, _ range: Range<Int>) -> Bool {
        let start = range.lowerBound
        return range.count == 8 && octets[start] == UInt8(ascii: "H")
            && octets[start + 1] == UInt8(ascii: "T") && octets[start + 2] == UInt8(ascii: "T")
            && octets[start + 3] == UInt8(ascii: "P") && octets[start + 4] == UInt8(ascii: "/")
            && Octet.isDigit(octets[start + 5]) && octets[start + 6] == UInt8(ascii: ".")
            && Octet.isDigit(octets[start + 7])
    }

    /// The version in bytes that have its syntax; `nil` for one that is not spoken.
    ///
    /// A minor version above 1 is not. RFC 9110 §2.5 would allow to treat it as 1.1, but no such
    /// version exists, so a client that sends it is probing.
    init?(_ octets: Span<UInt8>, _ range: Range<Int>) {
        guard octets[range.lowerBound + 5] == UInt8(ascii: "1") else { return nil }
        switch octets[range.lowerBound + 7] {
        case UInt8(ascii: "0"): self = .http10
        case UInt8(ascii: "1"): self = .http11
        default: return nil
        }
    }
}
