/// Writes JSON texts (RFC 8259), piece by piece, into memory.
///
/// The caller gives the name and value of a member, and the writer adds the commas. The caller
/// makes sure that the pieces form an object: members belong into ``object(_:_:)``, elements into
/// ``array(_:_:)``.
package struct JSONWriter: Sendable {
    /// Where white space goes.
    package enum Layout: Hashable, Sendable {
        /// Nowhere: for programs.
        case compact
        /// After commas and colons, on one line.
        case spaced
        /// Each member and element on a line of its own, for people.
        case indented
    }

    /// The text so far.
    package private(set) var bytes: [UInt8] = []
    private let layout: Layout
    private var depth = 0
    /// This depth has no member or element yet.
    private var isFirst = true

    /// - capacity: bytes for which memory is taken at once.
    package init(_ layout: Layout = .compact, capacity: Int = 0) {
        self.layout = layout
        bytes.reserveCapacity(capacity)
    }

    /// The text, followed by a line feed.
    package var line: [UInt8] { bytes + [UInt8(ascii: "\n")] }

    /// The text, without a line feed.
    package var text: String { String(decoding: bytes, as: UTF8.self) }

    // MARK: Objects and arrays

    /// An object: the whole text, an element, or a member when it has a name.
    package mutating func object(_ name: String? = nil, _ fill: (inout JSONWriter) -> Void) {
        begin(name)
        beginObject()
        fill(&self)
        endObject()
    }

    /// An array: the whole text, an element, or a member when it has a name.
    package mutating func array(_ name: String? = nil, _ fill: (inout JSONWriter) -> Void) {
        begin(name)
        open("[")
        fill(&self)
        close("]")
    }

    /// A member: an array with an object for each element.
    package mutating func objects<Elements: Sequence>(
        _ name: String,
        of elements: Elements,
        _ fill: (inout JSONWriter, Elements.Element) -> Void
    ) {
        array(name) { out in
            for element in elements { out.object { fill(&$0, element) } }
        }
    }

    /// A member: an array of texts.
    package mutating func texts(_ name: String, _ texts: [String]) {
        array(name) { out in for text in texts { out.element(text) } }
    }

    /// Opens an object that ``endObject()`` closes, for callers that write it in several calls.
    package mutating func beginObject() { open("{") }

    package mutating func endObject() { close("}") }

    // MARK: Members

    /// A text; `nil` is null.
    package mutating func member(_ name: String, _ value: String?) {
        begin(name)
        if let value { bytes.appendJSONString(value) } else { append("null") }
    }

    package mutating func member(_ name: String, _ value: Bool) {
        begin(name)
        append(value ? "true" : "false")
    }

    /// A number. JSON has no infinity and no value for what is no number, so they become null (RFC
    /// 8259 §6).
    package mutating func member(_ name: String, _ value: Double) {
        begin(name)
        write(value)
    }

    package mutating func member(_ name: String, _ value: some BinaryInteger) {
        begin(name)
        append(String(value))
    }

    package mutating func member(_ name: String, _ value: JSONValue) {
        begin(name)
        write(value)
    }

    // MARK: Elements

    package mutating func element(_ value: String) { element(.string(value)) }

    package mutating func element(_ value: some BinaryInteger) {
        begin(nil)
        append(String(value))
    }

    /// A number, as ``member(_:_:)`` writes it.
    package mutating func element(_ value: Double) {
        begin(nil)
        write(value)
    }

    package mutating func element(_ value: JSONValue) {
        begin(nil)
        write(value)
    }

    // MARK: Lines

    /// Begins the next member, whose name needs no escapes. The next call writes its value.
    ///
    /// The access log uses it, since it does not search the name for characters to escape.
    package mutating func name(_ name: StaticString) {
        begin(nil)
        bytes.append(UInt8(ascii: "\""))
        // The pointer lives for the call only, and the copy is made inside it.
        name.withUTF8Buffer { unsafe bytes.append(contentsOf: $0) }
        bytes.append(UInt8(ascii: "\""))
        append(layout == .compact ? ":" : ": ")
    }

    /// The value of the member that ``name(_:)`` began: a text.
    package mutating func value(_ text: String) { bytes.appendJSONString(text) }

    /// The value of that member: bytes of a stranger, see `appendJSONString(latin1:)`.
    package mutating func value(latin1 text: Span<UInt8>) { bytes.appendJSONString(latin1: text) }

    /// The value of that member: a number.
    package mutating func value(_ number: Int64) { append(String(number)) }

    /// The value of that member: a truth value.
    package mutating func value(_ isTrue: Bool) { append(isTrue ? "true" : "false") }

    /// Ends a text with a line feed, so that another one can follow.
    package mutating func endLine() { bytes.append(UInt8(ascii: "\n")) }

    /// Removes all bytes after this number of bytes.
    package mutating func truncate(to count: Int) { bytes.removeLast(bytes.count - count) }

    /// Returns the text and starts over.
    package mutating func take() -> [UInt8] {
        defer { bytes = [] }
        return bytes
    }

    // MARK: Pieces

    private mutating func write(_ value: Double) {
        append(value.isFinite ? value.description : "null")
    }

    private mutating func write(_ value: JSONValue) {
        switch value {
        case .null: append("null")
        case .bool(let value): append(value ? "true" : "false")
        case .number(let value): append(String(value))
        case .string(let text): bytes.appendJSONString(text)
        case .array(let values):
            open("[")
            for value in values { element(value) }
            close("]")
        case .object(let members):
            open("{")
            for entry in members { member(entry.name, entry.value) }
            close("}")
        }
    }

    private mutating func open(_ bracket: StaticString) {
        append(bracket)
        depth += 1
        isFirst = true
    }

    private mutating func close(_ bracket: StaticString) {
        depth -= 1
        if !isFirst, layout == .indented { breakLine() }
        isFirst = false
        append(bracket)
    }

    private mutating func begin(_ name: String?) {
        if depth > 0 {
            if !isFirst { append(layout == .spaced ? ", " : ",") }
            if layout == .indented { breakLine() }
        }
        isFirst = false
        guard let name else { return }
        bytes.appendJSONString(name)
        append(layout == .compact ? ":" : ": ")
    }

    private mutating func breakLine() {
        bytes.append(UInt8(ascii: "\n"))
        bytes.append(contentsOf: repeatElement(UInt8(ascii: " "), count: depth * 2))
    }

    private mutating func append(_ text: StaticString) {
        // The pointer lives for the call only, and the copy is made inside it.
        text.withUTF8Buffer { unsafe bytes.append(contentsOf: $0) }
    }

    private mutating func append(_ text: String) { bytes.append(contentsOf: text.utf8) }
}

