/// A small JSON object of strings and whole numbers, read strictly.
///
/// Members that nobody asked for are passed over; one that was asked for and occurs twice makes the
/// document malformed.
public struct JSONDocument: Sendable {
    private var strings: [String: String] = [:]
    private var integers: [String: Int] = [:]

    /// Reads an object; `nil` when the text is no JSON object (RFC 8259), or a member that is asked
    /// for is neither a string nor a whole number, or occurs twice.
    public init?(_ text: Span<UInt8>, members: Set<String>) {
        var reader = JSONReader()
        reader.skipSpace(text)
        var strings: [String: String] = [:]
        var integers: [String: Int] = [:]
        let isRead = reader.members(in: text) { reader, octets in
            let name = String(decoding: octets, as: UTF8.self)
            guard members.contains(name) else { return reader.skipValue(text, depth: 1) }
            guard strings[name] == nil, integers[name] == nil else { return false }
            // What begins as a string is one: the cursor of a broken string stands inside of it.
            if reader.isAtString(in: text) {
                guard let value = reader.string(in: text),
                    let value = String(validating: value, as: UTF8.self)
                else { return false }
                strings[name] = value
                return true
            }
            guard let value = reader.integer(in: text) else { return false }
            integers[name] = value
            return true
        }
        reader.skipSpace(text)
        guard isRead, reader.index == text.count else { return nil }
        self.strings = strings
        self.integers = integers
    }

    /// Whether the member is there.
    public func has(_ name: String) -> Bool { strings[name] != nil || integers[name] != nil }

    /// The member, when it is a string.
    public func string(_ name: String) -> String? { strings[name] }

    /// The member, when it is a whole number.
    public func integer(_ name: String) -> Int? { integers[name] }
}
