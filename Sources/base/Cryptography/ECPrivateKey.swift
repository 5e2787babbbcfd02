internal import COpenSSL
public import Signatures

/// A private key on P-256 or P-384: for test authorities, software authenticators and the tokens
/// that Apple's servers ask for. The gateway's verifiers need none.
///
/// `@unchecked Sendable`: the EC_KEY and the EVP_PKEY around it are not changed after the
/// initialiser, and OpenSSL signs with a constant key from several threads.
public final class ECPrivateKey: @unchecked Sendable {
    /// The curves, by their NIST names.
    public enum Curve: String, Sendable, CaseIterable {
        /// NIST P-256.
        case p256 = "P-256"
        /// NIST P-384.
        case p384 = "P-384"

        var nid: Int32 {
            switch self {
            case .p256: NID_X9_62_prime256v1
            case .p384: NID_secp384r1
            }
        }

        /// Bytes of a scalar or coordinate.
        var bytes: Int {
            switch self {
            case .p256: 32
            case .p384: 48
            }
        }
    }

    /// The curve.
    public let curve: Curve
    /// The public point, X9.62 uncompressed: 65 bytes on P-256, 97 on P-384.
    public let x963: [UInt8]

    private let key: OpaquePointer
    let envelope: OpaquePointer

    /// A fresh random key.
    public convenience init(generating curve: Curve) {
        guard let key = EC_KEY_new_by_curve_name(curve.nid), EC_KEY_generate_key(key) == 1 else {
            preconditionFailure("ECPrivateKey: OpenSSL cannot make a key")
        }
        self.init(curve: curve, owning: key)
    }

    /// The key of this scalar, big-endian, of the curve's length; `nil` unless it is 1…order − 1.
    public convenience init?(_ curve: Curve, scalar: Span<UInt8>) {
        guard scalar.count == curve.bytes, let key = EC_KEY_new_by_curve_name(curve.nid) else {
            return nil
        }
        let number = scalar.withUnsafeBufferPointer {
            BN_bin2bn($0.baseAddress, Int32($0.count), nil)
        }
        guard let number else { preconditionFailure("ECPrivateKey: no memory") }
        defer { BN_clear_free(number) }
        let group = EC_KEY_get0_group(key)
        guard let point = EC_POINT_new(group) else {
            preconditionFailure("ECPrivateKey: no memory")
        }
        defer { EC_POINT_free(point) }
        guard BN_is_zero(number) == 0, BN_cmp(number, EC_GROUP_get0_order(group)) < 0,
            EC_POINT_mul(group, point, number, nil, nil, nil) == 1,
            EC_KEY_set_private_key(key, number) == 1, EC_KEY_set_public_key(key, point) == 1
        else {
            EC_KEY_free(key)
            ERR_clear_error()
            return nil
        }
        self.init(curve: curve, owning: key)
    }

    /// Reads an unencrypted private key in PEM (PKCS #8 or SEC 1); `nil` when the text is no key,
    /// or one on another curve.
    public convenience init?(pem: String) {
        var text = Array(pem.utf8)
        guard text.count <= 64 * 1024 else { return nil }
        let envelope: OpaquePointer? = text.withUnsafeMutableBytes { buffer in
            guard let bio = BIO_new_mem_buf(buffer.baseAddress, Int32(buffer.count)) else {
                return nil
            }
            defer { BIO_free(bio) }
            // An empty password in place of a prompt on the terminal.
            var password: [CChar] = [0]
            return password.withUnsafeMutableBytes {
                PEM_read_bio_PrivateKey(bio, nil, nil, $0.baseAddress)
            }
        }
        guard let envelope else {
            ERR_clear_error()
            return nil
        }
        defer { EVP_PKEY_free(envelope) }
        guard let key = EVP_PKEY_get1_EC_KEY(envelope) else {
            ERR_clear_error()
            return nil
        }
        let nid = EC_GROUP_get_curve_name(EC_KEY_get0_group(key))
        guard let curve = Curve.allCases.first(where: { $0.nid == nid }) else {
            EC_KEY_free(key)
            return nil
        }
        self.init(curve: curve, owning: key)
    }

    private init(curve: Curve, owning key: OpaquePointer) {
        guard let envelope = EVP_PKEY_new(), EVP_PKEY_set1_EC_KEY(envelope, key) == 1 else {
            preconditionFailure("ECPrivateKey: no memory")
        }
        self.curve = curve
        self.key = key
        self.envelope = envelope
        let count = 1 + 2 * curve.bytes
        x963 = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            initialized = EC_POINT_point2oct(
                EC_KEY_get0_group(key),
                EC_KEY_get0_public_key(key),
                POINT_CONVERSION_UNCOMPRESSED,
                buffer.baseAddress,
                count,
                nil
            )
        }
    }

    deinit {
        EVP_PKEY_free(envelope)
        EC_KEY_free(key)
    }

    /// A DER signature over a digest of at most 64 bytes, with a random nonce.
    public func signature(overDigest digest: Span<UInt8>) -> [UInt8] {
        precondition(digest.count <= 64, "ECPrivateKey: not a digest")
        let capacity = Int(ECDSA_size(key))
        return [UInt8](unsafeUninitializedCapacity: capacity) { buffer, initialized in
            var count: UInt32 = 0
            let isSigned = digest.withUnsafeBufferPointer {
                // ECDSA_size is the most that ECDSA_sign writes.
                ECDSA_sign(0, $0.baseAddress, Int32($0.count), buffer.baseAddress, &count, key)
            }
            guard isSigned == 1 else { preconditionFailure("ECPrivateKey: OpenSSL cannot sign") }
            initialized = Int(count)
        }
    }

    /// The private key in PEM (PKCS #8, unencrypted).
    public var pem: String {
        PEM.text { PEM_write_bio_PrivateKey($0, envelope, nil, nil, 0, nil, nil) == 1 }
    }
}

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
