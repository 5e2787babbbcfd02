internal import Encodings

/// A CMS SignedData as code without OpenSSL reads it.
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
enum PlainMessage: MessageReading {
    static func parts(ber bytes: Span<UInt8>) -> SignedMessage.Parts? {
        do throws(DERError) {
            let definite = try BER.definite(bytes)
            return try parts(ContiguousArray(definite).span)
        } catch {
            return nil
        }
    }

    private static let signedData = OID("1.2.840.113549.1.7.2").content
    private static let data = OID("1.2.840.113549.1.7.1").content
    private static let sha256 = OID("2.16.840.1.101.3.4.2.1").content
    private static let ecdsaWithSHA256 = OID("1.2.840.10045.4.3.2").content

    private static func parts(_ der: Span<UInt8>) throws(DERError) -> SignedMessage.Parts? {
        var outer = DERCursor(0..<der.count)
        var message = DERCursor(try outer.next(.sequence, in: der))
        try outer.finish()
        guard der.copy(try message.next(.objectIdentifier, in: der)) == signedData else {
            return nil
        }
        var tagged = DERCursor(try message.next(.explicit(0), in: der))
        try message.finish()
        var body = DERCursor(try tagged.next(.sequence, in: der))
        try tagged.finish()

        _ = try PlainCertificate.integer(&body, in: der)
        _ = try body.next(.set, in: der)
        var inner = DERCursor(try body.next(.sequence, in: der))
        guard der.copy(try inner.next(.objectIdentifier, in: der)) == data else { return nil }
        var explicit = DERCursor(try inner.next(.explicit(0), in: der))
        try inner.finish()
        let content = der.copy(try explicit.next(.octetString, in: der))
        try explicit.finish()
        guard let certificates = try certificates(&body, in: der) else { return nil }
        var signers = DERCursor(try signers(&body, in: der))
        try body.finish()
        var signer = DERCursor(try signers.next(.sequence, in: der))
        // The signature of a second signer would not be verified.
        try signers.finish()
        return try parts(signer: &signer, in: der, content: content, certificates: certificates)
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

    /// `[0] IMPLICIT SET OF` certificates in DER. Forms other than X.509 are skipped. `nil` when
    /// there is none, or more than the limit.
    private static func certificates(
        _ cursor: inout DERCursor,
        in der: Span<UInt8>
    ) throws(DERError) -> [[UInt8]]? {
        var set = DERCursor(try cursor.next(.explicit(0), in: der))
        var certificates: [[UInt8]] = []
        while !set.isAtEnd {
            let start = set.offset
            let element = try set.next(in: der)
            guard element.tag == .sequence else { continue }
            guard certificates.count < SignedMessage.certificatesMax else { return nil }
            certificates.append(der.copy(start..<set.offset))
        }
        return certificates.isEmpty ? nil : certificates
    }

    private static func parts(
        signer cursor: inout DERCursor,
        in der: Span<UInt8>,
        content: [UInt8],
        certificates: [[UInt8]]
    ) throws(DERError) -> SignedMessage.Parts? {
        _ = try PlainCertificate.integer(&cursor, in: der)
        let name = try name(&cursor, in: der)
        var algorithm = DERCursor(try cursor.next(.sequence, in: der))
        let digest = der.copy(try algorithm.next(.objectIdentifier, in: der))
        var element = try cursor.next(in: der)
        if element.tag == .explicit(0) { element = try cursor.next(in: der) }
        guard element.tag == .sequence else {
            throw DERError(.unexpectedTag, at: element.content.lowerBound)
        }
        algorithm = DERCursor(element.content)
        let kind = der.copy(try algorithm.next(.objectIdentifier, in: der))
        let signature = der.copy(try cursor.next(.octetString, in: der))
        if !cursor.isAtEnd { _ = try cursor.next(.explicit(1), in: der) }
        try cursor.finish()
        let read = certificates.map { PlainCertificate(der: ContiguousArray($0).span) }
        guard !read.contains(where: { $0 == nil }) else { return nil }
        return SignedMessage.Parts(
            content: content,
            signature: signature,
            certificates: certificates,
            signer: read.firstIndex { $0.map(name.isName) ?? false },
            isECDSAWithSHA256: digest == sha256 && kind == ecdsaWithSHA256
        )
    }

    /// How a signer's entry names the certificate.
    private enum SignerName {
        case serial([UInt8], of: [UInt8])
        case keyIdentifier([UInt8])

        func isName(of certificate: PlainCertificate) -> Bool {
            switch self {
            case .serial(let serial, let issuer):
                certificate.serial == serial && certificate.issuer == issuer
            case .keyIdentifier(let identifier): (try? certificate.ownIdentifier) == identifier
            }
        }
    }

    private static func name(
        _ cursor: inout DERCursor,
        in der: Span<UInt8>
    ) throws(DERError) -> SignerName {
        let element = try cursor.next(in: der)
        switch element.tag {
        case .sequence:
            var inner = DERCursor(element.content)
            let issuer = try PlainCertificate.name(&inner, in: der)
            let serial = try PlainCertificate.integer(&inner, in: der)
            try inner.finish()
            return .serial(serial, of: issuer)
        case DERTag(bits: 0x80, number: 0): return .keyIdentifier(der.copy(element.content))
        default: throw DERError(.unexpectedTag, at: element.content.lowerBound)
        }
    }
}

/// Reads BER (X.690 §8) and writes it again as DER: lengths are definite and minimal, and each
/// OCTET STRING is in one piece.
///
/// Receipts are in BER. Parts that are in DER already, such as a receipt's certificate, stay as
/// they are.
enum BER {
    /// The deepest nesting that is read. Receipts have eleven levels.
    static let depthMax = 24

