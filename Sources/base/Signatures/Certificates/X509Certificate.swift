internal import Encodings

/// An X.509 certificate (RFC 5280), read and not judged: only a path to an anchor makes its
/// contents credible.
///
/// One reader serves Apple's attestations and receipts and Android's chains. It reads the DER by
/// `DERCursor` and leaves the values of extensions alone: genuine phones have some that can't be
/// decoded. ``path(through:to:at:)`` has the rules of Apple's chains; `KeyAttestation` has those of
/// Android's, which break RFC 5280.
public final class X509Certificate: Sendable {
    /// The longest certificate that is read. App Attest's have 0.5…1.1 KiB.
    public static let bytesMax = 16 * 1024

    /// An extension, whose value is not decoded.
    package struct Extension: Sendable {
        /// The arcs of its object identifier, as ``OID/content`` has them.
        package let oid: [UInt8]
        /// Whether a verifier that does not know it must refuse the certificate.
        package let isCritical: Bool
        /// The bytes inside the OCTET STRING.
        package let value: [UInt8]
    }

    /// The whole certificate in DER.
    public let der: [UInt8]
    /// The first moment of validity.
    public let notBefore: UnixTime
    /// The last second of validity (RFC 5280 §4.1.2.5: inclusive).
    public let notAfter: UnixTime

    /// The bytes of the serial number, big-endian.
    package let serial: [UInt8]
    /// The name of the authority that signed it.
    package let issuer: CertificateName
    /// The name of the owner of the key.
    package let subject: CertificateName
    /// The content of the key's AlgorithmIdentifier, and the bytes of the BIT STRING.
    package let subjectKey: (algorithm: [UInt8], bits: [UInt8])
    /// The extensions in their order.
    package let extensions: [Extension]
    /// What the issuer has signed: a part of the DER.
    package let signed: [UInt8]
    /// The content of both AlgorithmIdentifiers: inside of what is signed, and outside.
    let algorithms: (inner: [UInt8], outer: [UInt8])
    /// The issuer's signature.
    package let signature: [UInt8]

    /// Reads one certificate in DER with nothing after it. Throws `.malformed`.
    public init(der: [UInt8]) throws(X509CertificateError) {
        guard der.count <= Self.bytesMax else {
            throw X509CertificateError(.malformed, "\(der.count) bytes are too many")
        }
        let parts: CertificateParts
        do throws(DERError) {
            parts = try CertificateParts(ContiguousArray(der).span)
        } catch {
            throw X509CertificateError(
                .malformed,
                "not one DER certificate of RFC 5280: \(error.reason.rawValue) at \(error.offset)"
            )
        }
        self.der = der
        (notBefore, notAfter) = parts.validity
        (serial, issuer, subject) = (parts.serial, parts.issuer, parts.subject)
        (subjectKey, extensions) = (parts.subjectKey, parts.extensions)
        (signed, algorithms, signature) = (parts.signed, parts.algorithms, parts.signature)
    }

    /// Reads one certificate in DER with nothing after it. Throws `.malformed`.
    public convenience init(der: Span<UInt8>) throws(X509CertificateError) {
        try self.init(der: der.withUnsafeBufferPointer { Array($0) })
    }

    /// Reads one certificate in DER, from `Data` or any other bytes. Throws `.malformed`.
    public convenience init(der: some Sequence<UInt8>) throws(X509CertificateError) {
        try self.init(der: Array(der))
    }

    /// SHA-256 of the DER, in which form authorities publish certificates for pinning.
    package var fingerprint: SHA256Digest { SHA256.digest(of: der) }

    /// The subject's key in DER, as the certificate has it: its SubjectPublicKeyInfo.
    package var subjectPublicKeyInfo: [UInt8] {
        DEREncoder.sequence([
            DEREncoder.element(.sequence, subjectKey.algorithm),
            DEREncoder.bitString(subjectKey.bits),
        ])
    }

    /// The values of an extension, one for each time that it is there.
    package func values(of oid: OID) -> [[UInt8]] {
        extensions.filter { $0.oid == oid.content }.map(\.value)
    }

    /// The bytes inside an extension's OCTET STRING; `nil` unless the certificate has the extension
    /// exactly once.
    package func extensionBytes(_ oid: OID) -> [UInt8]? {
        let values = values(of: oid)
        return values.count == 1 ? values[0] : nil
    }

    /// What is wrong with the dates at a moment: `.notYetValid` or `.expired`. Both ends are
    /// valid, to the second (RFC 5280 §4.1.2.5).
    package func fault(at time: UnixTime) -> X509CertificateError? {
        guard notBefore.seconds <= time.seconds else {
            return X509CertificateError(
                .notYetValid,
                "valid from \(notBefore.iso8601), judged at \(time.iso8601)"
            )
        }
        guard time.seconds <= notAfter.seconds else {
            return X509CertificateError(
                .expired,
                "valid to \(notAfter.iso8601), judged at \(time.iso8601)"
            )
        }
        return nil
    }
}

extension X509Certificate: Codable {
    /// Reads base64 of the DER.
    public convenience init(from decoder: any Decoder) throws {
        let der: [UInt8] = try decoder.value(otherwise: "not base64 of a certificate") {
            Base64.decode($0)
        }
        try self.init(der: der)
    }

    /// Writes base64 of the DER.
    public func encode(to encoder: any Encoder) throws {
        try encoder.encode(text: Base64.text(der))
    }
}

/// Why a certificate, or a path of certificates, is refused.
public struct X509CertificateError: Error, Sendable, Equatable {
    /// What is wrong, for code.
    @nonexhaustive
    public enum Reason: String, Sendable, CaseIterable {
        /// Not one DER certificate, or longer than ``X509Certificate/bytesMax``.
        case malformed
        /// No path of valid signatures leads to one of the anchors.
        case untrusted
        /// The path is right, and a certificate of it is no longer valid.
        case expired
        /// The path is right, and a certificate of it is not valid yet.
        case notYetValid
    }

    /// What is wrong, for code.
    public let reason: Reason
    /// What is wrong, for people. Not compared.
    public let detail: String

    init(_ reason: Reason, _ detail: String) {
        self.reason = reason
        self.detail = detail
    }

    /// Whether two errors have the same reason.
    public static func == (left: Self, right: Self) -> Bool { left.reason == right.reason }
}
