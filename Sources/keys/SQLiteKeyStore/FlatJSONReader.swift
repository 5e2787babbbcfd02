/// Reads one JSON object (RFC 8259) whose members are strings, whole numbers, booleans and nulls.
///
/// A million lines go through it, and Foundation's reader takes ten times as long.
struct FlatJSONReader {
    typealias Problem = KeyLine.Problem

    enum Value {
        /// The octets of the string, with escapes resolved.
        case string([UInt8])
        case number(Int64)
        case boolean(Bool)
        case null
    }

    private var index = 0

    /// Gives the members in turn; the text must hold nothing else.
    mutating func members(
        of text: Span<UInt8>,
        _ body: ([UInt8], Value) throws(Problem) -> Void
    ) throws(Problem) {
        try expect("{", text)
        if !takes("}", text) {
            repeat {
                skipSpace(text)
                let name = try string(text)
                try expect(":", text)
                try body(name, try value(text))
            } while takes(",", text)
            try expect("}", text)
        }
        skipSpace(text)
        guard index == text.count else { throw problem("more than one object") }
    }

    private func problem(_ what: String) -> Problem { Problem("column \(index + 1): \(what)") }

    private mutating func skipSpace(_ text: Span<UInt8>) {
        while index < text.count {
            switch text[index] {
            case 0x20, 0x09, 0x0D: index += 1
            default: return
            }
        }
    }

    /// Steps over the octet, and white space before it, if it comes next.
    private mutating func takes(_ octet: Unicode.Scalar, _ text: Span<UInt8>) -> Bool {
        skipSpace(text)
        guard index < text.count, text[index] == UInt8(ascii: octet) else { return false }
        index += 1
        return true
    }

    private mutating func expect(_ octet: Unicode.Scalar, _ text: Span<UInt8>) throws(Problem) {
        guard takes(octet, text) else { throw problem("“\(octet)” is missing") }
    }

    private mutating func value(_ text: Span<UInt8>) throws(Problem) -> Value {
        skipSpace(text)
        guard index < text.count else { throw problem("a value is missing") }
        switch text[index] {
        case UInt8(ascii: "\""): return .string(try string(text))
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            return .number(try number(text))
        default:
            if takesWord("null", text) { return .null }
            if takesWord("true", text) { return .boolean(true) }
            if takesWord("false", text) { return .boolean(false) }
            throw problem("use a string, a whole number, true, false or null")
        }
    }

    private mutating func takesWord(_ word: String, _ text: Span<UInt8>) -> Bool {
        let end = index + word.utf8.count
        guard end <= text.count else { return false }
        for (place, octet) in word.utf8.enumerated() where text[index + place] != octet {
            return false
        }
        index = end
        return true
    }

    private mutating func number(_ text: Span<UInt8>) throws(Problem) -> Int64 {
        let start = index
        var value: Int64 = 0
        let isNegative = takes("-", text)
        let first = index
        while index < text.count, (0x30...0x39).contains(text[index]) {
            let (tens, tooLong) = value.multipliedReportingOverflow(by: 10)
            let (sum, tooLarge) = tens.addingReportingOverflow(Int64(text[index] - 0x30))
            guard !tooLong, !tooLarge else { throw problem("the number is too large") }
            value = sum
            index += 1
        }
        let hasFraction =
            index < text.count
            && (text[index] == UInt8(ascii: ".") || text[index] | 0x20 == UInt8(ascii: "e"))
        let hasLeadingZero = index - first > 1 && text[first] == 0x30
        guard index > first, !hasFraction, !hasLeadingZero else {
            index = start
            throw problem("use a whole number")
        }
        return isNegative ? -value : value
    }

    private mutating func string(_ text: Span<UInt8>) throws(Problem) -> [UInt8] {
        guard index < text.count, text[index] == UInt8(ascii: "\"") else {
            throw problem("a string is missing")
        }
        index += 1
        var octets: [UInt8] = []
        octets.reserveCapacity(96)
        while index < text.count {
            let octet = text[index]
            index += 1
            switch octet {
            case UInt8(ascii: "\""): return octets
            case UInt8(ascii: "\\"): try escape(text, into: &octets)
            case 0..<0x20: throw problem("a control character in a string")
            default: octets.append(octet)
            }
        }
        throw problem("the string does not end")
    }

    private mutating func escape(
        _ text: Span<UInt8>,
        into octets: inout [UInt8]
    ) throws(Problem) {
        guard index < text.count else { throw problem("the string does not end") }
        let octet = text[index]
        index += 1
        switch octet {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): octets.append(octet)
        case UInt8(ascii: "b"): octets.append(0x08)
        case UInt8(ascii: "f"): octets.append(0x0C)
        case UInt8(ascii: "n"): octets.append(0x0A)
        case UInt8(ascii: "r"): octets.append(0x0D)
        case UInt8(ascii: "t"): octets.append(0x09)
        case UInt8(ascii: "u"):
            // No value of ours needs more than ASCII; a surrogate would be half a character.
            guard let code = code(text), let scalar = Unicode.Scalar(code) else {
                throw problem("an escape that is no character by itself")
            }
            octets.append(contentsOf: Array(String(Character(scalar)).utf8))
        default: throw problem("an escape that JSON does not have")
        }
    }

    private mutating func code(_ text: Span<UInt8>) -> UInt32? {
        guard index + 4 <= text.count else { return nil }
        var code: UInt32 = 0
        for place in index..<(index + 4) {
            switch text[place] {
            case 0x30...0x39: code = code << 4 | UInt32(text[place] - 0x30)
            case 0x41...0x46: code = code << 4 | UInt32(text[place] - 0x41 + 10)
            case 0x61...0x66: code = code << 4 | UInt32(text[place] - 0x61 + 10)
            default: return nil
            }
        }
        index += 4
        return code
    }
}
