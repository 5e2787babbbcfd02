internal import COpenSSL
@_exported public import Signatures

// Cryptography with secrets, by the system's OpenSSL 3: HMAC, random bytes, private keys, and the
// certificates and messages that tests sign with them. Checks without a secret are in `Signatures`,
// which this module exports.
//
// These two targets and `EventLoops/TLS` are the only importers of `COpenSSL`. Their results are
// Swift values, and no C type is in a public signature. Every input has a named limit. A call
// that fails leaves the thread's error queue of OpenSSL empty, because TLS on the same thread reads
// that queue.

/// Decides who frees OpenSSL's memory when the process ends.
package enum OpenSSLCleanup {
    /// Has the system free it. A program calls this before all else, because OpenSSL decides at its
    /// first use (OPENSSL_init_crypto(3), `OPENSSL_INIT_NO_ATEXIT`).
    ///
    /// Otherwise `exit` frees the memory while other threads still draw random bytes or read a
    /// certificate, and the process dies by a signal instead of returning its exit status.
    package static func leaveToSystem() {
        _ = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
    }
}

/// Bytes from OpenSSL's generator, which the kernel seeds.
public enum RandomBytes {
    /// The most bytes that one call gives.
    public static let countMax = 1 << 20

    /// A fresh word, fit for the keys of hash tables.
    package static func word() -> UInt64 {
        make(count: 8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Fresh bytes, fit for keys and challenges. `count` is 0…``countMax``.
    public static func make(count: Int) -> [UInt8] {
        precondition(count >= 0 && count <= countMax, "RandomBytes: count out of range")
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            // OpenSSL writes exactly `count` bytes, or the process ends: a guessable key is worse
            // than no key.
            guard count == 0 || RAND_bytes(buffer.baseAddress, Int32(count)) == 1 else {
                preconditionFailure("RandomBytes: the system gives no randomness")
            }
            initialized = count
        }
    }
}

extension SHA256Digest {
    /// The digest that has these bytes.
    public init(_ bytes: InlineArray<32, UInt8>) {
        let span = bytes.span
        self = span.withUnsafeBytes { SHA256Digest($0) }
    }

    /// The bytes, inline: `digest.bytes.span` is what hashing functions take.
    public var bytes: InlineArray<32, UInt8> {
        var bytes = InlineArray<32, UInt8>(repeating: 0)
        var span = bytes.mutableSpan
        span.withUnsafeMutableBytes { copy(to: $0) }
        return bytes
    }
}

/// Text that OpenSSL writes into a memory BIO.
enum PEM {
    /// The text that `write` puts into the BIO. If writing fails, the process ends: writing to
    /// memory fails only without memory.
    static func text(_ write: (OpaquePointer) -> Bool) -> String {
        guard let bio = BIO_new(BIO_s_mem()) else { preconditionFailure("PEM: no memory") }
        defer { BIO_free(bio) }
        guard write(bio) else { preconditionFailure("PEM: OpenSSL cannot write") }
        var start: UnsafeMutablePointer<CChar>?
        let count = copenssl_bio_mem_data(bio, &start)
        guard let start, count > 0 else { return "" }
        // The BIO owns `count` bytes at `start` and is alive; they are copied.
        let bytes = UnsafeRawBufferPointer(start: start, count: count)
        return String(decoding: bytes, as: UTF8.self)
    }
}

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
