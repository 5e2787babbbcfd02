internal import COpenSSL

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
