internal import Encodings

/// The answers that a certificate gives. OpenSSL reads certificates in the gateway,
/// `PlainCertificate` elsewhere.
protocol CertificateReading: Sendable {
    /// Reads one certificate in DER with nothing after it; `nil` when it is none.
    init?(der: Span<UInt8>)

    /// The first moment of validity, and the last second.
    var validity: (notBefore: UnixTime, notAfter: UnixTime) { get }
    /// The subject's key; `nil` when it is not an uncompressed point on P-256.
    var p256PublicKey: P256PublicKey? { get }

    /// The bytes inside an extension's OCTET STRING; `nil` unless the certificate has the extension
    /// exactly once.
    func extensionBytes(_ oid: OID) -> [UInt8]?
    /// The first value of an attribute of the subject; `nil` when there is none.
    func subject(_ field: X509Certificate.SubjectField) -> String?
    /// Whether this certificate's key made a signature (DER) over a digest; `nil` for a key that is
    /// none for ECDSA.
    func isValidSignature(_ signature: [UInt8], digest: SHA256Digest) -> Bool?
    /// The path from this certificate to one of the anchors, whenever it was valid: this
    /// certificate first, the anchor last. Throws `.untrusted`.
    func path(
        through intermediates: [Self],
        to anchors: [Self]
    ) throws(X509CertificateError) -> [CertificatePlace]
}

/// Where a certificate of a path was found.
enum CertificatePlace: Hashable {
    /// It is the certificate at the beginning of the path.
    case leaf
    /// It is the intermediate with this index.
    case intermediate(Int)
    /// It is the anchor with this index.
    case anchor(Int)
}

/// An X.509 certificate (RFC 5280), read and not judged: only a path to an anchor makes its
/// contents credible.
public final class X509Certificate: Sendable {
    #if Gateway && os(Linux)
        typealias Reading = OpenSSLCertificate
    #else
        typealias Reading = PlainCertificate
    #endif

    /// The longest certificate that is read. App Attest's have 0.5…1.1 KiB.
    public static let bytesMax = 16 * 1024

    /// The whole certificate in DER.
    public let der: [UInt8]
    /// The first moment of validity.
    public let notBefore: UnixTime
    /// The last second of validity (RFC 5280 §4.1.2.5: inclusive).
    public let notAfter: UnixTime

    let reading: Reading

    /// Reads one certificate in DER with nothing after it. Throws `.malformed`.
    public convenience init(der: Span<UInt8>) throws(X509CertificateError) {
        try self.init(der: der.withUnsafeBufferPointer { Array($0) })
    }

    /// Reads one certificate in DER with nothing after it. Throws `.malformed`.
    public init(der: [UInt8]) throws(X509CertificateError) {
        guard der.count <= Self.bytesMax else {
            throw X509CertificateError(.malformed, "\(der.count) bytes are too many")
        }
        guard let reading = Reading(der: ContiguousArray(der).span) else {
            throw X509CertificateError(.malformed, "not one DER certificate of RFC 5280")
        }
        self.der = der
        self.reading = reading
        (notBefore, notAfter) = reading.validity
    }

    /// Reads one certificate in DER, from `Data` or any other bytes. Throws `.malformed`.
    public convenience init(der: some Sequence<UInt8>) throws(X509CertificateError) {
        try self.init(der: Array(der))
    }

    /// SHA-256 of the DER, in which form authorities publish certificates for pinning.
    package var fingerprint: SHA256Digest { SHA256.digest(of: der) }

    /// The subject's key; `nil` when it is not an uncompressed point on P-256.
    public var p256PublicKey: P256PublicKey? { reading.p256PublicKey }

    /// The bytes inside an extension's OCTET STRING; `nil` unless the certificate has the extension
    /// exactly once.
    package func extensionBytes(_ oid: OID) -> [UInt8]? { reading.extensionBytes(oid) }

    /// The attributes of a subject that certificates of App Attest have.
    package enum SubjectField: Sendable {
        /// CN.
        case commonName
        /// O.
        case organization
        /// OU.
        case organizationalUnit
    }

    /// The first value of an attribute of the subject; `nil` when there is none.
    package func subject(_ field: SubjectField) -> String? { reading.subject(field) }
}

extension X509Certificate {
    /// The most certificates that are examined while a path is built.
    static let pathCandidatesMax = 16

