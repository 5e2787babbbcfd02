/// A small set of field names, for those that configuration names and ``FieldKind`` does not.
package struct FieldNameSet: Sendable {
    /// Names in lower case.
    private var names: [[UInt8]] = []
    /// Bit n is set when a name of n bytes is in the set; bit 63 stands for 63 and more.
    private var lengths: UInt64 = 0

    package init() {}

    package init(_ names: [String]) {
        for name in names { insert(Array(name.utf8)) }
    }

    package var isEmpty: Bool { names.isEmpty }

    /// Adds a name, in any case.
    package mutating func insert(_ name: [UInt8]) {
        names.append(name.map(ByteScan.folded))
        lengths |= Self.bit(name.count)
    }

    /// Adds the names of another set.
    package mutating func formUnion(_ other: FieldNameSet) {
        for name in other.names where !names.contains(name) { insert(name) }
    }

    /// Whether a name is in the set, case aside. Linear in the number of names of its length.
    package func contains(_ bytes: Span<UInt8>, _ name: Range<Int>) -> Bool {
        guard lengths & Self.bit(name.count) != 0 else { return false }
        for candidate in names
        where ByteScan.equal(bytes, name, candidate.span, 0..<candidate.count) {
            return true
        }
        return false
    }

    /// Whether a name is not in the set, but CGI makes one variable of it and of a name in the set.
    /// CGI turns all but letters and digits into an underscore (lighttpd, `php -S`, older Apache).
    package func containsTwin(_ bytes: Span<UInt8>, of name: Range<Int>) -> Bool {
        guard lengths & Self.bit(name.count) != 0 else { return false }
        var isTwin = false
        for candidate in names {
            guard Self.isOneVariable(bytes, name, candidate) else { continue }
            if ByteScan.equal(bytes, name, candidate.span, 0..<candidate.count) { return false }
            isTwin = true
        }
        return isTwin
    }

    private static func isOneVariable(
        _ bytes: Span<UInt8>,
        _ name: Range<Int>,
        _ other: [UInt8]
    ) -> Bool {
        guard name.count == other.count else { return false }
        for step in 0..<other.count {
            let byte = ByteScan.folded(bytes[name.lowerBound + step])
            guard byte == other[step] || isSpecial(byte) && isSpecial(other[step]) else {
                return false
            }
        }
        return true
    }

    /// Whether a byte of a name is neither a letter nor a digit.
    private static func isSpecial(_ byte: UInt8) -> Bool {
        let isLetter = ByteScan.folded(byte) &- UInt8(ascii: "a") < 26
        return !isLetter && !ASCIIByte.isDigit(byte)
    }

    @inline(__always)
    private static func bit(_ count: Int) -> UInt64 { 1 &<< UInt64(min(count, 63)) }
}
