/// A cursor over a JSON text. Every method leaves the cursor behind what it read, or returns `nil`
/// (or false) at the first octet that RFC 8259 does not allow.
struct JSONReader {
    private(set) var index = 0

    /// Reads one value and returns the string at the place, which must lie in it.
    mutating func find(_ place: ArraySlice<String>, in text: Span<UInt8>, depth: Int) -> [UInt8]? {
        guard let token = place.first else { return string(in: text) }
        guard depth < JSONPointer.depthMax, index < text.count else { return nil }
        var found: [UInt8]?
        let rest = place.dropFirst()
        let name = Array(token.utf8)
        switch text[index] {
        case UInt8(ascii: "{"):
            let isRead = members(in: text) { reader, member in
                guard member == name else { return reader.skipValue(text, depth: depth + 1) }
                guard found == nil, let value = reader.find(rest, in: text, depth: depth + 1) else {
                    return false
                }
                found = value
                return true
            }
            return isRead ? found : nil
        case UInt8(ascii: "["):
            var position = 0
            let isRead = elements(in: text) { reader in
                defer { position += 1 }
                guard Array(String(position).utf8) == name else {
                    return reader.skipValue(text, depth: depth + 1)
                }
                found = reader.find(rest, in: text, depth: depth + 1)
                return found != nil
            }
            return isRead ? found : nil
        default: return nil
        }
    }

    mutating func skipSpace(_ text: Span<UInt8>) {
        while index < text.count, [0x20, 0x09, 0x0A, 0x0D].contains(text[index]) { index += 1 }
    }

    private mutating func take(_ octet: Unicode.Scalar, _ text: Span<UInt8>) -> Bool {
        guard index < text.count, text[index] == UInt8(ascii: octet) else { return false }
        index += 1
        return true
    }

    mutating func members(
        in text: Span<UInt8>,
        _ body: (inout JSONReader, [UInt8]) -> Bool
    ) -> Bool {
        guard take("{", text) else { return false }
        skipSpace(text)
        if take("}", text) { return true }
        while true {
            skipSpace(text)
            guard let name = string(in: text) else { return false }
            skipSpace(text)
            guard take(":", text) else { return false }
            skipSpace(text)
            guard body(&self, name) else { return false }
            skipSpace(text)
            if take("}", text) { return true }
            guard take(",", text) else { return false }
        }
    }

    private mutating func elements(
        in text: Span<UInt8>,
        _ body: (inout JSONReader) -> Bool
    ) -> Bool {
        guard take("[", text) else { return false }
        skipSpace(text)
        if take("]", text) { return true }
        while true {
            skipSpace(text)
            guard body(&self) else { return false }
            skipSpace(text)
            if take("]", text) { return true }
            guard take(",", text) else { return false }
        }
    }

    mutating func skipValue(_ text: Span<UInt8>, depth: Int) -> Bool {
        guard depth < JSONPointer.depthMax, index < text.count else { return false }
        switch text[index] {
        case UInt8(ascii: "{"):
            return members(in: text) { reader, _ in reader.skipValue(text, depth: depth + 1) }
        case UInt8(ascii: "["):
            return elements(in: text) { reader in reader.skipValue(text, depth: depth + 1) }
        case UInt8(ascii: "\""): return string(in: text) != nil
        case UInt8(ascii: "t"): return skip("true", text)
        case UInt8(ascii: "f"): return skip("false", text)
        case UInt8(ascii: "n"): return skip("null", text)
        default: return skipNumber(text)
        }
    }

    private mutating func skip(_ word: String, _ text: Span<UInt8>) -> Bool {
        for octet in word.utf8 {
            guard index < text.count, text[index] == octet else { return false }
            index += 1
        }
        return true
    }

    /// Reads a whole number of at most 15 digits, without fraction and exponent.
    mutating func integer(in text: Span<UInt8>) -> Int? {
        let start = index
        guard skipNumber(text), index - start <= 15 else { return nil }
        var value = 0
        for position in start..<index {
            guard (0x30...0x39).contains(text[position]) else { return nil }
            value = value * 10 + Int(text[position] & 0x0F)
        }
        return value
    }

    /// RFC 8259 §6: [ minus ] int [ frac ] [ exp ], without leading zeros.
    private mutating func skipNumber(_ text: Span<UInt8>) -> Bool {
        _ = take("-", text)
        if !take("0", text), !skipDigits(text) { return false }
        if take(".", text), !skipDigits(text) { return false }
        if take("e", text) || take("E", text) {
            if !take("+", text) { _ = take("-", text) }
            return skipDigits(text)
        }
        return true
    }

    private mutating func skipDigits(_ text: Span<UInt8>) -> Bool {
        let start = index
        while index < text.count, (0x30...0x39).contains(text[index]) { index += 1 }
        return index > start
    }

    /// Whether a string begins here.
    func isAtString(in text: Span<UInt8>) -> Bool {
        index < text.count && text[index] == UInt8(ascii: "\"")
    }

    /// Reads a string and returns its octets in UTF-8, escapes resolved.
    mutating func string(in text: Span<UInt8>) -> [UInt8]? {
        guard take("\"", text) else { return nil }
        var out: [UInt8] = []
        while index < text.count {
            let octet = text[index]
            index += 1
            switch octet {
            case UInt8(ascii: "\""): return out
            case UInt8(ascii: "\\"):
                guard escape(in: text, into: &out) else { return nil }
            case 0..<0x20: return nil
            default: out.append(octet)
            }
        }
        return nil
    }

    private mutating func escape(in text: Span<UInt8>, into out: inout [UInt8]) -> Bool {
        guard index < text.count else { return false }
        let octet = text[index]
        index += 1
        switch octet {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): out.append(octet)
        case UInt8(ascii: "b"): out.append(0x08)
        case UInt8(ascii: "f"): out.append(0x0C)
        case UInt8(ascii: "n"): out.append(0x0A)
        case UInt8(ascii: "r"): out.append(0x0D)
        case UInt8(ascii: "t"): out.append(0x09)
        case UInt8(ascii: "u"):
            guard let scalar = scalar(in: text) else { return false }
            out.append(contentsOf: String(Character(scalar)).utf8)
        default: return false
        }
        return true
    }

    /// The four digits behind `\u`, with the second half of a surrogate pair where one is needed.
    private mutating func scalar(in text: Span<UInt8>) -> Unicode.Scalar? {
        guard let high = fourDigits(in: text) else { return nil }
        guard (0xD800..<0xDC00).contains(high) else { return Unicode.Scalar(high) }
        guard take("\\", text), take("u", text), let low = fourDigits(in: text),
            (0xDC00..<0xE000).contains(low)
        else { return nil }
        return Unicode.Scalar(0x10000 + (high - 0xD800) << 10 + (low - 0xDC00))
    }

    private mutating func fourDigits(in text: Span<UInt8>) -> UInt32? {
        var value: UInt32 = 0
        for _ in 0..<4 {
            guard index < text.count, let digit = hexValue(text[index]) else { return nil }
            value = value << 4 | digit
            index += 1
        }
        return value
    }

    private func hexValue(_ octet: UInt8) -> UInt32? {
        switch octet {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(octet - UInt8(ascii: "0"))
        case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt32(octet - UInt8(ascii: "a")) + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): UInt32(octet - UInt8(ascii: "A")) + 10
        default: nil
        }
    }
}
