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
        return names.contains { ByteScan.equal(bytes, name, to: $0.span, at: 0..<$0.count) }
    }

    /// Whether a name is not in the set, but CGI makes one variable of it and of a name in the set.
    /// CGI turns all but letters and digits into an underscore (lighttpd, `php -S`, older Apache).
    package func containsTwin(_ bytes: Span<UInt8>, of name: Range<Int>) -> Bool {
        guard lengths & Self.bit(name.count) != 0 else { return false }
        var isTwin = false
        for candidate in names {
            guard Self.isOneVariable(bytes, name, as: candidate) else { continue }
            if ByteScan.equal(bytes, name, to: candidate.span, at: 0..<candidate.count) {
                return false
            }
            isTwin = true
        }
        return isTwin
    }

    private static func isOneVariable(
        _ bytes: Span<UInt8>,
        _ name: Range<Int>,
        as other: [UInt8]
    ) -> Bool {
        guard name.count == other.count else { return false }
        for step in 0..<other.count {
            let byte = ByteScan.folded(bytes[name.lowerBound + step])
            guard
                byte == other[step]
                    || FoldedName.isSpecial(byte) && FoldedName.isSpecial(other[step])
            else { return false }
        }
        return true
    }

    @inline(__always)
    private static func bit(_ count: Int) -> UInt64 { 1 &<< UInt64(min(count, 63)) }
}

/// A field name folded for comparison: its length and its first 24 bytes, each or-ed with 0x20.
///
/// Or-ing folds letters, and of the other token bytes only `^` onto `~` and `_` onto 0x7F. No
/// known name has one of these, so equal folded names of at most 24 bytes are equal names.
struct FoldedName: Equatable {
    private static var folding: UInt64 { 0x2020_2020_2020_2020 }

    var count: Int
    var first: UInt64 = 0
    var second: UInt64 = 0
    var third: UInt64 = 0

    /// `range`: a valid token within `bytes`.
    @inline(__always)
    init(_ bytes: Span<UInt8>, _ range: Range<Int>) {
        count = range.count
        first = Self.word(bytes, from: range.lowerBound, to: range.upperBound)
        if count > 8 { second = Self.word(bytes, from: range.lowerBound + 8, to: range.upperBound) }
        if count > 16 {
            third = Self.word(bytes, from: range.lowerBound + 16, to: range.upperBound)
        }
    }

    /// Reads the name of a line, eight bytes at a time, if the name has at most 24 letters and
    /// hyphens and a colon directly after it, as nearly all have. `nil` for any other line, which
    /// the exact and slower initialiser reads.
    @inline(__always)
    init?(lineFrom start: Int, in bytes: Span<UInt8>) {
        // Each word is read where its eight bytes are: the last line of a head may be short.
        let left = bytes.count - start
        guard left >= 8 else { return nil }
        let memory = unsafe bytes.bytes
        var words: (UInt64, UInt64, UInt64) = (0, 0, 0)
        // Despite its name a bounds-checked load; every bit pattern is a UInt64.
        var raw = unsafe UInt64(
            littleEndian: memory.unsafeLoadUnaligned(fromByteOffset: start, as: UInt64.self)
        )
        var length = Self.bytesBeforeColon(raw)
        guard let word = Self.foldedLetters(raw, length), length > 0 else { return nil }
        words.0 = word
        var total = length
        if length == 8 {
            guard left >= 16 else { return nil }
            raw = unsafe UInt64(
                littleEndian: memory.unsafeLoadUnaligned(fromByteOffset: start + 8, as: UInt64.self)
            )
            length = Self.bytesBeforeColon(raw)
            guard let word = Self.foldedLetters(raw, length) else { return nil }
            words.1 = word
            total += length
        }
        if total == 16 {
            // With the byte after the word, which has to be the colon of the longest name.
            guard left > 24 else { return nil }
            raw = unsafe UInt64(
                littleEndian: memory.unsafeLoadUnaligned(
                    fromByteOffset: start + 16,
                    as: UInt64.self
                )
            )
            length = Self.bytesBeforeColon(raw)
            guard let word = Self.foldedLetters(raw, length) else { return nil }
            words.2 = word
            total += length
            guard total < 24 || bytes[start + 24] == UInt8(ascii: ":") else { return nil }
        }
        count = total
        (first, second, third) = words
    }