    /// The value with definite lengths. Throws where the bytes are not one element, or have a form
    /// that no receipt has: tags above 30, or constructed strings of other kinds.
    static func definite(_ bytes: Span<UInt8>) throws(DERError) -> [UInt8] {
        var offset = 0
        let element = try element(in: bytes, at: &offset, end: bytes.count, depth: 0)
        guard offset == bytes.count else { throw DERError(.trailingBytes, at: offset) }
        return element
    }

    private static func element(
        in bytes: Span<UInt8>,
        at offset: inout Int,
        end: Int,
        depth: Int
    ) throws(DERError) -> [UInt8] {
        let start = offset
        guard depth < depthMax else { throw DERError(.tooMany, at: start) }
        let (tag, count) = try header(in: bytes, at: &offset, end: end)
        guard tag.bits & 0x20 != 0 else {
            guard let count else { throw DERError(.lengthNotDefinite, at: start) }
            let content = bytes.copy(offset..<(offset + count))
            offset += count
            return DEREncoder.element(tag, content)
        }
        // A constructed OCTET STRING becomes the bytes of its pieces, which are OCTET STRINGs too.
        let isString = tag == DERTag(bits: 0x20, number: DERTag.octetString.number)
        var content: [UInt8] = []
        let limit = count.map { offset + $0 } ?? end
        while count == nil || offset < limit {
            if count == nil, limit - offset >= 2, bytes[offset] == 0, bytes[offset + 1] == 0 {
                offset += 2
                break
            }
            let place = offset
            let part = try element(in: bytes, at: &offset, end: limit, depth: depth + 1)
            guard isString else {
                content += part
                continue
            }
            var cursor = DERCursor(0..<part.count)
            let whole = ContiguousArray(part)
            guard let piece = try? cursor.next(.octetString, in: whole.span) else {
                throw DERError(.unexpectedTag, at: place)
            }
            content += part[piece]
        }
        return DEREncoder.element(isString ? .octetString : tag, content)
    }

    /// Tag and length; no count for a length that is not definite.
    private static func header(
        in bytes: Span<UInt8>,
        at offset: inout Int,
        end: Int
    ) throws(DERError) -> (DERTag, count: Int?) {
        let start = offset
        guard end - offset >= 2 else { throw DERError(.truncated, at: start) }
        let tag = DERTag(bits: bytes[offset] & 0xE0, number: UInt32(bytes[offset] & 0x1F))
        guard tag.number < 31, bytes[offset] != 0 else { throw DERError(.unexpectedTag, at: start) }
        let first = bytes[offset + 1]
        offset += 2
        guard first != 0x80 else { return (tag, nil) }
        var count = Int(first)
        if first > 0x80 {
            let digits = Int(first & 0x7F)
            guard digits <= 4 else { throw DERError(.lengthTooLarge, at: start) }
            guard end - offset >= digits else { throw DERError(.truncated, at: start) }
            count = 0
            for _ in 0..<digits {
                count = count << 8 | Int(bytes[offset])
                offset += 1
            }
        }
        guard end - offset >= count else { throw DERError(.truncated, at: start) }
        return (tag, count)
    }
}