/// A JSON text to be written (RFC 8259). Members of objects keep their order.
package indirect enum JSONValue: Hashable, Sendable {
    case null
    case bool(Bool)
    case number(Int64)
    case string(String)
    case array([JSONValue])
    case object([Member])

    /// A name and its value.
    package struct Member: Hashable, Sendable {
        package let name: String
        package let value: JSONValue

        package init(_ name: String, _ value: JSONValue) {
            self.name = name
            self.value = value
        }
    }

    package static func text(_ text: String?) -> JSONValue { text.map(JSONValue.string) ?? .null }

    /// The value of a member of an object; `nil` for anything else.
    package subscript(_ name: String) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.name == name }?.value
    }

    package var line: String { written(.spaced) }

    /// The text with a line for each member and element.
    package var pretty: String { written(.indented) }

    private func written(_ layout: JSONWriter.Layout) -> String {
        var writer = JSONWriter(layout)
        writer.element(self)
        return writer.text
    }
}

extension Array<UInt8> {
    /// Appends a text as a JSON string, between quotation marks.
    ///
    /// RFC 8259 §7 asks for escapes of quotation mark, reverse solidus and control characters.
    /// Escaped too are characters that a terminal could take for a command or for another direction
    /// of writing: strangers make the texts, and people read them.
    package mutating func appendJSONString(_ text: String) {
        var text = text
        append(UInt8(ascii: "\""))
        // The pointer lives for the call only, and the copy is made inside it.
        text.withUTF8 { unsafe appendJSONCharacters($0) }
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

    /// Every index is below the count of the text, which is valid UTF-8 and so ends with a whole
    /// character.
    private mutating func appendJSONCharacters(_ text: UnsafeBufferPointer<UInt8>) {
        var index = 0
        while index < text.count {
            let byte = unsafe text[index]
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                append(UInt8(ascii: "\\"))
                append(byte)
                index += 1
            case _ where Self.isPlain(byte):
                let end = unsafe text[index...].firstIndex { !Self.isPlain($0) } ?? text.endIndex
                unsafe append(contentsOf: text[index..<end])
                index = end
            case 0..<0x20, 0x7F:
                appendJSONEscape(UInt16(byte))
                index += 1
            default:
                // The first byte of U+0080…U+00BF, or of U+2000…U+2FFF. A `String` is valid UTF-8,
                // so one or two more bytes follow.
                let length = byte == 0xC2 ? 2 : 3
                var code = UInt16(byte & (length == 2 ? 0x1F : 0x0F))
                for place in (index + 1)..<(index + length) {
                    code = unsafe code << 6 | UInt16(text[place] & 0x3F)
                }
                switch code {
                case 0x80..<0xA0, 0x2028...0x202E, 0x2066...0x2069: appendJSONEscape(code)
                default: unsafe append(contentsOf: text[index..<(index + length)])
                }
                index += length
            }
        }
    }

    /// Whether a byte of UTF-8 stands in a JSON string as it is, whatever follows.
    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), 0..<0x20, 0x7F, 0xC2, 0xE2: false
        default: true
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
