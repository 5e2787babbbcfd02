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
