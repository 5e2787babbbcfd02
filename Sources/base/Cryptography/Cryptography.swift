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
        return String(decoding: bytes(of: bio), as: UTF8.self)
    }

    /// A copy of the bytes in a memory BIO.
    static func bytes(of bio: OpaquePointer) -> [UInt8] {
        var start: UnsafeMutablePointer<CChar>?
        let count = copenssl_bio_mem_data(bio, &start)
        guard let start, count > 0 else { return [] }
        // The BIO owns `count` bytes at `start` and is alive; they are copied.
        return Array(UnsafeRawBufferPointer(start: start, count: count))
    }
}
