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
        var bytes = InlineArray<32, UInt8>(repeating: 0)
        var span = bytes.mutableSpan
        span.withUnsafeMutableBytes { buffer in
            // Four words of eight bytes are the 32 of the buffer.
            buffer.storeBytes(of: word0.bigEndian, toByteOffset: 0, as: UInt64.self)
            buffer.storeBytes(of: word1.bigEndian, toByteOffset: 8, as: UInt64.self)
            buffer.storeBytes(of: word2.bigEndian, toByteOffset: 16, as: UInt64.self)
            buffer.storeBytes(of: word3.bigEndian, toByteOffset: 24, as: UInt64.self)
        }
        return bytes
    }

    /// The bytes as an array.
    public var octets: [UInt8] {
        let bytes = self.bytes
        return bytes.span.withUnsafeBufferPointer { Array($0) }
    }

    /// The first eight bytes, big-endian.
    package var firstWord: UInt64 { word0 }

    /// Whether these are the same bytes, decided in a time that depends on their number only.
    public func isEqual(constantTime octets: Span<UInt8>) -> Bool {
        guard let other = SHA256Digest(octets) else { return false }
        return isEqual(constantTime: other)
    }

    /// Whether it is the same digest, decided in a time that does not depend on where they differ.
    public func isEqual(constantTime other: SHA256Digest) -> Bool {
        (word0 ^ other.word0) | (word1 ^ other.word1) | (word2 ^ other.word2)
            | (word3 ^ other.word3) == 0
    }

    private static func word(_ octets: Span<UInt8>, _ offset: Int) -> UInt64 {
        octets.extracting(offset..<offset + 8).withUnsafeBytes { bytes in
            // The span has eight bytes, which is what is loaded.
            UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self))
        }
    }
}