    /// The path from this certificate to one of the anchors, all of it valid at `time`: this
    /// certificate first, the anchor last.
    ///
    /// Exactly the given anchors are trusted, and they have to be self-signed: the system's store
    /// is not asked. No purpose and no name is asked for: App Attest's certificates carry none that
    /// OpenSSL knows. Issuers have to be authorities (basicConstraints, keyUsage), and critical
    /// extensions that are not known make a path bad.
    ///
    /// Throws `.untrusted`, then `.notYetValid` or `.expired` for the certificate nearest to the
    /// anchor that is. Validity is judged here, to the second and inclusive of both ends as RFC
    /// 5280 §4.1.2.5 says; OpenSSL refuses the last second.
    package func path(
        through intermediates: [X509Certificate],
        to anchors: [X509Certificate],
        at time: UnixTime
    ) throws(X509CertificateError) -> [X509Certificate] {
        guard intermediates.count <= Self.pathCandidatesMax, anchors.count <= Self.pathCandidatesMax
        else { throw X509CertificateError(.untrusted, "too many certificates") }
        let places = try reading.path(
            through: intermediates.map(\.reading),
            to: anchors.map(\.reading)
        )
        let path = places.map { place in
            switch place {
            case .leaf: self
            case .intermediate(let index): intermediates[index]
            case .anchor(let index): anchors[index]
            }
        }
        for certificate in path.reversed() {
            guard certificate.notBefore.seconds <= time.seconds else {
                throw X509CertificateError(
                    .notYetValid,
                    "valid from \(certificate.notBefore.iso8601), judged at \(time.iso8601)"
                )
            }
            guard time.seconds <= certificate.notAfter.seconds else {
                throw X509CertificateError(
                    .expired,
                    "valid to \(certificate.notAfter.iso8601), judged at \(time.iso8601)"
                )
            }
        }
        return path
    }
}

extension X509Certificate {
    /// The longest PEM file that is read.
    package static let pemBytesMax = 256 * 1024

    private static let pemBegin = "-----BEGIN CERTIFICATE-----"
    private static let pemEnd = "-----END CERTIFICATE-----"

    /// The certificates of a PEM text (RFC 7468), in order; other text in it is skipped. Throws
    /// `.malformed` when there is none, or more than ``pathCandidatesMax``, or one that cannot be
    /// read.
    public static func certificates(pem: String) throws(X509CertificateError) -> [X509Certificate] {
        try ders(pem: pem).map { der throws(X509CertificateError) in
            try X509Certificate(der: der)
        }
    }

    /// A certificate that the program contains, in PEM.
    package static func pinned(_ pem: String) -> X509Certificate {
        do {
            return try certificates(pem: pem)[0]
        } catch {
            preconditionFailure("X509Certificate: a pinned certificate cannot be read")
        }
    }

    /// The bytes of the certificates of a PEM text, whatever they are. See
    /// ``certificates(pem:)``.
    package static func ders(pem: String) throws(X509CertificateError) -> [[UInt8]] {
        guard pem.utf8.count <= pemBytesMax else {
            throw X509CertificateError(.malformed, "\(pem.utf8.count) bytes of PEM are too many")
        }
        var ders: [[UInt8]] = []
        // The base64 of the certificate that has begun.
        var text: String?
        for line in pem.split(whereSeparator: \.isNewline) {
            if line.hasPrefix(pemBegin) {
                guard text == nil, ders.count < pathCandidatesMax else {
                    throw X509CertificateError(.malformed, "PEM without an end, or too much of it")
                }
                text = ""
            } else if line.hasPrefix(pemEnd), let base64 = text {
                guard let der = Base64.decode(base64) else {
                    throw X509CertificateError(.malformed, "PEM that is no base64")
                }
                ders.append(der)
                text = nil
            } else {
                text?.append(contentsOf: line.filter { !$0.isWhitespace })
            }
        }
        guard text == nil, !ders.isEmpty else {
            throw X509CertificateError(.malformed, "no PEM certificate, or one without an end")
        }
        return ders
    }

    /// The certificate in PEM: lines of 64 characters (RFC 7468 §2).
    public var pem: String {
        let text = Array(Base64.encode(der))
        let lines = stride(from: 0, to: text.count, by: 64).map { start in
            String(decoding: text[start..<min(start + 64, text.count)], as: UTF8.self)
        }
        return ([Self.pemBegin] + lines + [Self.pemEnd]).joined(separator: "\n") + "\n"
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
