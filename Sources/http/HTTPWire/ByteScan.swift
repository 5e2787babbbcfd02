/// Searches in bytes, eight at a time.
package enum ByteScan {
    private static var ones: UInt64 { 0x0101_0101_0101_0101 }
    private static var tops: UInt64 { 0x8080_8080_8080_8080 }

    /// The index of the first control byte other than HTAB (0x00–0x1F, 0x7F) from `start` on, or
    /// `end`.
    ///
    /// Within a head only CR and LF may be found. So one pass finds both the end of a line and
    /// every byte that no line may hold.
    ///
    /// - `start`: in 0…end.
    /// - `end`: in start…bytes.count.
    package static func control(in bytes: Span<UInt8>, from start: Int, to end: Int) -> Int {
        let memory = unsafe bytes.bytes
        var index = start
        while end - index >= 8 {
            // Despite its name a bounds-checked load; every bit pattern is a UInt64.
            let load = unsafe memory.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self)
            let word = UInt64(littleEndian: load)
            // The lowest top bit that is set tells the first match exactly; borrows only reach
            // upwards.
            let below = (word &- ones &* 0x20) & ~word
            let delete = word ^ (ones &* 0x7F)
            let found = (below | ((delete &- ones) & ~delete)) & tops
            if found == 0 {
                index += 8
                continue
            }
            index += found.trailingZeroBitCount / 8
            if bytes[index] != ASCIIByte.tab { return index }
            index += 1
        }
        while index < end {
            let byte = bytes[index]
            if byte < 0x20 && byte != ASCIIByte.tab || byte == 0x7F { return index }
            index += 1
        }
        return end
    }

    /// How often a byte occurs.
    package static func count(of byte: UInt8, in bytes: Span<UInt8>) -> Int {
        let memory = unsafe bytes.bytes
        let pattern = ones &* UInt64(byte)
        var count = 0
        var index = 0
        while bytes.count - index >= 8 {
            // Bounds-checked despite its name; the order of the memory does not matter.
            let load = unsafe memory.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self)
            let word = load ^ pattern
            // The top bit of each byte that is not zero. No carry reaches another byte.
            let others = ((word & ~tops) &+ ~tops) | word
            count += (~others & tops).nonzeroBitCount
            index += 8
        }
        while index < bytes.count {
            if bytes[index] == byte { count += 1 }
            index += 1
        }
        return count
    }

    /// Whether there is an upper-case letter of US-ASCII, and whether there is a dot.
    static func letters(in bytes: Span<UInt8>) -> (hasUpperCase: Bool, hasDot: Bool) {
        let memory = unsafe bytes.bytes
        var upper: UInt64 = 0
        var dots: UInt64 = 0
        var index = 0
        while bytes.count - index >= 8 {
            // Bounds-checked despite its name; the order of the memory does not matter.
            let word = unsafe memory.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self)
            // No carry: each byte has seven bits here, and the sums are at most 0xBE.
            let low = word & ~tops
            upper |= ((low &+ ones &* 0x3F) ^ (low &+ ones &* 0x25)) & ~word & tops
            let other = word ^ (ones &* 0x2E)
            dots |= ~(((other & ~tops) &+ ~tops) | other) & tops
            index += 8
        }
        var hasUpperCase = upper != 0
        var hasDot = dots != 0
        while index < bytes.count {
            let byte = bytes[index]
            if byte &- 0x41 < 26 { hasUpperCase = true }
            if byte == UInt8(ascii: ".") { hasDot = true }
            index += 1
        }
        return (hasUpperCase, hasDot)
    }

    /// A byte where all punctuation of US-ASCII is `_`.
    @inline(__always)
    package static func withoutPunctuation(_ byte: UInt8) -> UInt8 {
        switch byte {
        case 0x21...0x2F, 0x3A...0x40, 0x5B...0x60, 0x7B...0x7E: UInt8(ascii: "_")
        default: byte
        }
    }

    /// Whether there is punctuation of US-ASCII other than `_`.
    package static func hasPunctuation(_ bytes: Span<UInt8>) -> Bool {
        for index in 0..<bytes.count where withoutPunctuation(bytes[index]) != bytes[index] {
            return true
        }
        return false
    }

    /// Whether two runs of bytes are equal, letters compared without case.
    static func equal(
        _ one: Span<UInt8>,
        _ oneRange: Range<Int>,
        to other: Span<UInt8>,
        at otherRange: Range<Int>
    ) -> Bool {
        guard oneRange.count == otherRange.count else { return false }
        for step in 0..<oneRange.count
        where folded(one[oneRange.lowerBound + step])
            != folded(other[otherRange.lowerBound + step])
        {
            return false
        }
        return true
    }

    /// Whether the bytes are those of an ASCII text in lower case, letters compared without case.
    static func equal(_ bytes: Span<UInt8>, _ range: Range<Int>, to text: StaticString) -> Bool {
        guard range.count == text.utf8CodeUnitCount else { return false }
        // The pointer lives for the call only and is read below its count.
        return text.withUTF8Buffer { text in
            for step in 0..<text.count
            where unsafe folded(bytes[range.lowerBound + step]) != text[step] {
                return false
            }
            return true
        }
    }

    /// Whether the bytes are those of an ASCII text.
    static func isSame(_ bytes: Span<UInt8>, _ range: Range<Int>, as text: StaticString) -> Bool {
        // The pointer lives for the call only; the counts are equal.
        text.withUTF8Buffer { text in
            guard text.count == range.count else { return false }
            for step in 0..<text.count where unsafe bytes[range.lowerBound + step] != text[step] {
                return false
            }
            return true
        }
    }

    @inline(__always)
    static func folded(_ byte: UInt8) -> UInt8 { byte &- 0x41 < 26 ? byte | 0x20 : byte }

    /// The range without the white space (SP, HTAB) at its ends.
    @inline(__always)
    static func trimmed(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Range<Int> {
        var start = range.lowerBound
        var end = range.upperBound
        while start < end, ASCIIByte.isBlank(bytes[start]) { start += 1 }
        while end > start, ASCIIByte.isBlank(bytes[end - 1]) { end -= 1 }
        return start..<end
    }
}

