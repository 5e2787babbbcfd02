internal import COpenSSL

extension P256 {
    /// Verifies signatures with objects of OpenSSL that it keeps: one for each lane, used by one
    /// thread at a time.
    ///
    /// A verification reads the key's point (with the check that it is on the curve), reads the DER
    /// signature without allocating, and runs ECDSA; see `Cryptography.swift` for what was
    /// measured.
    public final class Verifier {
        private let key: OpaquePointer
        private let context: OpaquePointer
        private let signature: OpaquePointer
        private let r: OpaquePointer
        private let s: OpaquePointer

        /// Makes the objects. Ends the process when OpenSSL has no memory for them.
        public init() {
            guard let key = EC_KEY_new_by_curve_name(NID_X9_62_prime256v1),
                let context = BN_CTX_new(), let signature = ECDSA_SIG_new(),
                let r = BN_new(), let s = BN_new(), ECDSA_SIG_set0(signature, r, s) == 1
            else { preconditionFailure("P256.Verifier: OpenSSL has no memory or no P-256") }
            self.key = key
            self.context = context
            self.signature = signature
            self.r = r
            self.s = s
        }

        deinit {
            // r and s belong to the signature since ECDSA_SIG_set0.
            ECDSA_SIG_free(signature)
            BN_CTX_free(context)
            EC_KEY_free(key)
        }

        /// Whether `signature` (DER) is one of `key` over this SHA-256 digest.
        ///
        /// Either value of `s` is valid. Malformed signatures are not.
        public func isValidSignature(
            _ signature: Span<UInt8>,
            digest: SHA256Digest,
            key publicKey: PublicKey
        ) -> Bool {
            guard let parts = ECDSASignature(signature, integerOctetsMax: 32) else { return false }
            let isRead = signature.withUnsafeBufferPointer { buffer in
                // Both ranges lie inside the buffer: ECDSASignature checked them against its count.
                let r = UnsafeBufferPointer(rebasing: buffer[parts.r])
                let s = UnsafeBufferPointer(rebasing: buffer[parts.s])
                return BN_bin2bn(r.baseAddress, Int32(r.count), self.r) != nil
                    && BN_bin2bn(s.baseAddress, Int32(s.count), self.s) != nil
            }
            let isKey = publicKey.point.span.withUnsafeBufferPointer { buffer in
                EC_KEY_oct2key(key, buffer.baseAddress, buffer.count, context) == 1
            }
            let isValid =
                isRead && isKey
                && digest.bytes.span.withUnsafeBufferPointer { buffer in
                    ECDSA_do_verify(buffer.baseAddress, 32, self.signature, key) == 1
                }
            if !isValid { ERR_clear_error() }
            return isValid
        }

        /// Whether `signature` (DER) is one of `key` over SHA-256 of this message.
        public func isValidSignature(
            _ signature: Span<UInt8>,
            message: Span<UInt8>,
            key publicKey: PublicKey
        ) -> Bool {
            isValidSignature(signature, digest: SHA256.digest(message), key: publicKey)
        }
    }
}
