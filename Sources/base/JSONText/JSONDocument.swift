/// A small JSON object of strings and whole numbers, read strictly.
///
/// Members that were not asked for are passed over. A member that was asked for and occurs twice
/// makes the document malformed: two readers could take different ones.
package struct JSONDocument: Sendable {
    private var strings: [String: String] = [:]
    private var integers: [String: Int] = [:]

    /// The largest whole number that every reader of JSON can hold exactly has 15 digits (RFC 8259
    /// §6).
    private static let integers = 0...999_999_999_999_999

    /// Reads an object; `nil` when the text is no JSON object (RFC 8259), or a member that is asked
    /// for is neither a string nor a whole number, or occurs twice.
    package init?(_ text: Span<UInt8>, members: Set<String>) {
        do throws(JSONError) {
            try read(text, members)
        } catch {
            return nil
        }
    }

    private mutating func read(_ text: Span<UInt8>, _ members: Set<String>) throws(JSONError) {
        var reader = JSONReader()
        try reader.beginObject(text)
        while let bytes = try reader.nextName(text) {
            let name = String(decoding: bytes, as: UTF8.self)
            guard members.contains(name) else {
                try reader.skipValue(text, depth: 1)
                continue
            }
            guard !has(name) else { throw reader.error("\(name) is given twice") }
            switch try reader.scalar(text) {
            case .string(let bytes):
                guard let value = String(validating: bytes, as: UTF8.self) else {
                    throw reader.error("\(name) is no UTF-8")
                }
                strings[name] = value
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

    /// Whether the member is there.
    package func has(_ name: String) -> Bool { strings[name] != nil || integers[name] != nil }

    /// The member, when it is a string.
    package func string(_ name: String) -> String? { strings[name] }

    /// The member, when it is a whole number.
    package func integer(_ name: String) -> Int? { integers[name] }
}
