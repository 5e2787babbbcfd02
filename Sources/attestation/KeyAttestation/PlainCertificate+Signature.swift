internal import Crypto
internal import CryptoExtras
internal import Encodings
internal import Signatures

extension PlainCertificate {
    // RFC 5480 §2.1.1: id-ecPublicKey and the curve.
    private static let p256 = identifier("1.2.840.10045.2.1") + identifier("1.2.840.10045.3.1.7")
    private static let p384 = identifier("1.2.840.10045.2.1") + identifier("1.3.132.0.34")
    // RFC 3279 §2.3.1: rsaEncryption and NULL.
    private static let rsa = identifier("1.2.840.113549.1.1.1") + null
    private static let null: [UInt8] = [0x05, 0x00]

    private static func identifier(_ text: String) -> [UInt8] {
        DEREncoder.element(.objectIdentifier, OID(text).content)
    }

    /// How a certificate is signed: RFC 5758 §3.2 and RFC 8017 §A.2.4.
    private enum Scheme: String, CaseIterable {
        case ecdsaWithSHA256 = "1.2.840.10045.4.3.2"
        case ecdsaWithSHA384 = "1.2.840.10045.4.3.3"
        case ecdsaWithSHA512 = "1.2.840.10045.4.3.4"
        case rsaWithSHA256 = "1.2.840.113549.1.1.11"
        case rsaWithSHA384 = "1.2.840.113549.1.1.12"
        case rsaWithSHA512 = "1.2.840.113549.1.1.13"

        /// The scheme of an AlgorithmIdentifier. ECDSA has no parameters and RSA has NULL; phones
        /// have it both ways: Titan M writes NULL for ECDSA, others leave it out for RSA.
        init?(_ algorithm: [UInt8]) {
            let scheme = Self.allCases.first { scheme in
                let bare = PlainCertificate.identifier(scheme.rawValue)
                return algorithm == bare || algorithm == bare + PlainCertificate.null
            }
            guard let scheme else { return nil }
            self = scheme
        }
    }

    /// Whether the key of another certificate made this one's signature. RFC 5280 §4.1.1.2: the
    /// algorithm outside is the one that is signed.
    func isSigned(byKeyOf issuer: PlainCertificate) -> Bool {
        guard let scheme = Scheme(algorithms.inner), scheme == Scheme(algorithms.outer) else {
            return false
        }
        let (algorithm, key) = issuer.subjectKey
        switch scheme {
        case .ecdsaWithSHA256: return isECDSA(algorithm, key, Crypto.SHA256.hash(data: signed))
        case .ecdsaWithSHA384: return isECDSA(algorithm, key, SHA384.hash(data: signed))
        case .ecdsaWithSHA512: return isECDSA(algorithm, key, SHA512.hash(data: signed))
        case .rsaWithSHA256: return isRSA(algorithm, issuer, Crypto.SHA256.hash(data: signed))
        case .rsaWithSHA384: return isRSA(algorithm, issuer, SHA384.hash(data: signed))
        case .rsaWithSHA512: return isRSA(algorithm, issuer, SHA512.hash(data: signed))
        }
    }

    private func isECDSA(_ algorithm: [UInt8], _ point: [UInt8], _ digest: some Digest) -> Bool {
        switch algorithm {
        case Self.p256:
            let key = try? P256.Signing.PublicKey(x963Representation: point)
            let pair = try? P256.Signing.ECDSASignature(derRepresentation: signature)
            guard let key, let pair else { return false }
            return key.isValidSignature(pair, for: digest)
        case Self.p384:
            let key = try? P384.Signing.PublicKey(x963Representation: point)
            let pair = try? P384.Signing.ECDSASignature(derRepresentation: signature)
            guard let key, let pair else { return false }
            return key.isValidSignature(pair, for: digest)
        default: return false
        }
    }

    /// PKCS #1 v1.5 by a key of 2048 bits and more.
    private func isRSA(
        _ algorithm: [UInt8],
        _ issuer: PlainCertificate,
        _ digest: some Digest
    ) -> Bool {
        guard algorithm == Self.rsa,
            let key = try? _RSA.Signing.PublicKey(derRepresentation: issuer.subjectPublicKeyInfo)
        else { return false }
        return key.isValidSignature(
            _RSA.Signing.RSASignature(rawRepresentation: signature),
            for: digest,
            padding: .insecurePKCS1v1_5
        )
    }
}

// What a chain asks of its certificates.
extension PlainCertificate {
    /// The subject's key as the certificate has it, DER.
    package var subjectPublicKeyInfo: [UInt8] {
        DEREncoder.sequence([
            DEREncoder.element(.sequence, subjectKey.algorithm),
            DEREncoder.bitString(subjectKey.point),
        ])
    }

    /// How often an extension is there.
    func values(of oid: OID) -> [[UInt8]] {
        extensions.filter { $0.oid == oid.content }.map(\.value)
    }
}
