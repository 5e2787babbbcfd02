/// The last element of a list of Forwarded (RFC 7239 §4), found from its end.
///
///     forwarded-element = [ forwarded-pair ] *( ";" [ forwarded-pair ] )
///     forwarded-pair    = token "=" ( token / quoted-string )
///
/// Another party wrote the text before the element, which may have a quote that never ends. So a
/// quoted string is read from its last quote to its first, and the comma before the element is the
/// next one outside of quotes.
struct ForwardedElement {
    /// The first byte after the comma, or of the list.
    private(set) var start: Int
    /// The value of the `for` parameter, without quotes.
    private(set) var node: Range<Int>

    /// `nil` when the element is malformed, or has no `for` parameter, or more than one.
    ///
    /// - `list`: what comes before the element, and the element.
    init?(_ bytes: Span<UInt8>, endOf list: Range<Int>) {
        guard let start = Self.start(bytes, list) else { return nil }
        let end = list.upperBound
        self.start = start
        node = start..<start
        var found: Range<Int>?
        var index = start
        while true {
            while index < end, Self.isSeparator(bytes[index]) { index += 1 }
            guard index < end else { break }
            guard let pair = Self.pair(bytes, from: &index, to: end) else { return nil }
            guard ByteScan.equal(bytes, pair.name, "for") else { continue }
            guard found == nil else { return nil }
            found = pair.value
        }
        guard let found else { return nil }
        node = found
    }

    private static func isSeparator(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: ";") || ASCIIByte.isBlank(byte)
    }

    /// Where the last element begins; `nil` where a quoted string has no beginning.
    private static func start(_ bytes: Span<UInt8>, _ list: Range<Int>) -> Int? {
        var index = list.upperBound
        while index > list.lowerBound {
            index -= 1
            switch bytes[index] {
            case UInt8(ascii: ","): return index + 1
            case UInt8(ascii: "\""):
                guard !isEscaped(bytes, index, list) else { return nil }
                repeat {
                    guard index > list.lowerBound else { return nil }
                    index -= 1
                } while bytes[index] != UInt8(ascii: "\"") || isEscaped(bytes, index, list)
            default: break
            }
        }
        return list.lowerBound
    }

    /// Whether an odd number of backslashes precedes a byte.
    private static func isEscaped(_ bytes: Span<UInt8>, _ index: Int, _ list: Range<Int>) -> Bool {
        var first = index
        while first > list.lowerBound, bytes[first - 1] == UInt8(ascii: "\\") { first -= 1 }
        return (index - first) % 2 == 1
    }

    /// Reads a pair up to a separator or the end. An address needs no quotes, whatever bytes it
    /// has. A backslash in a quoted value stays as it is, so that it can't become part of an
    /// address.
    private static func pair(
        _ bytes: Span<UInt8>,
        from index: inout Int,
        to end: Int
    ) -> (name: Range<Int>, value: Range<Int>)? {
        let nameStart = index
        while index < end, ByteSet.token.contains(bytes[index]) { index += 1 }
        let name = nameStart..<index
        guard !name.isEmpty, index < end, bytes[index] == UInt8(ascii: "=") else { return nil }
        index += 1
        guard index < end, bytes[index] == UInt8(ascii: "\"") else {
            let start = index
            while index < end, !isSeparator(bytes[index]) {
                guard bytes[index] != UInt8(ascii: "\"") else { return nil }
                index += 1
            }
            return (name, start..<index)
        }
        index += 1
        let start = index
        while index < end, bytes[index] != UInt8(ascii: "\"") {
            index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
        }
        guard index < end else { return nil }
        let value = start..<index
        index += 1
        guard index == end || isSeparator(bytes[index]) else { return nil }
        return (name, value)
    }
}