extension ByteScan {
    /// Why the control byte at `index`, or the end of the bytes, does not end a line.
    @inline(never)
    static func lineFault(_ bytes: Span<UInt8>, at index: Int) -> Malformed {
        guard index < bytes.count else { return Malformed(.bodyTruncated, at: index) }
        switch bytes[index] {
        case ASCIIByte.carriageReturn: return Malformed(.bareCarriageReturn, at: index)
        case ASCIIByte.lineFeed: return Malformed(.bareLineFeed, at: index)
        default: return Malformed(.controlByte, at: index)
        }
    }
}

/// A set of ASCII bytes as a bit map; bytes above 0x7F are in none.
struct ByteSet: Sendable {
    /// Bit n stands for the byte n.
    let low: UInt64
    /// Bit n stands for the byte 64 + n.
    let high: UInt64

    @inline(__always)
    func contains(_ byte: UInt8) -> Bool {
        guard byte < 0x80 else { return false }
        let word = byte & 0x40 == 0 ? low : high
        return word &>> UInt64(byte & 0x3F) & 1 != 0
    }

    /// tchar (RFC 9110 §5.6.2): methods, field names, Connection options.
    static var token: ByteSet { ByteSet(low: 0x03FF_6CFA_0000_0000, high: 0x57FF_FFFF_C7FF_FFFE) }

    /// What a request target may hold: every visible byte but `#`. More than RFC 3986 has, since
    /// clients send `|`, `{`, `"` in queries, and they are forwarded as received.
    static var target: ByteSet { ByteSet(low: 0xFFFF_FFF6_0000_0000, high: 0x7FFF_FFFF_FFFF_FFFF) }

    /// The bytes that stand for themselves in a path: all of these but `/`, `%`, `\` and `;`, and
    /// the space.
    static var plainInPath: ByteSet {
        ByteSet(low: 0xF7FF_7FDF_0000_0000, high: 0x7FFF_FFFF_EFFF_FFFF)
    }

    /// unreserved (RFC 3986 §2.3): a host name. Its grammar also has sub-delims and
    /// percent-encoding, which no host in DNS has and in which two parsers can differ.
    static var hostName: ByteSet {
        ByteSet(low: 0x03FF_6000_0000_0000, high: 0x47FF_FFFE_87FF_FFFE)
    }

