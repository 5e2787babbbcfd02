/// Searches in bytes, eight at a time.
package enum OctetScan {
    private static var ones: UInt64 { 0x0101_0101_0101_0101 }
    private static var tops: UInt64 { 0x8080_8080_8080_8080 }

    /// The index of the first control byte other than HTAB (0x00–0x1F, 0x7F) from `start` on, or
    /// `end`.
    ///
    /// Within a head only CR and LF may be found; one pass therefore finds the end of a line and
    /// all that no line may hold.
    ///
    /// - `start`: in 0…end.
    /// - `end`: in start…bytes.count.
    package static func control(in octets: Span<UInt8>, from start: Int, to end: Int) -> Int {
        let bytes = octets.bytes
        var index = start
        while end - index >= 8 {
            // Despite its name a bounds-checked load; every bit pattern is a UInt64.
            let load = bytes.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self)
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
            if octets[index] != Octet.tab { return index }
            index += 1
        }
        while index < end {
            let octet = octets[index]
            if octet < 0x20 && octet != Octet.tab || octet == 0x7F { return index }
            index += 1
        }
        return end
    }

    /// Whether there is an upper-case letter of US-ASCII, and whether there is a dot.
    static func letters(in octets: Span<UInt8>) -> (hasUpperCase: Bool, hasDot: Bool) {
        let bytes = octets.bytes
        var upper: UInt64 = 0
        var dots: UInt64 = 0
        var index = 0
        while octets.count - index >= 8 {
            // Bounds-checked despite its name; the order of the bytes does not matter.
            let word = bytes.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self)
            // No carry: each byte has seven bits here, and the sums are at most 0xBE.
            let low = word & ~tops
            upper |= ((low &+ ones &* 0x3F) ^ (low &+ ones &* 0x25)) & ~word & tops
            let other = word ^ (ones &* 0x2E)
            dots |= ~(((other & ~tops) &+ ~tops) | other) & tops
            index += 8
        }
        var hasUpperCase = upper != 0
        var hasDot = dots != 0
        while index < octets.count {
            let octet = octets[index]
            if octet &- 0x41 < 26 { hasUpperCase = true }
            if octet == UInt8(ascii: ".") { hasDot = true }
            index += 1
        }
        return (hasUpperCase, hasDot)
    }

    /// A byte where all punctuation of US-ASCII is `_`.
    @inline(__always)
    package static func withoutPunctuation(_ octet: UInt8) -> UInt8 {
        switch octet {
        case 0x21...0x2F, 0x3A...0x40, 0x5B...0x60, 0x7B...0x7E: UInt8(ascii: "_")
        default: octet
        }
    }

    /// Whether there is punctuation of US-ASCII other than `_`.
    package static func hasPunctuation(_ octets: Span<UInt8>) -> Bool {
        for index in 0..<octets.count where withoutPunctuation(octets[index]) != octets[index] {
            return true
        }
        return false
    }

    /// Whether two runs of bytes are equal, letters compared without case.
    static func equal(
        _ one: Span<UInt8>,
        _ oneRange: Range<Int>,
        _ other: Span<UInt8>,
        _ otherRange: Range<Int>
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
    static func equal(_ octets: Span<UInt8>, _ range: Range<Int>, _ text: StaticString) -> Bool {
        guard range.count == text.utf8CodeUnitCount else { return false }
        // The pointer lives for the call only and is read below its count.
        return text.withUTF8Buffer { text in
            for step in 0..<text.count
            where folded(octets[range.lowerBound + step]) != text[step] {
                return false
            }
            return true
        }
    }

    @inline(__always)
    static func folded(_ octet: UInt8) -> UInt8 {
        octet &- 0x41 < 26 ? octet | 0x20 : octet
    }

    /// The range without white space (SP, HTAB) at its ends.
    @inline(__always)
    static func trimmed(_ octets: Span<UInt8>, _ range: Range<Int>) -> Range<Int> {
        var start = range.lowerBound
        var end = range.upperBound
        while start < end, Octet.isBlank(octets[start]) { start += 1 }
        while end > start, Octet.isBlank(octets[end - 1]) { end -= 1 }
        return start..<end
    }
}

extension OctetScan {
    /// Why the control byte at `index`, or the end of what is there, does not end a line.
    @inline(never)
    static func lineFault(_ octets: Span<UInt8>, at index: Int) -> Malformed {
        guard index < octets.count else { return Malformed(.bodyTruncated, at: index) }
        switch octets[index] {
        case Octet.carriageReturn: return Malformed(.bareCarriageReturn, at: index)
        case Octet.lineFeed: return Malformed(.bareLineFeed, at: index)
        default: return Malformed(.controlOctet, at: index)
        }
    }
}
