/// A JSON text to be written (RFC 8259), with the members of objects in the order given.
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

    /// A string, or null.
    package static func text(_ text: String?) -> JSONValue { text.map(JSONValue.string) ?? .null }

    /// The value of a member of an object; `nil` for anything else.
    package subscript(_ name: String) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.name == name }?.value
    }

    /// The text on one line.
    package var line: String { written(indent: nil) }

    /// The text on lines of their own for each member and element.
    package var pretty: String { written(indent: 0) }

    private func written(indent: Int?) -> String {
        switch self {
        case .null: "null"
        case .bool(let value): value ? "true" : "false"
        case .number(let value): String(value)
        case .string(let text): Self.quoted(text)
        case .array(let values):
            Self.group("[", values.map { (nil, $0) }, "]", indent)
        case .object(let members):
            Self.group("{", members.map { ($0.name, $0.value) }, "}", indent)
        }
    }

    private static func group(
        _ open: String,
        _ entries: [(name: String?, value: JSONValue)],
        _ close: String,
        _ indent: Int?
    ) -> String {
        guard !entries.isEmpty else { return open + close }
        let inner = indent.map { $0 + 2 }
        let texts = entries.map { entry in
            (entry.name.map { quoted($0) + ": " } ?? "") + entry.value.written(indent: inner)
        }
        guard let indent, let inner else { return open + texts.joined(separator: ", ") + close }
        let lead = "\n" + String(repeating: " ", count: inner)
        return open + lead + texts.joined(separator: "," + lead) + "\n"
            + String(repeating: " ", count: indent) + close
    }

    /// RFC 8259 §7. Beside what it asks for, all that a terminal could take for a command is
    /// escaped: texts come out of objects that strangers made.
    private static func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar.value {
            case 0x22, 0x5C:
                quoted += "\\" + String(scalar)
            case 0..<0x20, 0x7F..<0xA0, 0x2028...0x202E, 0x2066...0x2069:
                let digits = String(scalar.value, radix: 16)
                quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default:
                quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}
