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
            try read(text, members: members, lists: lists)
        } catch {
            return nil
        }
    }

    private mutating func read(
        _ text: Span<UInt8>,
        members: Set<String>,
        lists: Set<String>
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

/// A place in a JSON text (RFC 6901), for challenges that an app sends inside its content.
///
/// The text is read once, strictly (RFC 8259), without a tree. A member name that occurs twice on
/// the way is refused: two readers could take different ones.
package struct JSONPointer: Hashable, Sendable {
    /// The member names on the way, unescaped; array elements are named by their index in digits.
    package let tokens: [String]

    /// A place by its tokens, unescaped.
    package init(tokens: [String]) { self.tokens = tokens }

    /// Reads a pointer such as `/auth/challenge`.
    ///
    /// - Returns: `nil` when it does not begin with "/" or holds "~" without 0 or 1 after it.
    package init?(_ text: String) {
        guard text.hasPrefix("/") else { return nil }
        var tokens: [String] = []
        for part in text.dropFirst().split(separator: "/", omittingEmptySubsequences: false) {
            var token = ""
            var isEscape = false
            for character in part {
                switch (isEscape, character) {
                case (true, "0"): token.append("~")
                case (true, "1"): token.append("/")
                case (true, _): return nil
                case (false, "~"): break
                case (false, _): token.append(character)
                }
                isEscape = !isEscape && character == "~"
            }
            guard !isEscape else { return nil }
            tokens.append(token)
        }
        self.tokens = tokens
    }

    /// The pointer in the form that ``init(_:)`` reads.
    package var text: String {
        tokens.map { "/" + $0.replacing("~", with: "~0").replacing("/", with: "~1") }.joined()
    }

    /// The bytes of the string at this place; `nil` when the text is no JSON, or the place does not
    /// exist, is no string, or is ambiguous.
    package func string(in text: Span<UInt8>) -> [UInt8]? {
        var reader = JSONReader()
        do throws(JSONError) {
            let found = try Self.find(tokens[...], in: text, &reader, depth: 0)
            try reader.end(text)
            return found
        } catch {
            return nil
        }
    }

    /// Reads one value and returns the string at the place in it; `nil` when it is not there.
    private static func find(
        _ place: ArraySlice<String>,
        in text: Span<UInt8>,
        _ reader: inout JSONReader,
        depth: Int
    ) throws(JSONError) -> [UInt8]? {
        let first = reader.peek(text)
        guard let token = place.first else { return try reader.string(text) }
        guard depth < JSONReader.depthMax else { throw reader.error("the place is too deep") }
        let rest = place.dropFirst()
        var found: [UInt8]?
        switch first {
        case UInt8(ascii: "{"):
            try reader.beginObject(text)
            while let name = try reader.nextName(text) {
                if !name.elementsEqual(token.utf8) {
                    try reader.skipValue(text, depth: depth + 1)
                } else if found == nil {
                    found = try find(rest, in: text, &reader, depth: depth + 1)
                    if found == nil { throw reader.error("\(token) holds no such place") }
                } else {
                    throw reader.error("\(token) is given twice")
                }
            }
        case UInt8(ascii: "["):
            try reader.beginArray(text)
            var position = 0
            while try reader.nextElement(text) {
                if String(position) == token {
                    found = try find(rest, in: text, &reader, depth: depth + 1)
                } else {
                    try reader.skipValue(text, depth: depth + 1)
                }
                position += 1
            }
        default: throw reader.error("the place is in no object or array")
        }
        return found
    }
}