    /// How many of eight bytes come before the first colon; 8 without a colon.
    @inline(__always)
    private static func bytesBeforeColon(_ word: UInt64) -> Int {
        let difference = word ^ 0x3A3A_3A3A_3A3A_3A3A
        let found = (difference &- 0x0101_0101_0101_0101) & ~difference & 0x8080_8080_8080_8080
        return found.trailingZeroBitCount / 8
    }

    /// The first `count` bytes folded, the others zero, if each is a letter or a hyphen.
    @inline(__always)
    private static func foldedLetters(_ word: UInt64, _ count: Int) -> UInt64? {
        let tops: UInt64 = 0x8080_8080_8080_8080
        // A shift by 64 gives zero, so all bytes stay.
        let mask = ~(UInt64.max << UInt64(count * 8))
        let folded = word | folding
        let low = folded & ~tops
        // With the top bit out of the way, no sum carries into the next byte.
        let letters = (low &+ 0x1F1F_1F1F_1F1F_1F1F) & ~(low &+ 0x0505_0505_0505_0505)
        // Unfolded, as CR would be folded onto the hyphen.
        let difference = word ^ 0x2D2D_2D2D_2D2D_2D2D
        let hyphens = ~((difference & ~tops &+ 0x7F7F_7F7F_7F7F_7F7F) | difference)
        let good = (letters | hyphens) & ~word & tops
        guard good & mask == tops & mask else { return nil }
        return folded & mask
    }

    /// The eight bytes from `start` on as a little-endian word, folded; zeros from `end` on.
    @inline(__always)
    private static func word(_ bytes: Span<UInt8>, from start: Int, to end: Int) -> UInt64 {
        let count = end - start
        guard bytes.count - start >= 8 else { return slowWord(bytes, from: start, to: end) }
        // Despite its name a bounds-checked load; every bit pattern is a UInt64.
        let load = unsafe bytes.bytes.unsafeLoadUnaligned(fromByteOffset: start, as: UInt64.self)
        let word = UInt64(littleEndian: load) | folding
        return count >= 8 ? word : word & (1 &<< UInt64(count * 8) &- 1)
    }

    @inline(never)
    private static func slowWord(_ bytes: Span<UInt8>, from start: Int, to end: Int) -> UInt64 {
        var word: UInt64 = 0
        for index in start..<min(end, start + 8) {
            word |= UInt64(bytes[index] | 0x20) &<< UInt64((index - start) * 8)
        }
        return word
    }

    /// Whether the first 24 bytes have an underscore, the only byte that is folded onto 0x7F.
    var hasUnderscore: Bool {
        Self.hasUnderscore(first) || Self.hasUnderscore(second) || Self.hasUnderscore(third)
    }

    @inline(__always)
    private static func hasUnderscore(_ word: UInt64) -> Bool {
        let difference = word ^ 0x7F7F_7F7F_7F7F_7F7F
        return (difference &- 0x0101_0101_0101_0101) & ~difference & 0x8080_8080_8080_8080 != 0
    }

    /// Whether a folded byte is neither a letter nor a digit: CGI has an underscore for it.
    static func isSpecial(_ byte: UInt8) -> Bool {
        let isLetter = byte >= UInt8(ascii: "a") && byte <= UInt8(ascii: "z")
        return !isLetter && !ASCIIByte.isDigit(byte)
    }

    /// The name with hyphens for all but letters and digits.
    var hyphenated: FoldedName {
        var name = self
        name.first = Self.hyphenated(first)
        name.second = Self.hyphenated(second)
        name.third = Self.hyphenated(third)
        return name
    }

    private static func hyphenated(_ word: UInt64) -> UInt64 {
        var result = word
        for shift in stride(from: UInt64(0), to: 64, by: 8) {
            let byte = UInt8(truncatingIfNeeded: word &>> shift)
            // A zero follows the name.
            guard byte != 0, isSpecial(byte) else { continue }
            result ^= UInt64(byte ^ UInt8(ascii: "-")) &<< shift
        }
        return result
    }
}
