/// Writes one JSON document (RFC 8259), indented for people.
struct JSONWriter {
    private var octets: [UInt8] = []
    private var depth = 0
    /// Nothing was written yet at this depth.
    private var isFirst = true

    /// The document, ended by a line feed.
    var finished: [UInt8] { octets + [UInt8(ascii: "\n")] }

    /// An object: the document, an element, or a member when it has a name.
    mutating func object(_ name: String? = nil, _ fill: (inout JSONWriter) -> Void) {
        nest("{", "}", name, fill)
    }

    /// An array, likewise.
    mutating func array(_ name: String? = nil, _ fill: (inout JSONWriter) -> Void) {
        nest("[", "]", name, fill)
    }

    /// A member of an object; `nil` is null.
    mutating func member(_ name: String, _ value: String?) {
        begin(name)
        if let value { quote(value) } else { append("null") }
    }

    mutating func member(_ name: String, _ value: some BinaryInteger) {
        begin(name)
        append(String(value))
    }

    mutating func member(_ name: String, _ value: Bool) {
        begin(name)
        append(value ? "true" : "false")
    }

    /// A number; JSON has none for infinity and what is no number, so they are null (RFC 8259 §6).
    mutating func member(_ name: String, _ value: Double) {
        begin(name)
        append(value.isFinite ? value.description : "null")
    }

    /// A text in an array.
    mutating func element(_ value: String) {
        begin(nil)
        quote(value)
    }

    private mutating func nest(
        _ opening: String,
        _ closing: String,
        _ name: String?,
        _ fill: (inout JSONWriter) -> Void
    ) {
        begin(name)
        append(opening)
        depth += 1
        isFirst = true
        fill(&self)
        depth -= 1
        if !isFirst { breakLine() }
        isFirst = false
        append(closing)
    }

    private mutating func begin(_ name: String?) {
        if !isFirst { append(",") }
        if depth > 0 { breakLine() }
        isFirst = false
        guard let name else { return }
        quote(name)
        append(": ")
    }

    private mutating func breakLine() {
        octets.append(UInt8(ascii: "\n"))
        octets.append(contentsOf: repeatElement(UInt8(ascii: " "), count: depth * 2))
    }

    private mutating func append(_ text: String) { octets.append(contentsOf: text.utf8) }

    /// RFC 8259 §7: quotation mark, reverse solidus and control characters are escaped.
    private mutating func quote(_ text: String) {
        octets.append(UInt8(ascii: "\""))
        for octet in text.utf8 {
            switch octet {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                octets.append(UInt8(ascii: "\\"))
                octets.append(octet)
            case UInt8(ascii: "\n"): append("\\n")
            case 0..<0x20:
                append(octet < 0x10 ? "\\u000" : "\\u00")
                append(String(octet, radix: 16))
            default: octets.append(octet)
            }
        }
        octets.append(UInt8(ascii: "\""))
    }
}
