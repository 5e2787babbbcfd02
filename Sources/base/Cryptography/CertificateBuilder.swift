internal import COpenSSL
internal import Encodings
public import Signatures

/// The contents of a certificate of a test authority or a software authenticator.
public struct CertificateBuilder: Sendable {
    /// An extension with its value in DER.
    public struct Extension: Sendable {
        /// Which one.
        public var oid: OID
        /// Whether a verifier that does not know it must refuse the certificate.
        public var isCritical: Bool
        /// The DER inside the OCTET STRING.
        public var value: [UInt8]

        /// An extension with its value in DER.
        public init(oid: OID, isCritical: Bool = false, value: [UInt8]) {
            self.oid = oid
            self.isCritical = isCritical
            self.value = value
        }
    }

    /// The name of the key's owner. An attribute that is `nil` is left out.
    public struct Subject: Sendable {
        /// CN.
        public var commonName: String?
        /// O.
        public var organization: String?
        /// OU.
        public var organizationalUnit: String?
        /// More attributes, before the others.
        package var attributes: [(type: OID, value: String)] = []

        /// A name of these attributes.
        public init(
            commonName: String?,
            organization: String? = nil,
            organizationalUnit: String? = nil
        ) {
            self.commonName = commonName
            self.organization = organization
            self.organizationalUnit = organizationalUnit
        }

        var der: [UInt8] {
            CertificateContent.name(
                attributes.map { ($0.type.element, $0.value) }
                    + [
                        (OID.commonName, commonName), (.organizationalUnit, organizationalUnit),
                        (.organization, organization),
                    ].compactMap { type, text in text.map { (type.element, $0) } }
            )
        }
    }

    /// Who has the key.
    public var subject: Subject
    /// The serial number, below 2⁶³ so that it is positive.
    public var serial: UInt64
    /// The first moment of validity, and its last second.
    public var validity: ClosedRange<UnixTime>
    /// Whether the subject may issue certificates.
    public var isAuthority: Bool
    /// Extensions besides basicConstraints and keyUsage, in order.
    public var extensions: [Extension]

    /// The value of basicConstraints; it replaces the one that follows from ``isAuthority``.
    package var basicConstraints: [UInt8]?
    /// The value of keyUsage; it replaces the one that follows from ``isAuthority``.
    package var keyUsage: [UInt8]?

    /// A certificate without extensions of its own.
    public init(
        subject: Subject,
        serial: UInt64,
        validity: ClosedRange<UnixTime>,
        isAuthority: Bool,
        extensions: [Extension] = []
    ) {
        self.subject = subject
        self.serial = serial
        self.validity = validity
        self.isAuthority = isAuthority
        self.extensions = extensions
    }

    /// The certificate of a key, signed by itself.
    public func selfSigned(by key: ECPrivateKey) -> X509Certificate {
        signed(for: key.x963, on: key.curve, by: key, issuer: nil)
    }

    /// The certificate of a key, signed by an issuer.
    public func signed(
        for key: ECPrivateKey,
        by issuerKey: ECPrivateKey,
        issuer: X509Certificate
    ) -> X509Certificate {
        signed(for: key.x963, on: key.curve, by: issuerKey, issuer: issuer)
    }

    /// The certificate of a P-256 key whose private half is elsewhere.
    public func signed(
        for key: P256PublicKey,
        by issuerKey: ECPrivateKey,
        issuer: X509Certificate
    ) -> X509Certificate {
        signed(for: key.x963, on: .p256, by: issuerKey, issuer: issuer)
    }

    /// The certificate of a key by its point, signed by an issuer; by itself where there is none.
    package func signed(
        for point: [UInt8],
        on curve: ECPrivateKey.Curve,
        by signer: ECPrivateKey,
        issuer: X509Certificate?
    ) -> X509Certificate {
        var content = CertificateContent(
            serial: serial,
            subject: subject.der,
            publicKeyInfo: DEREncoder.sequence([curve.identifier, DEREncoder.bitString(point)])
        )
        if let issuer { content.issuer = issuer.subject.der }
        content.notBefore = validity.lowerBound.seconds
        content.notAfter = validity.upperBound.seconds
        var usage = CertificateContent.usage(isAuthority: isAuthority)
        if let basicConstraints { usage[0].value = basicConstraints }
        if let keyUsage { usage[1].value = keyUsage }
        content.extensions =
            usage + extensions.map { ($0.oid.element, $0.isCritical, $0.value) }
        let der = content.signed(signer.signatureAlgorithm) { signer.signature(message: $0) }
        do {
            return try X509Certificate(der: der)
        } catch {
            preconditionFailure("CertificateBuilder: \(error.detail)")
        }
    }
}

extension ECPrivateKey {
    /// The AlgorithmIdentifier of its signatures: ecdsa-with-SHA256 or ecdsa-with-SHA384 (RFC 5758
    /// §3.2).
    var signatureAlgorithm: [UInt8] {
        let oid = OID(curve == .p256 ? "1.2.840.10045.4.3.2" : "1.2.840.10045.4.3.3")
        return DEREncoder.sequence([oid.element])
    }

    /// A DER signature over the message, hashed as ``signatureAlgorithm`` says.
    func signature(message: [UInt8]) -> [UInt8] {
        switch curve {
        case .p256:
            let digest = SHA256.digest(of: message).bytes
            return signature(overDigest: digest.span)
        case .p384:
            var digest = [UInt8](repeating: 0, count: 48)
            SHA384(message, message.count, &digest)
            return signature(overDigest: digest.span)
        }
    }
}

extension ECPrivateKey.Curve {
    /// The AlgorithmIdentifier of keys: id-ecPublicKey and the curve (RFC 5480 §2.1.1).
    var identifier: [UInt8] {
        let curve = OID(self == .p256 ? "1.2.840.10045.3.1.7" : "1.3.132.0.34")
        return DEREncoder.sequence([OID("1.2.840.10045.2.1").element, curve.element])
    }
}
