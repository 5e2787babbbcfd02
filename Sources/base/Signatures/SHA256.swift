#if Gateway && os(Linux)
    internal import COpenSSL
#else
    internal import Crypto
#endif

/// The hash function SHA-256 (FIPS 180-4).
///
/// In the gateway it is OpenSSL's: the context is a value on the stack and no algorithm is looked
/// up. OpenSSL's EVP interface takes twice the time for the short inputs that App Attest hashes.
/// Elsewhere it is swift-crypto's.
public enum SHA256 {
    /// The digest of bytes that lie in one piece.
    public static func digest(_ bytes: Span<UInt8>) -> SHA256Digest {
        var stream = Stream()
        stream.update(bytes)
        return stream.digest()
    }

    /// The digest of two pieces, one after the other.
    public static func digest(_ first: Span<UInt8>, _ second: Span<UInt8>) -> SHA256Digest {
        var stream = Stream()
        stream.update(first)
        stream.update(second)
        return stream.digest()
    }

    /// The digest of an array.
    public static func digest(of bytes: [UInt8]) -> SHA256Digest {
        digest(ContiguousArray(bytes).span)
    }

    package static func digest(of digest: SHA256Digest) -> SHA256Digest {
        digest.withSpan { SHA256.digest($0) }
    }

    /// A digest of bytes that come in any number of pieces.
    public struct Stream: Sendable {
        #if Gateway && os(Linux)
            private var context = SHA256_CTX()
        #else
            private var hash = Crypto.SHA256()
        #endif

        /// A stream without bytes so far.
        public init() {
            #if Gateway && os(Linux)
                SHA256_Init(&context)
            #endif
        }

        /// Takes the next bytes.
        public mutating func update(_ bytes: Span<UInt8>) {
            bytes.withUnsafeBytes { bytes in
                #if Gateway && os(Linux)
                    // The C border: pointer and count are of one buffer, which outlives the call.
                    _ = SHA256_Update(&context, bytes.baseAddress, bytes.count)
                #else
                    hash.update(bufferPointer: bytes)
                #endif
            }
        }

        /// The digest of all bytes so far; the stream itself may go on.
        public func digest() -> SHA256Digest {
            #if Gateway && os(Linux)
                var copy = context
                return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 32) { buffer in
                    // SHA256_Final writes 32 bytes, which is the size of the buffer.
                    _ = SHA256_Final(buffer.baseAddress, &copy)
                    return SHA256Digest(UnsafeRawBufferPointer(buffer))
                }
            #else
                return hash.finalize().withUnsafeBytes { SHA256Digest($0) }
            #endif
        }
    }
}

/// Thirty-two bytes of SHA-256 output, held inline.
///
/// Equality compares values in a time that may depend on them. To compare a secret, see
/// ``isEqual(constantTime:)``.
public struct SHA256Digest: Hashable, Sendable {
    private let block: Block32

    /// The digest that a buffer of 32 bytes holds.
    package init(_ bytes: UnsafeRawBufferPointer) {
        precondition(bytes.count == 32, "SHA256Digest: not 32 bytes")
        block = Block32(bytes)
    }

    /// The digest that has these bytes; `nil` unless there are exactly 32.
    public init?(_ bytes: Span<UInt8>) {
        guard bytes.count == 32 else { return nil }
        block = bytes.withUnsafeBytes { Block32($0) }
    }

    /// The digest that has these bytes; `nil` unless there are exactly 32.
    public init?(bytes: some Collection<UInt8>) { self.init(ContiguousArray(bytes).span) }

    /// Lends the 32 bytes, which lie on the stack.
    package func withSpan<Result, Failure>(
        _ body: (Span<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try withUnsafeBytes { bytes throws(Failure) in
            // The bytes are of a copy that outlives the call.
            try body(Span(_unsafeBytes: bytes))
        }
    }

    func withUnsafeBytes<Result, Failure>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try Swift.withUnsafeBytes(of: block.bytes, body)
    }

    /// Writes the 32 bytes into a buffer of 32.
    package func copy(to buffer: UnsafeMutableRawBufferPointer) {
        buffer.storeBytes(of: block.bytes, as: (UInt64, UInt64, UInt64, UInt64).self)
    }

    /// The bytes as an array.
    public var array: [UInt8] {
        withUnsafeBytes { Array($0) }
    }

    /// The first eight bytes as a big-endian number.
    package var firstWord: UInt64 { block.word0 }

    /// Whether the bytes are equal, decided in a time that depends on their number only.
    public func isEqual(constantTime bytes: Span<UInt8>) -> Bool {
        guard let other = SHA256Digest(bytes) else { return false }
        return isEqual(constantTime: other)
    }

    /// Whether the digests are equal, decided in a time that does not depend on where they differ.
    public func isEqual(constantTime other: SHA256Digest) -> Bool {
        (block.word0 ^ other.block.word0) | (block.word1 ^ other.block.word1)
            | (block.word2 ^ other.block.word2) | (block.word3 ^ other.block.word3) == 0
    }
}

/// Thirty-two bytes inline, as big-endian words: comparing and hashing them is four operations, not
/// thirty-two. `InlineArray` would do, but Apple's systems have it since 26 only.
struct Block32: Hashable, Sendable {
    let word0: UInt64
    let word1: UInt64
    let word2: UInt64
    let word3: UInt64

    /// The first 32 bytes of a buffer, which has at least as many.
    init(_ bytes: UnsafeRawBufferPointer) {
        func word(_ offset: Int) -> UInt64 {
            UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        word0 = word(0)
        word1 = word(8)
        word2 = word(16)
        word3 = word(24)
    }

    /// The bytes in their order in memory.
    var bytes: (UInt64, UInt64, UInt64, UInt64) {
        (word0.bigEndian, word1.bigEndian, word2.bigEndian, word3.bigEndian)
    }
}
