internal import COpenSSL

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
