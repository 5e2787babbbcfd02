// JSON texts (RFC 8259) on arrays and spans of bytes, without Foundation: the one reader and the
// one writer of the gateway and its tools.
//
// Reading is strict and total: a text that RFC 8259 does not allow is an error with a column, never
// a trap. The texts come from strangers, so no number can overflow and nesting has a limit.
//
// - `JSONReader` is the cursor below everything that reads.
// - `JSONDocument` reads the few members of a small object that a caller names.
// - `JSONPointer` finds one string anywhere in a text.
// - `JSONWriter` writes a text from the first byte to the last, into memory.
// - `JSONValue` is a text as a tree, for callers that build it in pieces.

/// A cursor over a JSON text. Each call reads one item and moves the cursor past it.
///
/// The caller asks for what comes next, so an object is read like this:
///
///     try reader.beginObject(text)
///     while let name = try reader.nextName(text) { use(name, try reader.scalar(text)) }
///     try reader.end(text)
///
/// It allocates nothing but the strings it returns. Foundation's reader takes ten times as long.
package struct JSONReader: Sendable {
    /// The deepest nesting that is read. RFC 8259 §9 allows a limit; this one bounds recursion.
    package static let depthMax = 32

    /// A value that holds no other one.
    package enum Scalar: Hashable, Sendable {
        /// The bytes of the string in UTF-8, with escapes resolved. Other bytes are passed on as
        /// they are, so they may not be valid UTF-8.
        case string([UInt8])
        case number(Int64)
        case boolean(Bool)
        case null
    }

    /// The byte that is read next.
    package private(set) var index = 0
    /// No member or element of the innermost object or array has been read yet.
    private var isFirst = true

    package init() {}

    /// An error at the place of the cursor.
    package func error(_ what: String) -> JSONError { JSONError(column: index + 1, text: what) }

    // MARK: Objects and arrays

    package mutating func beginObject(_ text: Span<UInt8>) throws(JSONError) {
        try expect("{", text)
        isFirst = true
    }

    /// The name of the next member, with the cursor before its value; `nil` after the last one.
    package mutating func nextName(_ text: Span<UInt8>) throws(JSONError) -> [UInt8]? {
        guard try hasNext("}", text) else { return nil }
        skipSpace(text)
        let name = try string(text)
        try expect(":", text)
        return name
    }

    package mutating func beginArray(_ text: Span<UInt8>) throws(JSONError) {
        try expect("[", text)
        isFirst = true
    }

    /// Whether there is one more element, with the cursor before it.
    package mutating func nextElement(_ text: Span<UInt8>) throws(JSONError) -> Bool {
        try hasNext("]", text)
    }

    /// Reads the end of the text; white space may come before it.
    package mutating func end(_ text: Span<UInt8>) throws(JSONError) {
        skipSpace(text)
        guard index == text.count else { throw error("the text goes on behind its end") }
    }

    private mutating func hasNext(
        _ close: Unicode.Scalar,
        _ text: Span<UInt8>
    ) throws(JSONError) -> Bool {
        defer { isFirst = false }
        if takes(close, text) { return false }
        if !isFirst { try expect(",", text) }
        return true
    }

    // MARK: Values

    /// The first byte of the next value; at the end of the text 0, which begins no value.
    package mutating func peek(_ text: Span<UInt8>) -> UInt8 {
        skipSpace(text)
        return index < text.count ? text[index] : 0
    }

    /// Reads a string, a whole number, true, false or null.
    package mutating func scalar(_ text: Span<UInt8>) throws(JSONError) -> Scalar {
        switch peek(text) {
        case 0 where index == text.count: throw error("a value is missing")
        case UInt8(ascii: "\""): return .string(try string(text))
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            return .number(try wholeNumber(text))
        default:
            if takesWord("null", text) { return .null }
            if takesWord("true", text) { return .boolean(true) }
            if takesWord("false", text) { return .boolean(false) }
            throw error("use a string, a whole number, true, false or null")
        }
    }

    /// Skips a value of any kind that is inside `depth` objects and arrays.
    package mutating func skipValue(_ text: Span<UInt8>, depth: Int) throws(JSONError) {
        guard depth < Self.depthMax else {
            throw error("the text is nested deeper than \(Self.depthMax)")
        }
        switch peek(text) {
        case UInt8(ascii: "{"):
            try beginObject(text)
            while try nextName(text) != nil { try skipValue(text, depth: depth + 1) }
        case UInt8(ascii: "["):
            try beginArray(text)
            while try nextElement(text) { try skipValue(text, depth: depth + 1) }
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): try skipNumber(text)
        default: _ = try scalar(text)
        }
    }

    // MARK: Numbers

    private mutating func wholeNumber(_ text: Span<UInt8>) throws(JSONError) -> Int64 {
        let start = index
        try skipNumber(text)
        let isNegative = text[start] == UInt8(ascii: "-")
        let digits = (isNegative ? start + 1 : start)..<index
        // "-0" is a number, but not a whole one, since other readers keep its sign.
        let isNegativeZero = isNegative && text[digits.lowerBound] == UInt8(ascii: "0")
        var value: Int64 = 0
        for place in digits {
            let digit = text[place]
            guard isDigit(digit), !isNegativeZero else {
                index = start
                throw error("use a whole number")
            }
            let (tens, tooLong) = value.multipliedReportingOverflow(by: 10)
            let (sum, tooLarge) = tens.addingReportingOverflow(Int64(digit & 0x0F))
            guard !tooLong, !tooLarge else {
                index = start
                throw error("the number is too large")
            }
            value = sum
        }
        return isNegative ? -value : value
    }

    /// RFC 8259 §6: [ minus ] int [ frac ] [ exp ], without leading zeros.
    private mutating func skipNumber(_ text: Span<UInt8>) throws(JSONError) {
        _ = takesNow("-", text)
        if takesNow("0", text) {
            guard index == text.count || !isDigit(text[index]) else {
                throw error("a number begins with a zero")
            }
        } else {
            try skipDigits(text)
        }
        if takesNow(".", text) { try skipDigits(text) }
        if takesNow("e", text) || takesNow("E", text) {
            if !takesNow("+", text) { _ = takesNow("-", text) }
            try skipDigits(text)
        }
    }

    private mutating func skipDigits(_ text: Span<UInt8>) throws(JSONError) {
        let start = index
        while index < text.count, isDigit(text[index]) { index += 1 }
        guard index > start else { throw error("a digit is missing") }
    }

    private func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

    // MARK: Strings

    /// Reads a string and returns its bytes in UTF-8, escapes resolved.
    package mutating func string(_ text: Span<UInt8>) throws(JSONError) -> [UInt8] {
        guard takesNow("\"", text) else { throw error("a string is missing") }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(96)
        while index < text.count {
            let byte = text[index]
            switch byte {
            case UInt8(ascii: "\""):
                index += 1
                return bytes
            case UInt8(ascii: "\\"): try escape(text, into: &bytes)
            case 0..<0x20: throw error("a control character in a string; write it as an escape")
            default:
                bytes.append(byte)
                index += 1
            }
        }
        throw error("the string does not end")
    }

    private mutating func escape(_ text: Span<UInt8>, into bytes: inout [UInt8]) throws(JSONError) {
        guard index + 1 < text.count else { throw error("the string does not end") }
        let byte = text[index + 1]
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): bytes.append(byte)
        case UInt8(ascii: "b"): bytes.append(0x08)
        case UInt8(ascii: "f"): bytes.append(0x0C)
        case UInt8(ascii: "n"): bytes.append(0x0A)
        case UInt8(ascii: "r"): bytes.append(0x0D)
        case UInt8(ascii: "t"): bytes.append(0x09)
        case UInt8(ascii: "u"):
            guard let (scalar, length) = scalar(text, at: index) else {
                throw error("an escape that is no character by itself")
            }
            bytes.append(contentsOf: String(Character(scalar)).utf8)
            index += length
            return
        default: throw error("an escape that JSON does not have")
        }
        index += 2
    }

    /// The character of `\uXXXX`, or of two of them that are a surrogate pair (RFC 8259 §7), and
    /// the number of bytes that were read.
    private func scalar(_ text: Span<UInt8>, at place: Int) -> (Unicode.Scalar, Int)? {
        guard let high = code(text, at: place) else { return nil }
        guard (0xD800..<0xDC00).contains(high) else { return Unicode.Scalar(high).map { ($0, 6) } }
        guard let low = code(text, at: place + 6), (0xDC00..<0xE000).contains(low) else {
            return nil
        }
        return Unicode.Scalar(0x10000 + (high - 0xD800) << 10 + (low - 0xDC00)).map { ($0, 12) }
    }

    /// The four digits of a `\uXXXX` at this place.
    private func code(_ text: Span<UInt8>, at place: Int) -> UInt32? {
        guard place + 6 <= text.count, text[place] == UInt8(ascii: "\\"),
            text[place + 1] == UInt8(ascii: "u")
        else { return nil }
        var code: UInt32 = 0
        for digit in (place + 2)..<(place + 6) {
            switch text[digit] {
            case 0x30...0x39: code = code << 4 | UInt32(text[digit] - 0x30)
            case 0x41...0x46: code = code << 4 | UInt32(text[digit] - 0x41 + 10)
            case 0x61...0x66: code = code << 4 | UInt32(text[digit] - 0x61 + 10)
            default: return nil
            }
        }
        return code
    }

    // MARK: Bytes

    private mutating func skipSpace(_ text: Span<UInt8>) {
        while index < text.count {
            switch text[index] {
            case 0x20, 0x09, 0x0A, 0x0D: index += 1
            default: return
            }
        }
    }

    /// Skips the byte, and white space before it, if it comes next.
    private mutating func takes(_ byte: Unicode.Scalar, _ text: Span<UInt8>) -> Bool {
        skipSpace(text)
        return takesNow(byte, text)
    }

    /// Skips the byte if it is right here.
    private mutating func takesNow(_ byte: Unicode.Scalar, _ text: Span<UInt8>) -> Bool {
        guard index < text.count, text[index] == UInt8(ascii: byte) else { return false }
        index += 1
        return true
    }

    private mutating func expect(_ byte: Unicode.Scalar, _ text: Span<UInt8>) throws(JSONError) {
        guard takes(byte, text) else { throw error("“\(byte)” is missing") }
    }

    private mutating func takesWord(_ word: String, _ text: Span<UInt8>) -> Bool {
        var place = index
        for letter in word.utf8 {
            guard place < text.count, text[place] == letter else { return false }
            place += 1
        }
        index = place
        return true
    }
}

/// Why a text is no JSON, or not the JSON that the caller asked for.
package struct JSONError: Error, Hashable, Sendable {
    /// The byte of the text where reading stopped, counted from 1.
    package let column: Int
    /// What is wrong there, for people.
    package let text: String
}

extension JSONError: CustomStringConvertible {
    package var description: String { "column \(column): \(text)" }
}
