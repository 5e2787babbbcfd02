internal import Crypto
internal import CryptoExtras
internal import Encodings
internal import Signatures

/// The certificates of a chain with the authority that they end at: steps 2 to 7 of the procedure.
///
/// Nothing else of RFC 5280 is judged. One factory chain in five has CA:FALSE and keyUsage
/// digitalSignature on a certificate that signs another; extensions that are unknown or broken are
/// everywhere, and Google's verifier passes over them [Google, BasicChecker].
struct AttestationChain {
    /// The leaf first, without the root.
    let below: [PlainCertificate]
    /// The root as the chain has it, if it has it.
    private let shown: PlainCertificate?
    /// The root that is trusted, among those that were given.
    let anchor: PlainCertificate
    let rootIndex: Int
    let provisioning: Provisioning

    /// Step 2: the root by key and subject. It ends the chain, or it signed the last certificate.
    init(
        _ certificates: [PlainCertificate],
        roots: [PlainCertificate]
    ) throws(KeyAttestationRefusal) {
        guard let last = certificates.last else {
            throw KeyAttestationRefusal(.rootUnknown, "no certificate")
        }
        if let index = roots.firstIndex(where: { Self.isSame($0, last) }) {
            (below, shown) = (certificates.dropLast(), last)
            (anchor, rootIndex) = (roots[index], index)
        } else {
            let issuer = CertificateName(last.issuer)
            let index = roots.firstIndex { root in
                CertificateName(root.subject) == issuer && last.isSigned(byKeyOf: root)
            }
            guard let index else {
                throw KeyAttestationRefusal(.rootUnknown, "the chain ends at no trusted key")
            }
            (below, shown) = (certificates, nil)
            (anchor, rootIndex) = (roots[index], index)
        }
        guard let first = below.last else {
            throw KeyAttestationRefusal(.chainShape, "a root and nothing below it")
        }
        provisioning = Provisioning(ofLast: CertificateName(first.subject))
    }

    /// Whether two certificates are of one authority. Certificates of one key differ in their
    /// dates, and the one that most phones send has expired.
    static func isSame(_ left: PlainCertificate, _ right: PlainCertificate) -> Bool {
        left.subjectKey == right.subjectKey
            && CertificateName(left.subject) == CertificateName(right.subject)
    }

    /// Step 3: each certificate names the next one as its issuer, and is signed by its key.
    ///
    /// A root that came along has to be signed by itself: its signature proves nothing, but so no
    /// byte of a chain can be changed.
    func checkSignatures() throws(KeyAttestationRefusal) {
        let issuers = below.dropFirst() + [anchor]
        for (place, (certificate, issuer)) in zip(below, issuers).enumerated().reversed() {
            guard CertificateName(certificate.issuer) == CertificateName(issuer.subject) else {
                throw KeyAttestationRefusal(.chainNames, "certificate \(place) has another issuer")
            }
        }
        for (place, (certificate, issuer)) in zip(below, issuers).enumerated().reversed() {
            guard certificate.isSigned(byKeyOf: issuer) else {
                throw KeyAttestationRefusal(
                    .chainSignature,
                    "certificate \(place) is not signed by its issuer"
                )
            }
        }
        guard shown?.isSigned(byKeyOf: anchor) ?? true else {
            throw KeyAttestationRefusal(.chainSignature, "the root is not signed by itself")
        }
    }

    /// Step 6: the description is in certificate 0, once, and in no other [Google,
    /// verifyExpectations]. The owner of an attested key can sign certificates with it, and
    /// write any description into them.
    func checkPlaceOfDescription() throws(KeyAttestationRefusal) {
        guard below.dropFirst().allSatisfy({ $0.values(of: KeyDescription.oid).isEmpty }) else {
            throw KeyAttestationRefusal(.chainExtended, "an attested key signed a certificate")
        }
        guard below[0].values(of: KeyDescription.oid).count == 1 else {
            throw KeyAttestationRefusal(.noAttestation, "the leaf has no description, or several")
        }
    }

