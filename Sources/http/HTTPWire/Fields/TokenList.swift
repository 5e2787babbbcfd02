/// Walks the members of a list of tokens, `#token` (RFC 9110 §5.6.1); empty members are skipped.
struct TokenList {
    private var position: Int
    private let end: Int

    init(_ value: Range<Int>) {
        position = value.lowerBound
        end = value.upperBound
    }

    /// The next token; `nil` at the end of the list.
    ///
    /// Throws `connection-option` for a member that is no token.
    mutating func next(_ octets: Span<UInt8>) throws(Malformed) -> Range<Int>? {
        while position < end {
            let octet = octets[position]
            if octet == UInt8(ascii: ",") || Octet.isBlank(octet) {
                position += 1
                continue
            }
            let start = position
            while position < end, OctetSet.token.contains(octets[position]) { position += 1 }
            let token = start..<position
            while position < end, Octet.isBlank(octets[position]) { position += 1 }
            guard !token.isEmpty, position == end || octets[position] == UInt8(ascii: ",") else {
                throw Malformed(.connectionOption, at: position)
            }
            return token
        }
        return nil
    }
}
