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

/// A small JSON object of strings, whole numbers and lists of strings, read strictly.
///
/// Members that the caller did not ask for are skipped. If a member that it asked for occurs twice,
/// the document is malformed: two readers could take different ones.
package struct JSONDocument: Sendable {
    private var strings: [String: String] = [:]
    private var integers: [String: Int] = [:]
    private var lists: [String: [String]] = [:]

    /// The largest whole number that every reader of JSON can hold exactly has 15 digits (RFC 8259
    /// §6).
    private static let integers = 0...999_999_999_999_999

    /// Reads an object; `nil` when the text is no JSON object (RFC 8259), or when a member that the
    /// caller asks for is neither a string nor a whole number, or occurs twice.
    ///
    /// - lists: those of the members that are lists of strings, and may be long.
    package init?(_ text: Span<UInt8>, members: Set<String>, lists: Set<String> = []) {
        do throws(JSONError) {
            try read(text, members, lists)
        } catch {
            return nil
        }
    }

    private mutating func read(
        _ text: Span<UInt8>,
        _ members: Set<String>,
        _ lists: Set<String>
    ) throws(JSONError) {
        var reader = JSONReader()
        try reader.beginObject(text)
        while let bytes = try reader.nextName(text) {
            let name = String(decoding: bytes, as: UTF8.self)
            guard members.contains(name) else {
                try reader.skipValue(text, depth: 1)
                continue
            }
            guard !has(name) else { throw reader.error("\(name) is given twice") }
            guard !lists.contains(name) else {
                self.lists[name] = try Self.list(&reader, text)
                continue
            }
            switch try reader.scalar(text) {
            case .string(let bytes): strings[name] = try Self.string(bytes, reader)
            case .number(let number):
                guard let value = Int(exactly: number), Self.integers.contains(value) else {
                    throw reader.error("\(name) is out of bounds")
                }
                integers[name] = value
            case .boolean, .null: throw reader.error("\(name) is no string and no number")
            }
        }
        try reader.end(text)
    }

    private static func string(_ bytes: [UInt8], _ reader: JSONReader) throws(JSONError) -> String {
        guard let value = String(utf8: bytes) else { throw reader.error("a string is no UTF-8") }
        return value
    }

    private static func list(
        _ reader: inout JSONReader,
        _ text: Span<UInt8>
    ) throws(JSONError) -> [String] {
        var list: [String] = []
        try reader.beginArray(text)
        while try reader.nextElement(text) {
            guard case .string(let bytes) = try reader.scalar(text) else {
                throw reader.error("an element is no string")
            }
            list.append(try string(bytes, reader))
        }
        return list
    }

    package func has(_ name: String) -> Bool {
        strings[name] != nil || integers[name] != nil || lists[name] != nil
    }

    package func string(_ name: String) -> String? { strings[name] }

    package func integer(_ name: String) -> Int? { integers[name] }

    package func list(_ name: String) -> [String]? { lists[name] }
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
