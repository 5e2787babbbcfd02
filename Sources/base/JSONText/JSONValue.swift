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
    package var line: String { written(.spaced) }

    /// The text on lines of their own for each member and element.
    package var pretty: String { written(.indented) }

    private func written(_ layout: JSONWriter.Layout) -> String {
        var writer = JSONWriter(layout)
        writer.element(self)
        return writer.text
    }
}
