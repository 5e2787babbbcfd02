internal import COpenSSL

// SHA-256, HMAC, ECDSA on P-256, X.509 paths and CMS messages, on top of the system's OpenSSL 3 and
// of swift-crypto.
//
// This target and `TLSSession` are the only importers of `COpenSSL`. What leaves it are Swift
// values: digests, keys, times, certificates. No C type stands in a public signature, every input
// has a named limit, and a call that fails leaves OpenSSL's error queue of the thread empty,
// because TLS on the same thread reads that queue.
//
// Nothing here reads a clock or trusts the system's certificate store: time and anchors are
// parameters.
//
// Assertions are verified by BoringSSL, through swift-crypto: the one thing done for every request
// is the one place where a second library earns its keep. Measured (release build, one core, µs of
// CPU; parse a key of 65 bytes, read a DER signature, verify):
//
//     OpenSSL 3.0    EVP_PKEY_fromdata + EVP_PKEY_verify         104
//                    EC_KEY_oct2key + ECDSA_do_verify            77.7
//                    `openssl speed`, everything prepared        76.7
//     swift-crypto   PublicKey, ECDSASignature, isValidSignature 65.5
//
// Of the last, 1.4 are for the key and the check that it lies on the curve: parsed keys need no
// cache, and a public key is 65 bytes.

/// Who frees OpenSSL's memory when the process ends.
package enum OpenSSLCleanup {
    /// Leaves it to the system. A program calls this before all else, because OpenSSL decides at
    /// its first use (OPENSSL_init_crypto(3), `OPENSSL_INIT_NO_ATEXIT`).
    ///
    /// Otherwise `exit` frees the memory while other threads still draw random bytes or read a
    /// certificate, and the process dies by a signal instead of returning its exit status.
    package static func leaveToSystem() {
        _ = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
    }
}

/// An object identifier of ASN.1, such as `1.2.840.113635.100.8.2`.
public struct OID: Hashable, Sendable, CustomStringConvertible {
    /// The arcs in decimal with full stops between them.
    public let description: String

    /// The object identifier of these arcs. Text that is none ends the process: identifiers are
    /// constants.
    public init(_ description: String) {
        self.description = description
        withObject { _ in }
    }

    /// Lends the identifier in OpenSSL's form.
    func withObject<Result>(_ body: (OpaquePointer) -> Result) -> Result {
        guard let object = OBJ_txt2obj(description, 1) else {
            preconditionFailure("OID: \(description) is no object identifier")
        }
        defer { ASN1_OBJECT_free(object) }
        return body(object)
    }
}

/// Bytes from OpenSSL's generator, which the kernel seeds.
public enum RandomOctets {
    /// The most bytes that one call gives.
    public static let countMax = 1 << 20

    /// A fresh word, fit for the keys of hash tables.
    package static func word() -> UInt64 {
        make(count: 8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Fresh bytes, fit for keys and challenges. `count` is 0…``countMax``.
    public static func make(count: Int) -> [UInt8] {
        precondition(count >= 0 && count <= countMax, "RandomOctets: count out of range")
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            // Exactly `count` bytes are written, or the process ends: a guessable key is worse
            // than none.
            guard count == 0 || RAND_bytes(buffer.baseAddress, Int32(count)) == 1 else {
                preconditionFailure("RandomOctets: the system gives no randomness")
            }
            initialized = count
        }
    }
}

/// Text that OpenSSL writes into a memory BIO.
enum PEM {
    /// What `write` puts into the BIO, or the end of the process: writing to memory fails only
    /// without memory.
    static func text(_ write: (OpaquePointer) -> Bool) -> String {
        guard let bio = BIO_new(BIO_s_mem()) else { preconditionFailure("PEM: no memory") }
        defer { BIO_free(bio) }
        guard write(bio) else { preconditionFailure("PEM: OpenSSL cannot write") }
        return String(decoding: octets(of: bio), as: UTF8.self)
    }

    /// A copy of what a memory BIO holds.
    static func octets(of bio: OpaquePointer) -> [UInt8] {
        var start: UnsafeMutablePointer<CChar>?
        let count = copenssl_bio_mem_data(bio, &start)
        guard let start, count > 0 else { return [] }
        // The BIO owns `count` bytes at `start` and is alive; they are copied.
        return Array(UnsafeRawBufferPointer(start: start, count: count))
    }
}