    /// qdtext in ASCII (RFC 9110 §5.6.4), for quoted strings.
    static var quotedText: ByteSet {
        ByteSet(low: 0xFFFF_FFFB_0000_0200, high: 0x7FFF_FFFF_EFFF_FFFF)
    }
}

/// The bytes that have a name in the grammar.
enum ASCIIByte {
    static var tab: UInt8 { 0x09 }
    static var lineFeed: UInt8 { 0x0A }
    static var carriageReturn: UInt8 { 0x0D }
    static var space: UInt8 { 0x20 }

    /// OWS (RFC 9110 §5.6.3).
    @inline(__always)
    static func isBlank(_ byte: UInt8) -> Bool { byte == space || byte == tab }

    @inline(__always)
    static func isDigit(_ byte: UInt8) -> Bool { byte &- 0x30 < 10 }

    /// The most decimal digits of 64 bits.
    static var decimalDigitsMax: Int { 20 }

    /// The value of a hexadecimal digit in either case.
    @inline(__always)
    static func hexadecimal(_ byte: UInt8) -> UInt8? {
        let digit = byte &- 0x30
        if digit < 10 { return digit }
        let letter = byte | 0x20
        guard letter >= 0x61, letter <= 0x66 else { return nil }
        return letter &- 0x57
    }
}

extension Array where Element == UInt8 {
    /// Appends bytes of a span.
    @inline(__always)
    mutating func append(_ source: Span<UInt8>, _ range: Range<Int>) {
        // The pointer lives for the call only, and the copy is made inside it.
        unsafe source.extracting(range).withUnsafeBufferPointer { unsafe append(contentsOf: $0) }
    }

    /// Appends an ASCII text.
    @inline(__always)
    package mutating func append(_ text: StaticString) {
        // The pointer lives for the call only, and the copy is made inside it.
        text.withUTF8Buffer { unsafe append(contentsOf: $0) }
    }

    /// Appends the line of a field: `name: value` and the line's end.
    ///
    /// It is one append: each costs some 100 instructions, however short its text is.
    ///
    /// - value: lives for the call only, and the copy is made inside it.
    mutating func append(line name: StaticString, _ value: UnsafeBufferPointer<UInt8>) {
        append(addingCapacity: name.utf8CodeUnitCount + value.count + 4) { line in
            line.append(name)
            line.append(UInt8(ascii: ":"))
            line.append(ASCIIByte.space)
            unsafe line.append(value)
            line.appendLineEnd()
        }
    }

    /// Appends a number in decimal digits.
    mutating func append(decimal number: UInt64) {
        append(addingCapacity: ASCIIByte.decimalDigitsMax) { $0.append(decimal: number) }
    }

    /// Appends a number in lower-case hexadecimal digits without leading zeros.
    mutating func append(hexadecimal number: UInt64) {
        var shift = UInt64((63 - (number | 1).leadingZeroBitCount) / 4 * 4)
        while true {
            let digit = UInt8(truncatingIfNeeded: number &>> shift & 15)
            append(digit < 10 ? 0x30 + digit : 0x57 + digit)
            if shift == 0 { return }
            shift -= 4
        }
    }

    @inline(__always)
    mutating func appendLineEnd() {
        append(ASCIIByte.carriageReturn)
        append(ASCIIByte.lineFeed)
    }
}

extension OutputSpan where Element == UInt8 {
    /// Appends bytes.
    @inline(__always)
    mutating func append(_ source: UnsafeBufferPointer<UInt8>) {
        // The pointers live for the call only; the slice checks that there is room.
        unsafe withUnsafeMutableBufferPointer { room, count in
            _ = unsafe room[count..<count + source.count].initialize(fromContentsOf: source)
            count += source.count
        }
    }

    /// Appends an ASCII text.
    @inline(__always)
    mutating func append(_ text: StaticString) {
        // The pointer lives for the call only, and the copy is made inside it.
        text.withUTF8Buffer { unsafe append($0) }
    }

    /// Appends a number in decimal digits.
    mutating func append(decimal number: UInt64) {
        var divisor: UInt64 = 1
        while number / divisor >= 10 { divisor *= 10 }
        while divisor > 0 {
            append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number / divisor % 10))
            divisor /= 10
        }
    }

    @inline(__always)
    mutating func appendLineEnd() {
        append(ASCIIByte.carriageReturn)
        append(ASCIIByte.lineFeed)
    }
}
