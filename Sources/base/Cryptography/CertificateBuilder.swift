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

    /// CN of the subject, left out when `nil`.
    public var commonName: String?
    /// O of the subject, left out when `nil`.
    public var organization: String?
    /// OU of the subject, left out when `nil`.
    public var organizationalUnit: String?
    /// The serial number, below 2⁶³ so that it is positive.
    public var serial: UInt64
    /// The first moment of validity.
    public var notBefore: UnixTime
    /// The last second of validity.
    public var notAfter: UnixTime
    /// Whether the subject may issue certificates.
    public var isAuthority: Bool
    /// Extensions besides basicConstraints and keyUsage, in order.
    public var extensions: [Extension]

    /// More attributes of the subject, by OpenSSL's names, before the others.
    package var attributes: [(name: String, value: String)] = []
    /// The value of basicConstraints; it replaces the one that follows from ``isAuthority``.
    package var basicConstraints: [UInt8]?
    /// The value of keyUsage; it replaces the one that follows from ``isAuthority``.
    package var keyUsage: [UInt8]?

    /// A certificate without extensions of its own.
    public init(
        commonName: String?,
        organization: String? = nil,
        organizationalUnit: String? = nil,
        serial: UInt64,
        notBefore: UnixTime,
        notAfter: UnixTime,
        isAuthority: Bool,
        extensions: [Extension] = []
    ) {
        self.commonName = commonName
        self.organization = organization
        self.organizationalUnit = organizationalUnit
        self.serial = serial
        self.notBefore = notBefore
        self.notAfter = notAfter
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
        guard let pointer = X509_new() else { Self.fail("X509_new") }
        defer { X509_free(pointer) }
        Self.require(X509_set_version(pointer, 2), "version")
        Self.require(ASN1_INTEGER_set_uint64(X509_get_serialNumber(pointer), serial), "serial")
        setTime(X509_getm_notBefore(pointer), notBefore)
        setTime(X509_getm_notAfter(pointer), notAfter)
        let subject = X509_get_subject_name(pointer)
        for attribute in attributes { add(attribute.name, attribute.value, to: subject) }
        if let commonName { add("CN", commonName, to: subject) }
        if let organizationalUnit { add("OU", organizationalUnit, to: subject) }
        if let organization { add("O", organization, to: subject) }
        if let issuer {
            let issuer = OpenSSLX509(issuer)
            Self.require(
                X509_set_issuer_name(pointer, X509_get_subject_name(issuer.pointer)),
                "issuer"
            )
        } else {
            Self.require(X509_set_issuer_name(pointer, subject), "issuer")
        }
        setKey(of: pointer, point: point, curve: curve)

        // RFC 5280 §4.2.1.9 and §4.2.1.3. keyUsage: keyCertSign and cRLSign, or digitalSignature.
        let constraints = DEREncoder.sequence(
            isAuthority ? [DEREncoder.element(.boolean, [0xFF])] : []
        )
        let usage: [UInt8] = isAuthority ? [0x03, 0x02, 0x01, 0x06] : [0x03, 0x02, 0x07, 0x80]
        let standard = [
            Extension(
                oid: OID("2.5.29.19"),
                isCritical: true,
                value: basicConstraints ?? constraints
            ),
            Extension(oid: OID("2.5.29.15"), isCritical: true, value: keyUsage ?? usage),
        ]
        for entry in standard + extensions { add(entry, to: pointer) }

        let hash = signer.curve == .p256 ? EVP_sha256() : EVP_sha384()
        guard X509_sign(pointer, signer.envelope, hash) > 0 else { Self.fail("sign") }
        guard let der = DER.bytes({ i2d_X509(pointer, $0) }) else { Self.fail("encode") }
        do {
            return try X509Certificate(der: der)
        } catch {
            Self.fail("read back: \(error.detail)")
        }
    }

    private func setTime(_ field: UnsafeMutablePointer<ASN1_TIME>?, _ time: UnixTime) {
        guard ASN1_TIME_set(field, Int(time.seconds)) != nil else { Self.fail("time") }
    }

    private func add(_ field: String, _ value: String, to name: OpaquePointer?) {
        let bytes = Array(value.utf8)
        Self.require(
            X509_NAME_add_entry_by_txt(
                name,
                field,
                MBSTRING_UTF8,
                bytes,
                Int32(bytes.count),
                -1,
                0
            ),
            field
        )
    }

    private func setKey(of certificate: OpaquePointer, point: [UInt8], curve: ECPrivateKey.Curve) {
        guard let key = EC_KEY_new_by_curve_name(curve.nid), let envelope = EVP_PKEY_new() else {
            Self.fail("key")
        }
        defer {
            EVP_PKEY_free(envelope)
            EC_KEY_free(key)
        }
        Self.require(EC_KEY_oct2key(key, point, point.count, nil), "point")
        Self.require(EVP_PKEY_set1_EC_KEY(envelope, key), "key")
        Self.require(X509_set_pubkey(certificate, envelope), "key")
    }

    private func add(_ entry: Extension, to certificate: OpaquePointer) {
        guard let value = ASN1_OCTET_STRING_new() else { Self.fail("extension") }
        defer { ASN1_OCTET_STRING_free(value) }
        Self.require(
            ASN1_OCTET_STRING_set(value, entry.value, Int32(entry.value.count)),
            "extension"
        )
        guard let object = OBJ_txt2obj(entry.oid.description, 1) else { Self.fail("\(entry.oid)") }
        defer { ASN1_OBJECT_free(object) }
        let made = X509_EXTENSION_create_by_OBJ(nil, object, entry.isCritical ? 1 : 0, value)
        guard let made else { Self.fail("extension \(entry.oid)") }
        defer { X509_EXTENSION_free(made) }
        Self.require(X509_add_ext(certificate, made, -1), "extension \(entry.oid)")
    }

    private static func require(_ result: Int32, _ what: String) {
        guard result == 1 else { fail(what) }
    }

    private static func fail(_ what: String) -> Never {
        preconditionFailure("CertificateBuilder: OpenSSL refuses \(what)")
    }
}

/// A certificate as an object of OpenSSL, which signs with it.
final class OpenSSLX509 {
    let pointer: OpaquePointer

    /// Has OpenSSL read a certificate again.
    init(_ certificate: X509Certificate) {
        let read = certificate.der.withUnsafeBufferPointer { buffer in
            var next = buffer.baseAddress
            return d2i_X509(nil, &next, buffer.count)
        }
        guard let read else {
            preconditionFailure("CertificateBuilder: OpenSSL reads no certificate of ours")
        }
        pointer = read
    }

    deinit { X509_free(pointer) }
}

/// Bytes that OpenSSL encodes.
private enum DER {
    /// The output of an `i2d` function; `nil` when it fails.
    static func bytes(
        _ encode: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32
    ) -> [UInt8]? {
        var start: UnsafeMutablePointer<UInt8>?
        let count = encode(&start)
        guard count >= 0, let start else { return nil }
        // OpenSSL allocated `count` bytes at `start` for us to free.
        defer { CRYPTO_free(start, nil, 0) }
        return Array(UnsafeBufferPointer(start: start, count: Int(count)))
    }
}
