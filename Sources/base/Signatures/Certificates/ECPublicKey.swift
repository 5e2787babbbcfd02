internal import Crypto

/// A key of an issuer that signs by ECDSA, on P-256 or P-384.
package struct ECPublicKey: Sendable {
    private enum Point: Sendable {
        case p256(P256.Signing.PublicKey)
        case p384(P384.Signing.PublicKey)
    }

    private let point: Point

    /// Reads an X9.62 point on P-256; `nil` for anything else.
    package init?(p256 point: [UInt8]) {
        guard let key = try? P256.Signing.PublicKey(x963Representation: point) else { return nil }
        self.point = .p256(key)
    }

    /// Reads an X9.62 point on P-384; `nil` for anything else.
    package init?(p384 point: [UInt8]) {
        guard let key = try? P384.Signing.PublicKey(x963Representation: point) else { return nil }
        self.point = .p384(key)
    }

    /// Whether a signature in DER is one of this key over a hash of the message.
    package func isValid(
        _ signature: [UInt8],
        over message: [UInt8],
        _ hash: SignatureScheme.Hash
    ) -> Bool {
        switch hash {
        case .sha256: isValid(signature, for: Crypto.SHA256.hash(data: message))
        case .sha384: isValid(signature, for: SHA384.hash(data: message))
        case .sha512: isValid(signature, for: SHA512.hash(data: message))
        }
    }

    /// Whether a signature in DER is one of this key. ECDSA takes as many bits of a digest as the
    /// curve has (FIPS 186-4 §6.4).
    func isValid(_ signature: [UInt8], for digest: some Digest) -> Bool {
        let whole = ContiguousArray(signature)
        let bytes = whole.span
        let count =
            switch point {
            case .p256: 32
            case .p384: 48
            }
        guard let parts = ECDSASignature(bytes, integerBytesMax: count) else { return false }
        return parts.withPair(of: bytes, integerBytes: count) { pair in
            switch point {
            case .p256(let key):
                (try? P256.Signing.ECDSASignature(rawRepresentation: pair))
                    .map { key.isValidSignature($0, for: digest) } ?? false
            case .p384(let key):
                (try? P384.Signing.ECDSASignature(rawRepresentation: pair))
                    .map { key.isValidSignature($0, for: digest) } ?? false
            }
        }
    }
}
