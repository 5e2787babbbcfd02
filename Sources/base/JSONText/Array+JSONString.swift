extension Array<UInt8> {
    /// Appends a text as a JSON string, between quotation marks.
    ///
    /// RFC 8259 §7 asks for escapes of quotation mark, reverse solidus and control characters. Also
    /// escaped is what a terminal could take for a command or for another direction of writing:
    /// strangers make the texts, and people read them.
    package mutating func appendJSONString(_ text: String) {
        var text = text
        append(UInt8(ascii: "\""))
        text.withUTF8 { appendJSONCharacters($0) }
        append(UInt8(ascii: "\""))
    }

    /// Appends bytes that need not be UTF-8 as a JSON string: each byte beyond ASCII is written as
    /// the character of that number, so the string is valid and no byte is lost.
    package mutating func appendJSONString(latin1 bytes: Span<UInt8>) {
        append(UInt8(ascii: "\""))
        for index in bytes.indices {
            let byte = bytes[index]
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                append(UInt8(ascii: "\\"))
                append(byte)
            case 0x20..<0x7F: append(byte)
            default: appendJSONEscape(UInt16(byte))
            }
        }
        append(UInt8(ascii: "\""))
    }

    private mutating func appendJSONCharacters(_ text: UnsafeBufferPointer<UInt8>) {
        var index = 0
        while index < text.count {
            let byte = text[index]
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                append(UInt8(ascii: "\\"))
                append(byte)
                index += 1
            case 0x20..<0x7F, 0x80..<0xC2, 0xC3..<0xE2, 0xE3...0xFF:
                append(byte)
                index += 1
            case 0..<0x20, 0x7F:
                appendJSONEscape(UInt16(byte))
                index += 1
            default:
                // The first byte of U+0080…U+00BF, or of U+2000…U+2FFF. A `String` is valid UTF-8,
                // so one or two more bytes follow.
                let length = byte == 0xC2 ? 2 : 3
                var code = UInt16(byte & (length == 2 ? 0x1F : 0x0F))
                for next in text[(index + 1)..<(index + length)] {
                    code = code << 6 | UInt16(next & 0x3F)
                }
                switch code {
                case 0x80..<0xA0, 0x2028...0x202E, 0x2066...0x2069: appendJSONEscape(code)
                default: append(contentsOf: text[index..<(index + length)])
                }
                index += length
            }
        }
    }

    private mutating func appendJSONEscape(_ code: UInt16) {
        append(UInt8(ascii: "\\"))
        append(UInt8(ascii: "u"))
        for shift in stride(from: 12, through: 0, by: -4) {
            let digit = UInt8(truncatingIfNeeded: code >> shift & 15)
            append(digit < 10 ? 0x30 + digit : 0x57 + digit)
        }
    }
}
