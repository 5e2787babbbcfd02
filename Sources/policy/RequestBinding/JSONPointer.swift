/// A place in a JSON text (RFC 6901), for challenges that an app sends inside its content.
///
/// The text is read once, strictly (RFC 8259) as far as the place needs it, without a tree. A
/// member name that occurs twice on the way is refused: two readers could take different ones.
public struct JSONPointer: Hashable, Sendable {
    /// The member names on the way, unescaped; array elements are named by their index in digits.
    public let tokens: [String]

    /// The deepest nesting that is read.
    public static let depthMax = 32

    /// A place by its tokens, unescaped.
    public init(tokens: [String]) { self.tokens = tokens }

    /// Reads a pointer such as `/auth/challenge`.
    ///
    /// - Returns: `nil` when it does not begin with "/" or holds "~" without 0 or 1 behind it.
    public init?(_ text: String) {
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

    /// The text of the string at this place; `nil` when the text is no JSON, the place does not
    /// exist, is no string, or is ambiguous.
    public func string(in text: Span<UInt8>) -> [UInt8]? {
        var reader = JSONReader()
        reader.skipSpace(text)
        guard let found = reader.find(tokens[...], in: text, depth: 0) else { return nil }
        reader.skipSpace(text)
        guard reader.index == text.count else { return nil }
        return found
    }
}
