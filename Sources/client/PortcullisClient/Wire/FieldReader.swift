/// Reads parameters as fields have them: `name=token` or `name="text"`.
struct FieldReader {
    private let text: [UInt8]
    private var place = 0

    init(_ text: String) { self.text = Array(text.utf8) }

    var isAtEnd: Bool { place >= text.count }

    mutating func skipSpace() {
        while let byte = peek, byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") {
            place += 1
        }
    }

    /// Whether this byte is next; it is passed over then.
    mutating func take(_ byte: Character) -> Bool {
        guard let next = peek, next == byte.asciiValue else { return false }
        place += 1
        return true
    }

    /// A token (RFC 9110 §5.6.2); `nil` when none is next.
    mutating func token() -> String? {
        let start = place
        while let byte = peek, Self.isTokenByte(byte) { place += 1 }
        return place == start ? nil : String(decoding: text[start..<place], as: UTF8.self)
    }

    /// A quoted string (RFC 9110 §5.6.4), its quotes and escapes taken off; `nil` when none is next
    /// or it does not end.
    mutating func quoted() -> String? {
        guard take("\"") else { return nil }
        var bytes: [UInt8] = []
        while let byte = peek {
            place += 1
            switch byte {
            case UInt8(ascii: "\""): return String(decoding: bytes, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard let escaped = peek else { return nil }
                place += 1
                bytes.append(escaped)
            default: bytes.append(byte)
            }
        }
        return nil
    }

    /// `name=value`; passes over nothing when there is none.
    mutating func parameter() -> (name: String, value: String)? {
        let start = place
        if let name = token() {
            skipSpace()
            if take("=") {
                skipSpace()
                if let value = peek == UInt8(ascii: "\"") ? quoted() : token() {
                    return (name.lowercased(), value)
                }
            }
        }
        place = start
        return nil
    }

    /// Passes over everything before the next such byte that is not in a quoted string.
    mutating func skip(to byte: Character) {
        while let next = peek, next != byte.asciiValue {
            if next == UInt8(ascii: "\""), quoted() != nil { continue }
            place += 1
        }
    }

    private var peek: UInt8? { place < text.count ? text[place] : nil }

    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}

/// A field that is one token with parameters (an item of RFC 8941 §3.3):
/// `sign-again;sign="method target";counter=64`.
///
/// A parameter that can't be read is passed over: newer gateways may write more of them.
struct FieldItem: Hashable, Sendable {
    let word: String
    let parameters: [String: String]

    /// The longest field that is read. A field of the gateway is far shorter.
    private static let bytesMax = 8 << 10

    init?(_ text: String) {
        guard text.utf8.count <= Self.bytesMax else { return nil }
        var reader = FieldReader(text)
        reader.skipSpace()
        guard let word = reader.token() else { return nil }
        self.word = word
        var parameters: [String: String] = [:]
        while true {
            reader.skipSpace()
            guard reader.take(";") else { break }
            reader.skipSpace()
            if let (name, value) = reader.parameter() {
                parameters[name] = value
            } else {
                reader.skip(to: ";")
            }
        }
        self.parameters = parameters
    }

    subscript(name: String) -> String? { parameters[name] }
}
