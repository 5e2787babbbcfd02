/// Walks the elements of a comma-separated list (RFC 9110 §5.6.1) in which commas may stand in
/// quoted strings. Empty elements are skipped.
///
/// For Cache-Control and WWW-Authenticate, whose elements all begin with a token.
struct ListElements {
    /// One element.
    struct Element {
        /// From its first byte to its last, without white space at its ends.
        let range: Range<Int>
        /// The token at its beginning.
        let name: Range<Int>
        /// Whether `=` follows the name: a parameter or a directive with an argument.
        let hasValue: Bool
    }

    /// Whether the rest could not be read: an element without a name, a quoted string without an
    /// end, or a byte that neither has. The walk has then ended.
    private(set) var isMalformed = false
    private var position: Int
    private let end: Int

    init(_ value: Range<Int>) {
        position = value.lowerBound
        end = value.upperBound
    }

    /// The next element; `nil` at the end of the list, or where it is malformed.
    mutating func next(_ bytes: Span<UInt8>) -> Element? {
        while position < end,
            bytes[position] == UInt8(ascii: ",") || ASCIIByte.isBlank(bytes[position])
        {
            position += 1
        }
        guard position < end else { return nil }
        let start = position
        while position < end, ByteSet.token.contains(bytes[position]) { position += 1 }
        let name = start..<position
        var index = position
        while index < end, ASCIIByte.isBlank(bytes[index]) { index += 1 }
        let hasValue = index < end && bytes[index] == UInt8(ascii: "=")
        guard !name.isEmpty, skipRest(bytes) else {
            isMalformed = true
            position = end
            return nil
        }
        let range = ByteScan.trimmed(bytes, start..<position)
        return Element(range: range, name: name, hasValue: hasValue)
    }

    /// Moves to the comma after the element; `false` where a byte is in the way.
    private mutating func skipRest(_ bytes: Span<UInt8>) -> Bool {
        while position < end {
            switch bytes[position] {
            case UInt8(ascii: ","): return true
            case UInt8(ascii: "\""):
                guard let after = Self.endOfQuoted(bytes, position..<end) else { return false }
                position = after
            // token68 (RFC 9110 §11.2) has a slash.
            case UInt8(ascii: "="), UInt8(ascii: "/"), ASCIIByte.space, ASCIIByte.tab: position += 1
            case let byte:
                guard ByteSet.token.contains(byte) else { return false }
                position += 1
            }
        }
        return true
    }

    /// The place after the quoted string (RFC 9110 §5.6.4) at the beginning of a range; `nil` when
    /// it has no end there.
    static func endOfQuoted(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Int? {
        var index = range.lowerBound + 1
        while index < range.upperBound {
            switch bytes[index] {
            case UInt8(ascii: "\""): return index + 1
            case UInt8(ascii: "\\"): index += 2
            default: index += 1
            }
        }
        return nil
    }
}

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
    mutating func next(_ bytes: Span<UInt8>) throws(Malformed) -> Range<Int>? {
        while position < end {
            let byte = bytes[position]
            if byte == UInt8(ascii: ",") || ASCIIByte.isBlank(byte) {
                position += 1
                continue
            }
            let start = position
            while position < end, ByteSet.token.contains(bytes[position]) { position += 1 }
            let token = start..<position
            while position < end, ASCIIByte.isBlank(bytes[position]) { position += 1 }
            guard !token.isEmpty, position == end || bytes[position] == UInt8(ascii: ",") else {
                throw Malformed(.connectionOption, at: position)
            }
            return token
        }
        return nil
    }
}

/// The statements of a message's Connection lines (RFC 9110 §7.6.1).
package struct ConnectionOptions: Sendable, Equatable {
    package private(set) var close = false
    package private(set) var keepAlive = false
    package private(set) var upgrade = false
    /// How many options name fields.
    package internal(set) var nominations = 0

    /// Whether the sender keeps the connection (RFC 9112 §9.3).
    func isPersistent(in version: HTTPVersion) -> Bool {
        switch version {
        case .http11: !close
        case .http10: keepAlive && !close
        }
    }

    /// Takes an option that is no field name, or names a field that is never forwarded anyway.
    mutating func insert(_ bytes: Span<UInt8>, _ option: Range<Int>) -> Bool {
        switch option.count {
        case 2: return ByteScan.equal(bytes, option, to: "te")
        case 5:
            guard ByteScan.equal(bytes, option, to: "close") else { return false }
            close = true
        case 7:
            guard ByteScan.equal(bytes, option, to: "upgrade") else { return false }
            upgrade = true
        case 10:
            guard ByteScan.equal(bytes, option, to: "keep-alive") else { return false }
            keepAlive = true
        default: return false
        }
        return true
    }
}
