internal import Crypto
internal import Encodings
internal import Foundation

extension CertificateContent {
    /// Contents for a test: valid from a day before a moment, with a random serial number, by which
    /// a message names its signer (RFC 5652 §5.3).
    init(
        subject: [UInt8],
        publicKeyInfo: [UInt8],
        isAuthority: Bool,
        from now: Date,
        days: Int64
    ) {
        self.init(
            serial: UInt64(UInt32.random(in: 1...UInt32.max)),
            subject: subject,
            publicKeyInfo: publicKeyInfo
        )
        let seconds = Int64(now.timeIntervalSince1970)
        (notBefore, notAfter) = (seconds - 86_400, seconds + days * 86_400)
        extensions = Self.usage(isAuthority: isAuthority)
    }

    /// A Name of an organization and a common name.
    static func name(_ commonName: String, organization: String) -> [UInt8] {
        name([
            (DEREncoder.objectIdentifier([2, 5, 4, 10]), organization),
            (DEREncoder.objectIdentifier([2, 5, 4, 3]), commonName),
        ])
    }

    /// The certificate in DER, signed by a key.
    func signed(by key: TestSigningKey) throws -> [UInt8] {
        try signed(key.algorithm) { try key.signature(of: $0) }
    }
}

/// What has to be known of a root to issue certificates under it.
struct TestRoot {
    /// The subject, a Name in DER.
    var subject: [UInt8]
    /// The SubjectPublicKeyInfo in DER.
    var publicKeyInfo: [UInt8]

    /// Reads a certificate in DER. The signature is not checked: the gateway does that.
    init(der: [UInt8]) throws(DERError) {
        let copy = ContiguousArray(der)
        let bytes = copy.span
        var outer = DERCursor(0..<bytes.count)
        var certificate = DERCursor(try outer.next(.sequence, in: bytes))
        try outer.finish()
        var fields = DERCursor(try certificate.next(.sequence, in: bytes))
        _ = try fields.next(.explicit(0), in: bytes)
        _ = try fields.next(.integer, in: bytes)
        // Signature algorithm, issuer, validity.
        for _ in 0..<3 { _ = try fields.next(.sequence, in: bytes) }
        subject = DEREncoder.element(.sequence, Array(der[try fields.next(.sequence, in: bytes)]))
        publicKeyInfo = DEREncoder.element(
            .sequence,
            Array(der[try fields.next(.sequence, in: bytes)])
        )
    }
}

/// A key that signs certificates.
enum TestSigningKey: Sendable {
    case p256(P256.Signing.PrivateKey)
    case p384(P384.Signing.PrivateKey)

    /// A random key on P-256.
    static func random() -> TestSigningKey { .p256(P256.Signing.PrivateKey()) }

    /// Reads PEM, with "PRIVATE KEY" or "EC PRIVATE KEY"; `nil` for another key than one on P-256
    /// or P-384.
    init?(pem: String) {
        if let key = try? P256.Signing.PrivateKey(pemRepresentation: pem) {
            self = .p256(key)
        } else if let key = try? P384.Signing.PrivateKey(pemRepresentation: pem) {
            self = .p384(key)
        } else {
            return nil
        }
    }

    /// The key in PEM.
    var pem: String {
        switch self {
        case .p256(let key): key.pemRepresentation
        case .p384(let key): key.pemRepresentation
        }
    }

    /// The SubjectPublicKeyInfo of the public half, in DER.
    var publicKeyInfo: [UInt8] {
        switch self {
        case .p256(let key): Array(key.publicKey.derRepresentation)
        case .p384(let key): Array(key.publicKey.derRepresentation)
        }
    }

    /// The AlgorithmIdentifier of its signatures: ecdsa-with-SHA256 or ecdsa-with-SHA384 (RFC 5758
    /// §3.2).
    var algorithm: [UInt8] {
        switch self {
        case .p256: DEREncoder.sequence([DEREncoder.objectIdentifier([1, 2, 840, 10045, 4, 3, 2])])
        case .p384: DEREncoder.sequence([DEREncoder.objectIdentifier([1, 2, 840, 10045, 4, 3, 3])])
        }
    }

    /// A signature in DER.
    func signature(of bytes: [UInt8]) throws -> [UInt8] {
        switch self {
        case .p256(let key): Array(try key.signature(for: bytes).derRepresentation)
        case .p384(let key): Array(try key.signature(for: bytes).derRepresentation)
        }
    }
}
