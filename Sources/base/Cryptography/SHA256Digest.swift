/// Thirty-two bytes that came out of SHA-256, held inline.
///
/// Equality is that of values and takes no care of time; to compare a secret, see
/// ``isEqual(constantTime:)``.
public struct SHA256Digest: Hashable, Sendable {
    // Big-endian words: comparing and hashing them is four operations, not thirty-two.
    private let word0: UInt64
    private let word1: UInt64
    private let word2: UInt64
    private let word3: UInt64

    /// The digest that has these bytes.
    public init(_ octets: InlineArray<32, UInt8>) {
        let span = octets.span
        word0 = Self.word(span, 0)
        word1 = Self.word(span, 8)
        word2 = Self.word(span, 16)
        word3 = Self.word(span, 24)
    }

    /// The digest that has these bytes; `nil` unless there are exactly 32.
    public init?(_ octets: Span<UInt8>) {
        guard octets.count == 32 else { return nil }
        word0 = Self.word(octets, 0)
        word1 = Self.word(octets, 8)
        word2 = Self.word(octets, 16)
        word3 = Self.word(octets, 24)
    }

    /// The digest that has these bytes; `nil` unless there are exactly 32.
    public init?(octets: some Collection<UInt8>) {
        let array = Array(octets)
        self.init(array.span)
    }

    /// The bytes, inline: `digest.bytes.span` is what hashing functions take.
    public var bytes: InlineArray<32, UInt8> {
        InlineArray { index in
            UInt8(truncatingIfNeeded: word(at: index / 8) >> UInt64(56 - index % 8 * 8))
        }
    }

    /// The bytes as an array.
    public var octets: [UInt8] {
        let bytes = self.bytes
        return bytes.span.withUnsafeBufferPointer { Array($0) }
    }

    /// Whether these are the same bytes, decided in a time that depends on their number only.
    public func isEqual(constantTime octets: Span<UInt8>) -> Bool {
        guard let other = SHA256Digest(octets) else { return false }
        return (word0 ^ other.word0) | (word1 ^ other.word1) | (word2 ^ other.word2)
            | (word3 ^ other.word3) == 0
    }

    private func word(at index: Int) -> UInt64 {
        switch index {
        case 0: word0
        case 1: word1
        case 2: word2
        default: word3
        }
    }

    private static func word(_ octets: Span<UInt8>, _ offset: Int) -> UInt64 {
        var word: UInt64 = 0
        for index in offset..<(offset + 8) { word = word << 8 | UInt64(octets[index]) }
        return word
    }
}
