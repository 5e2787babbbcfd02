internal import COpenSSL
public import Signatures

/// HMAC with SHA-256 (RFC 2104, FIPS 198-1).
public enum HMACSHA256 {
    /// A key for repeated use. Both pads are hashed already, so the code of a short message costs
    /// two blocks.
    public struct Key: Sendable {
        private let inner: SHA256.Stream
        private let outer: SHA256.Stream

        /// Prepares a key of any length; one longer than a block (64 bytes) is hashed first (RFC
        /// 2104 §2).
        public init(_ key: Span<UInt8>) {
            var block = [UInt8](repeating: 0, count: 64)
            if key.count > 64 {
                block.replaceSubrange(0..<32, with: SHA256.digest(key).array)
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

        /// A new random key. Its bytes are stored nowhere else.
        public static func random() -> Key {
            var bytes = RandomBytes.make(count: 32)
            defer { HMACSHA256.erase(&bytes) }
            return Key(bytes.span)
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

        /// Whether `code` is the code of the message. The time of the comparison does not depend on
        /// where they differ.
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

    /// Overwrites bytes that are no longer needed, so that no freed memory holds them.
    private static func erase(_ bytes: inout [UInt8]) {
        bytes.withUnsafeMutableBytes { bytes in
            // The C border: pointer and count are of one buffer, which outlives the call.
            OPENSSL_cleanse(bytes.baseAddress, bytes.count)
        }
    }

    /// The authentication code of one message under a key that is used once.
    public static func code(_ message: Span<UInt8>, key: Span<UInt8>) -> SHA256Digest {
        Key(key).code(message)
    }
}
