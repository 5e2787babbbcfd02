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
    let below: [X509Certificate]
    /// The root as the chain has it, if it has it.
    private let shown: X509Certificate?
    /// The root that is trusted, among those that were given.
    let anchor: X509Certificate
    let provisioning: Provisioning

    /// Step 2: the root by key and subject. It ends the chain, or it signed the last certificate.
    init(
        _ certificates: [X509Certificate],
        roots: [X509Certificate]
    ) throws(KeyAttestationRefusal) {
        guard let last = certificates.last else {
            throw KeyAttestationRefusal(.rootUnknown, "no certificate")
        }
        if let root = roots.first(where: { Self.isSame($0, last) }) {
            (below, shown, anchor) = (certificates.dropLast(), last, root)
        } else {
            let root = roots.first { root in
                root.subject == last.issuer && last.isSigned(byPhonesAuthority: root)
            }
            guard let root else {
                throw KeyAttestationRefusal(.rootUnknown, "the chain ends at no trusted key")
            }
            (below, shown, anchor) = (certificates, nil, root)
        }
        guard let first = below.last else {
            throw KeyAttestationRefusal(.chainShape, "a root and nothing below it")
        }
        provisioning = Provisioning(ofLast: first.subject)
    }

    /// Whether two certificates are of one authority. Certificates of one key differ in their
    /// dates, and the one that most phones send has expired.
    static func isSame(_ left: X509Certificate, _ right: X509Certificate) -> Bool {
        left.subjectKey == right.subjectKey && left.subject == right.subject
    }

    /// Step 3: each certificate names the next one as its issuer, and is signed by its key.
    ///
    /// A root that came along has to be signed by itself: its signature proves nothing, but so no
    /// byte of a chain can be changed.
    func checkSignatures() throws(KeyAttestationRefusal) {
        let issuers = below.dropFirst() + [anchor]
        for (place, (certificate, issuer)) in zip(below, issuers).enumerated().reversed() {
            guard certificate.issuer == issuer.subject else {
                throw KeyAttestationRefusal(.chainNames, "certificate \(place) has another issuer")
            }
        }
        for (place, (certificate, issuer)) in zip(below, issuers).enumerated().reversed() {
            guard certificate.isSigned(byPhonesAuthority: issuer) else {
                throw KeyAttestationRefusal(
                    .chainSignature,
                    "certificate \(place) is not signed by its issuer"
                )
            }
        }
        guard shown?.isSigned(byPhonesAuthority: anchor) ?? true else {
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
            guard let fault = certificate.fault(at: time) else { continue }
            if fault.reason == .notYetValid {
                throw KeyAttestationRefusal(.notYetValid, fault.detail)
            }
            guard provisioning == .factory else {
                throw KeyAttestationRefusal(.expired, fault.detail)
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
            certificate.subject.attributes.contains { $0.text == word }
        }
    }
}

extension X509Certificate {
    /// Whether the key of another certificate made this one's signature: ECDSA on P-256 and P-384,
    /// or RSA, with which Google's first root and factories sign.
    func isSigned(byPhonesAuthority issuer: X509Certificate) -> Bool {
        guard let scheme = signatureScheme, scheme.key == .rsa else {
            return isSigned(byKeyOf: issuer)
        }
        guard issuer.subjectKey.algorithm == Self.rsa,
            let key = RSAPublicKey(der: issuer.subjectPublicKeyInfo)
        else { return false }
        return key.isValid(signature, over: signed, scheme.hash)
    }

    // RFC 3279 §2.3.1: rsaEncryption and NULL.
    private static let rsa = OID("1.2.840.113549.1.1.1").element + [0x05, 0x00]
}

/// A key of an authority of phones that signs by RSA.
package struct RSAPublicKey: Sendable {
    private let key: _RSA.Signing.PublicKey

    /// Reads a SubjectPublicKeyInfo; `nil` for anything else, and for keys of less than 2048 bits.
    package init?(der: [UInt8]) {
        guard let key = try? _RSA.Signing.PublicKey(derRepresentation: der) else { return nil }
        self.key = key
    }

    /// Whether a signature of PKCS #1 v1.5 is one of this key over a hash of the message.
    package func isValid(
        _ signature: [UInt8],
        over message: [UInt8],
        _ hash: SignatureScheme.Hash
    ) -> Bool {
        switch hash {
        case .sha256: isValid(signature, Crypto.SHA256.hash(data: message))
        case .sha384: isValid(signature, SHA384.hash(data: message))
        case .sha512: isValid(signature, SHA512.hash(data: message))
        }
    }

    private func isValid(_ signature: [UInt8], _ digest: some Digest) -> Bool {
        let signature = _RSA.Signing.RSASignature(rawRepresentation: signature)
        return key.isValidSignature(signature, for: digest, padding: .insecurePKCS1v1_5)
    }
}