    /// Step 4: each kind of chain has a fixed length [Google, KeyAttestationCertPath.kt getStep].
    /// With a longer one the owner of a leaked factory key could add certificates of any name.
    func checkShape() throws(KeyAttestationRefusal) {
        guard !below.contains(where: { Self.isSame($0, anchor) }) else {
            throw KeyAttestationRefusal(.chainShape, "the root is there twice")
        }
        let count = provisioning.certificateCount ?? max(below.count, 2)
        guard below.count == count else {
            throw KeyAttestationRefusal(
                .chainShape,
                "\(below.count) certificates below the root, where \(count) are due"
            )
        }
    }

    /// Step 5: the leaf's dates are written by the phone, and no clock. A factory's certificates
    /// live on when they have expired: the phones have no other [Google, verifyValidity].
    func checkValidity(at time: UnixTime) throws(KeyAttestationRefusal) {
        for certificate in below.dropFirst().reversed() {
            let (notBefore, notAfter) = certificate.validity
            guard notBefore.seconds <= time.seconds else {
                throw KeyAttestationRefusal(
                    .notYetValid,
                    "valid from \(notBefore.iso8601), judged at \(time.iso8601)"
                )
            }
            guard provisioning == .factory || time.seconds <= notAfter.seconds else {
                throw KeyAttestationRefusal(
                    .expired,
                    "valid to \(notAfter.iso8601), judged at \(time.iso8601)"
                )
            }
        }
    }

    /// What counts in step 7: every certificate that was shown, the leaf too. The root is trusted
    /// as a key, whatever certificate it has.
    var serials: [CertificateSerial] { below.map { CertificateSerial(bytes: $0.serial) } }

    /// Whether a certificate between leaf and root says that the phone has a StrongBox: step 10.
    /// The leaf's own subject is the app's choice [KeyMint].
    var isStrongBox: Bool {
        let word = Array("StrongBox".utf8)
        return below.dropFirst().contains { certificate in
            CertificateName(certificate.subject).attributes.contains { $0.text == word }
        }
    }
}

/// The attributes of a name in their order: types and texts, whatever kind of string holds a text.
/// Java's verifier compares names in this way too, and so the same root is named by a
/// PrintableString in one certificate and by a UTF8String in another.
struct CertificateName: Equatable {
    struct Attribute: Equatable {
        let type: [UInt8]
        let text: [UInt8]
    }

    let attributes: [Attribute]

    /// A name that a certificate was read with.
    init(_ name: [UInt8]) {
        let whole = ContiguousArray(name)
        let der = whole.span
        var attributes: [Attribute] = []
        // A certificate with a name that can't be read is none, so this reads all of it.
        try? PlainCertificate.walk(der) { type, _, value in
            attributes.append(Attribute(type: der.copy(type), text: der.copy(value)))
        }
        self.attributes = attributes
    }

    func has(_ type: OID, _ text: String? = nil) -> Bool {
        attributes.contains { attribute in
            attribute.type == type.content
                && (text.map { attribute.text == Array($0.utf8) } ?? true)
        }
    }
}

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
        case .ecdsaWithSHA256:
            return isECDSA(algorithm, point: key, digest: Crypto.SHA256.hash(data: signed))
        case .ecdsaWithSHA384:
            return isECDSA(algorithm, point: key, digest: SHA384.hash(data: signed))
        case .ecdsaWithSHA512:
            return isECDSA(algorithm, point: key, digest: SHA512.hash(data: signed))
        case .rsaWithSHA256:
            return isRSA(algorithm, issuer: issuer, digest: Crypto.SHA256.hash(data: signed))
        case .rsaWithSHA384:
            return isRSA(algorithm, issuer: issuer, digest: SHA384.hash(data: signed))
        case .rsaWithSHA512:
            return isRSA(algorithm, issuer: issuer, digest: SHA512.hash(data: signed))
        }
    }

    private func isECDSA(_ algorithm: [UInt8], point: [UInt8], digest: some Digest) -> Bool {
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
        issuer: PlainCertificate,
        digest: some Digest
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

    /// The subject's key as the certificate has it, DER.
    var subjectPublicKeyInfo: [UInt8] {
        DEREncoder.sequence([
            DEREncoder.element(.sequence, subjectKey.algorithm),
            DEREncoder.bitString(subjectKey.point),
        ])
    }

    /// The values of an extension, one for each time that it is there.
    func values(of oid: OID) -> [[UInt8]] {
        extensions.filter { $0.oid == oid.content }.map(\.value)
    }
}
