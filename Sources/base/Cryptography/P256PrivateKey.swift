public import Signatures

/// A private key on P-256: the key of a Secure Enclave, or of a software authenticator in its
/// place.
public struct P256PrivateKey: Sendable {
    /// The key as the type that also signs certificates and messages.
    public let key: ECPrivateKey
    /// The public half.
    public let publicKey: P256PublicKey

    /// A fresh random key.
    public init() { self.init(onCurve: ECPrivateKey(generating: .p256)) }

    /// The key of a scalar of 32 bytes, big-endian; `nil` unless it is 1…order − 1.
    public init?(scalar: Span<UInt8>) {
        guard let key = ECPrivateKey(.p256, scalar: scalar) else { return nil }
        self.init(onCurve: key)
    }

    /// A key that was read from a file; `nil` when it is on another curve.
    package init?(_ key: ECPrivateKey) {
        guard key.curve == .p256 else { return nil }
        self.init(onCurve: key)
    }

    /// For tests and load: each seed always gives one key. It is SHA-256 of the seed and a count,
    /// with the first count that gives a scalar.
    public init(seed: Span<UInt8>) {
        var count: UInt8 = 0
        while true {
            let scalar = SHA256.digest(seed, [count].span).bytes
            if let key = ECPrivateKey(.p256, scalar: scalar.span) {
                self.init(onCurve: key)
                return
            }
            // The chance of another turn is 2⁻³². After 256 turns the hash must be broken.
            count += 1
        }
    }

    private init(onCurve key: ECPrivateKey) {
        guard let publicKey = P256PublicKey(x963: key.x963) else {
            preconditionFailure("P256PrivateKey: a key that OpenSSL made is not on the curve")
        }
        self.key = key
        self.publicKey = publicKey
    }

    /// A DER signature over a SHA-256 digest, with a random nonce.
    public func signature(digest: SHA256Digest) -> [UInt8] {
        let bytes = digest.bytes
        return key.signature(overDigest: bytes.span)
    }

    /// A DER signature over SHA-256 of a message, with a random nonce.
    public func signature(message: Span<UInt8>) -> [UInt8] {
        signature(digest: SHA256.digest(message))
    }

    /// A signature over SHA-256 of a message as JSON Web Signatures have it: r and s, 32 bytes
    /// each, big-endian (RFC 7518 §3.4).
    package func joseSignature(message: Span<UInt8>) -> [UInt8] {
        let der = signature(message: message)
        guard let parts = ECDSASignature(der.span, integerBytesMax: 32) else {
            preconditionFailure("P256PrivateKey: a signature that OpenSSL made is malformed")
        }
        return [parts.r, parts.s].flatMap { range in
            let number = der[range].suffix(32)
            return [UInt8](repeating: 0, count: 32 - number.count) + number
        }
    }
}
