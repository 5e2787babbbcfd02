internal import COpenSSL

/// The hash function SHA-256 (FIPS 180-4).
///
/// The context is a value on the stack and no algorithm is looked up: OpenSSL's EVP interface takes
/// twice the time for the short inputs that App Attest hashes.
public enum SHA256 {
    /// The digest of bytes that lie in one piece.
    public static func digest(_ octets: Span<UInt8>) -> SHA256Digest {
        var stream = Stream()
        stream.update(octets)
        return stream.digest()
    }

    /// The digest of two pieces, one after the other.
    public static func digest(_ first: Span<UInt8>, _ second: Span<UInt8>) -> SHA256Digest {
        var stream = Stream()
        stream.update(first)
        stream.update(second)
        return stream.digest()
    }

    /// The digest of three pieces, one after the other.
    public static func digest(
        _ first: Span<UInt8>,
        _ second: Span<UInt8>,
        _ third: Span<UInt8>
    ) -> SHA256Digest {
        var stream = Stream()
        stream.update(first)
        stream.update(second)
        stream.update(third)
        return stream.digest()
    }

    /// The digest of an array.
    public static func digest(of octets: [UInt8]) -> SHA256Digest {
        digest(octets.span)
    }

    /// A digest in the making: bytes in any number of pieces.
    public struct Stream: Sendable {
        private var context = SHA256_CTX()

        /// A stream that has seen nothing.
        public init() {
            SHA256_Init(&context)
        }

        /// Takes the next bytes.
        public mutating func update(_ octets: Span<UInt8>) {
            octets.withUnsafeBytes { bytes in
                // The C border: pointer and count are of one buffer, which outlives the call.
                _ = SHA256_Update(&context, bytes.baseAddress, bytes.count)
            }
        }

        /// The digest of all bytes so far; the stream itself may go on.
        public func digest() -> SHA256Digest {
            var copy = context
            var octets = InlineArray<32, UInt8>(repeating: 0)
            var span = octets.mutableSpan
            span.withUnsafeMutableBufferPointer { buffer in
                // SHA256_Final writes 32 bytes, which is the size of the buffer.
                _ = SHA256_Final(buffer.baseAddress, &copy)
            }
            return SHA256Digest(octets)
        }

        /// The digest of all bytes; the last word of a stream.
        public consuming func finish() -> SHA256Digest {
            digest()
        }
    }
}

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

/// HMAC with SHA-256 (RFC 2104, FIPS 198-1).
public enum HMACSHA256 {
    /// A key that has been hashed into both pads already, for repeated use: a code of a short
    /// message then costs two blocks.
    public struct Key: Sendable {
        private let inner: SHA256.Stream
        private let outer: SHA256.Stream

        /// Prepares a key of any length; one longer than a block (64 bytes) is hashed first (RFC
        /// 2104 §2).
        public init(_ key: Span<UInt8>) {
            var block = [UInt8](repeating: 0, count: 64)
            if key.count > 64 {
                block.replaceSubrange(0..<32, with: SHA256.digest(key).octets)
            } else {
                for index in 0..<key.count { block[index] = key[index] }
            }
            // The block becomes the inner pad, then the outer one.
            var inner = SHA256.Stream()
            for index in block.indices { block[index] ^= 0x36 }
            inner.update(block.span)
            var outer = SHA256.Stream()
            for index in block.indices { block[index] ^= 0x36 ^ 0x5C }
            outer.update(block.span)
            HMACSHA256.erase(&block)
            self.inner = inner
            self.outer = outer
        }

        /// A new random key. Its bytes are kept nowhere else.
        public static func random() -> Key {
            var octets = RandomOctets.make(count: 32)
            defer { HMACSHA256.erase(&octets) }
            return Key(octets.span)
        }

        /// The authentication code of a message.
        public func code(_ message: Span<UInt8>) -> SHA256Digest {
            var stream = inner
            stream.update(message)
            return finish(stream)
        }

        /// The authentication code of a message in two pieces.
        public func code(_ first: Span<UInt8>, _ second: Span<UInt8>) -> SHA256Digest {
            var stream = inner
            stream.update(first)
            stream.update(second)
            return finish(stream)
        }

        /// Whether `code` is the code of the message, compared without regard to where they differ.
        public func isValid(_ code: Span<UInt8>, for message: Span<UInt8>) -> Bool {
            self.code(message).isEqual(constantTime: code)
        }

        private func finish(_ stream: SHA256.Stream) -> SHA256Digest {
            var last = outer
            let digest = stream.digest().bytes
            last.update(digest.span)
            return last.digest()
        }
    }

    /// Overwrites bytes that are needed no more, so that no freed memory holds them.
    private static func erase(_ octets: inout [UInt8]) {
        octets.withUnsafeMutableBytes { bytes in
            // The C border: pointer and count are of one buffer, which outlives the call.
            OPENSSL_cleanse(bytes.baseAddress, bytes.count)
        }
    }

    /// The authentication code of one message under a key that is used once.
    public static func code(_ message: Span<UInt8>, key: Span<UInt8>) -> SHA256Digest {
        Key(key).code(message)
    }
}
