internal import Crypto
internal import Encodings

/// How a certificate is signed: by which kind of key, over which hash.
package struct SignatureScheme: Hashable, Sendable {
    /// Kinds of keys.
    package enum KeyKind: Sendable { case ec, rsa }
    /// Hashes.
    package enum Hash: Sendable { case sha256, sha384, sha512 }

    /// The kind of the issuer's key.
    package let key: KeyKind
    /// The hash that is signed.
    package let hash: Hash

    /// The scheme of the content of an AlgorithmIdentifier: RFC 5758 §3.2 and RFC 8017 §A.2.4;
    /// `nil` for others.
    ///
    /// ECDSA has no parameters and RSA has NULL; phones have it both ways: Titan M writes NULL for
    /// ECDSA, others leave it out for RSA.
    init?(_ algorithm: [UInt8]) {
        let null: [UInt8] = [0x05, 0x00]
        let bare = algorithm.suffix(2) == null[...] ? algorithm.dropLast(2) : algorithm[...]
        guard let (_, scheme) = Self.known.first(where: { $0.0 == Array(bare) }) else { return nil }
        self = scheme
    }

    private init(_ key: KeyKind, _ hash: Hash) { (self.key, self.hash) = (key, hash) }

    private static let known: [([UInt8], SignatureScheme)] = [
        ("1.2.840.10045.4.3.2", SignatureScheme(.ec, .sha256)),
        ("1.2.840.10045.4.3.3", SignatureScheme(.ec, .sha384)),
        ("1.2.840.10045.4.3.4", SignatureScheme(.ec, .sha512)),
        ("1.2.840.113549.1.1.11", SignatureScheme(.rsa, .sha256)),
        ("1.2.840.113549.1.1.12", SignatureScheme(.rsa, .sha384)),
        ("1.2.840.113549.1.1.13", SignatureScheme(.rsa, .sha512)),
    ].map { (OID($0).element, $1) }
}

extension X509Certificate {
    /// How the issuer has signed this certificate; `nil` when it is not known, or when the
    /// algorithm outside is not the one that is signed (RFC 5280 §4.1.1.2).
    package var signatureScheme: SignatureScheme? {
        let scheme = SignatureScheme(algorithms.inner)
        return scheme == SignatureScheme(algorithms.outer) ? scheme : nil
    }

    /// Whether the key of another certificate, on P-256 or P-384, made this one's signature.
    package func isSigned(byKeyOf issuer: X509Certificate) -> Bool {
        guard let scheme = signatureScheme, scheme.key == .ec, let key = issuer.ecKey else {
            return false
        }
        return key.isValid(signature, over: signed, scheme.hash)
    }

    /// Whether this certificate's key made a signature (DER) over a digest; `nil` for a key that is
    /// not on P-256 or P-384.
    func isValidSignature(_ signature: [UInt8], digest: SHA256Digest) -> Bool? {
        ecKey.map { $0.isValid(signature, for: HashedMessage(digest: digest)) }
    }

    /// The subject's key; `nil` when it is not an uncompressed point on P-256.
    public var p256PublicKey: P256PublicKey? {
        guard subjectKey.algorithm == Self.p256 else { return nil }
        return P256PublicKey(x963: subjectKey.bits)
    }

    /// The subject's key; `nil` when it is not a point on P-256 or P-384.
    var ecKey: ECPublicKey? {
        switch subjectKey.algorithm {
        case Self.p256: ECPublicKey(p256: subjectKey.bits)
        case Self.p384: ECPublicKey(p384: subjectKey.bits)
        default: nil
        }
    }

    // RFC 5480 §2.1.1: id-ecPublicKey and the curve.
    private static let p256 = OID("1.2.840.10045.2.1").element + OID("1.2.840.10045.3.1.7").element
    private static let p384 = OID("1.2.840.10045.2.1").element + OID("1.3.132.0.34").element
}
