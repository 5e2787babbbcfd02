internal import Encodings

/// The parts of a CMS SignedData, in DER as ``BER`` writes it.
///
///     SEQUENCE { signedData, [0] SEQUENCE {
///         INTEGER version, SET digestAlgorithms, SEQUENCE { data, [0] OCTET STRING content },
///         [0] certificates, [1] revocations, SET OF signer } }
///     signer = SEQUENCE {
///         INTEGER version, (SEQUENCE { issuer, serial } or [0] key identifier),
///         SEQUENCE digestAlgorithm, [0] signed attributes,
///         SEQUENCE signatureAlgorithm, OCTET STRING signature, [1] attributes }
///
/// RFC 5652 §5.1 and §5.3.
struct MessageParts {
    let content: [UInt8]
    /// Each in DER.
    let certificates: [[UInt8]]
    let signer: SignerName
    let signature: [UInt8]
    let isECDSAWithSHA256: Bool

    private static let signedData = OID("1.2.840.113549.1.7.2").content
    private static let data = OID("1.2.840.113549.1.7.1").content
    private static let sha256 = OID("2.16.840.1.101.3.4.2.1").content
    private static let ecdsaWithSHA256 = OID("1.2.840.10045.4.3.2").content

    init(_ der: Span<UInt8>) throws(DERError) {
        var outer = DERCursor(0..<der.count)
        var message = DERCursor(try outer.next(.sequence, in: der))
        try outer.finish()
        try message.expect(Self.signedData, in: der)
        var tagged = DERCursor(try message.next(.explicit(0), in: der))
        try message.finish()
        var body = DERCursor(try tagged.next(.sequence, in: der))
        try tagged.finish()

        _ = try body.longInteger(in: der)
        _ = try body.next(.set, in: der)
        var inner = DERCursor(try body.next(.sequence, in: der))
        try inner.expect(Self.data, in: der)
        var explicit = DERCursor(try inner.next(.explicit(0), in: der))
        try inner.finish()
        content = der.copy(try explicit.next(.octetString, in: der))
        try explicit.finish()
        certificates = try Self.certificates(&body, in: der)
        var signers = DERCursor(try Self.signers(&body, in: der))
        try body.finish()
        var entry = DERCursor(try signers.next(.sequence, in: der))
        // The signature of a second signer would not be verified.
        try signers.finish()

        _ = try entry.longInteger(in: der)
        signer = try SignerName(&entry, in: der)
        var algorithm = DERCursor(try entry.next(.sequence, in: der))
        let digest = der.copy(try algorithm.next(.objectIdentifier, in: der))
        var element = try entry.next(in: der)
        if element.tag == .explicit(0) { element = try entry.next(in: der) }
        guard element.tag == .sequence else {
            throw DERError(.unexpectedTag, at: element.content.lowerBound)
        }
        algorithm = DERCursor(element.content)
        let kind = der.copy(try algorithm.next(.objectIdentifier, in: der))
        isECDSAWithSHA256 = digest == Self.sha256 && kind == Self.ecdsaWithSHA256
        signature = der.copy(try entry.next(.octetString, in: der))
        if !entry.isAtEnd { _ = try entry.next(.explicit(1), in: der) }
        try entry.finish()
    }

    /// The set of signers, after the certificates and what may come between the two.
    private static func signers(
        _ cursor: inout DERCursor,
        in der: Span<UInt8>
    ) throws(DERError) -> Range<Int> {
        let element = try cursor.next(in: der)
        if element.tag == .explicit(1) { return try cursor.next(.set, in: der) }
        guard element.tag == .set else {
            throw DERError(.unexpectedTag, at: element.content.lowerBound)
        }
        return element.content
    }

    /// `[0] IMPLICIT SET OF` certificates, of which there is one at least. Forms other than X.509
    /// are skipped.
    private static func certificates(
        _ cursor: inout DERCursor,
        in der: Span<UInt8>
    ) throws(DERError) -> [[UInt8]] {
        var set = DERCursor(try cursor.next(.explicit(0), in: der))
        var certificates: [[UInt8]] = []
        while !set.isAtEnd {
            let start = set.offset
            let element = try set.next(in: der)
            guard element.tag == .sequence else { continue }
            guard certificates.count < SignedMessage.certificatesMax else {
                throw DERError(.tooMany, at: start)
            }
            certificates.append(der.copy(start..<set.offset))
        }
        guard !certificates.isEmpty else { throw DERError(.truncated, at: set.offset) }
        return certificates
    }

    /// How a signer's entry names the certificate.
    enum SignerName {
        case serial([UInt8], of: CertificateName)
        case keyIdentifier([UInt8])

        init(_ cursor: inout DERCursor, in der: Span<UInt8>) throws(DERError) {
            let element = try cursor.next(in: der)
            switch element.tag {
            case .sequence:
                var inner = DERCursor(element.content)
                let issuer = try CertificateName(&inner, in: der)
                self = .serial(try inner.longInteger(in: der), of: issuer)
                try inner.finish()
            case .implicit(0): self = .keyIdentifier(der.copy(element.content))
            default: throw DERError(.unexpectedTag, at: element.content.lowerBound)
            }
        }

        func isName(of certificate: X509Certificate) -> Bool {
            switch self {
            case .serial(let serial, let issuer):
                certificate.serial == serial && certificate.issuer == issuer
            case .keyIdentifier(let identifier): (try? certificate.keyIdentifier) == identifier
            }
        }
    }
}

extension DERCursor {
    /// Reads the next element, which must be this object identifier.
    fileprivate mutating func expect(
        _ identifier: [UInt8],
        in der: Span<UInt8>
    ) throws(DERError) {
        let start = offset
        guard der.copy(try next(.objectIdentifier, in: der)) == identifier else {
            throw DERError(.unexpectedTag, at: start)
        }
    }
}
