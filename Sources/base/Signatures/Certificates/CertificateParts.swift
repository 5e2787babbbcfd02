internal import Encodings

/// A certificate's DER in its parts.
///
///     Certificate = SEQUENCE { tbs, algorithm, BIT STRING signature }
///     tbs = SEQUENCE { [0] version, serial, algorithm, issuer, validity, subject, key,
///                      [1] and [2] unique ids, [3] extensions }
///
/// RFC 5280 §4.1.
struct CertificateParts {
    let validity: (notBefore: UnixTime, notAfter: UnixTime)
    let serial: [UInt8]
    let issuer: CertificateName
    let subject: CertificateName
    let subjectKey: (algorithm: [UInt8], bits: [UInt8])
    let extensions: [X509Certificate.Extension]
    let signed: [UInt8]
    let algorithms: (inner: [UInt8], outer: [UInt8])
    let signature: [UInt8]

    init(_ der: Span<UInt8>) throws(DERError) {
        var outer = DERCursor(0..<der.count)
        var certificate = DERCursor(try outer.next(.sequence, in: der))
        try outer.finish()
        let start = certificate.offset
        var body = DERCursor(try certificate.next(.sequence, in: der))
        signed = der.copy(start..<certificate.offset)
        let outerAlgorithm = der.copy(try certificate.next(.sequence, in: der))
        signature = try certificate.wholeBytes(in: der)
        try certificate.finish()

        let isVersion3 = try Self.isVersion3(&body, in: der)
        serial = try body.longInteger(in: der)
        algorithms = (der.copy(try body.next(.sequence, in: der)), outerAlgorithm)
        issuer = try CertificateName(&body, in: der)
        validity = try Self.validity(&body, in: der)
        subject = try CertificateName(&body, in: der)
        var key = DERCursor(try body.next(.sequence, in: der))
        let keyAlgorithm = der.copy(try key.next(.sequence, in: der))
        subjectKey = (keyAlgorithm, try key.wholeBytes(in: der))
        try key.finish()
        extensions = try Self.extensions(&body, in: der, isVersion3: isVersion3)
    }

    /// `[0] EXPLICIT INTEGER`, which version 1 leaves out; 2 is version 3.
    private static func isVersion3(
        _ cursor: inout DERCursor,
        in der: Span<UInt8>
    ) throws(DERError) -> Bool {
        let start = cursor
        let element = try cursor.next(in: der)
        guard element.tag == .explicit(0) else {
            cursor = start
            return false
        }
        var inner = DERCursor(element.content)
        let version = try inner.smallInteger(in: der)
        try inner.finish()
        guard version <= 2 else { throw DERError(.badInteger, at: element.content.lowerBound) }
        return version == 2
    }

    private static func validity(
        _ cursor: inout DERCursor,
        in der: Span<UInt8>
    ) throws(DERError) -> (notBefore: UnixTime, notAfter: UnixTime) {
        var period = DERCursor(try cursor.next(.sequence, in: der))
        let notBefore = try time(&period, in: der)
        let notAfter = try time(&period, in: der)
        try period.finish()
        return (notBefore, notAfter)
    }

    private static func time(
        _ cursor: inout DERCursor,
        in der: Span<UInt8>
    ) throws(DERError) -> UnixTime {
        let element = try cursor.next(in: der)
        guard element.tag == .utcTime || element.tag == .generalizedTime,
            let time = UnixTime(
                certificateTime: der.extracting(element.content),
                isTwoDigitYear: element.tag == .utcTime
            )
        else { throw DERError(.unexpectedTag, at: element.content.lowerBound) }
        return time
    }

    /// `[3] EXPLICIT SEQUENCE OF SEQUENCE { id, BOOLEAN critical, OCTET STRING value }`, and before
    /// it the unique ids, which say nothing.
    private static func extensions(
        _ cursor: inout DERCursor,
        in der: Span<UInt8>,
        isVersion3: Bool
    ) throws(DERError) -> [X509Certificate.Extension] {
        var extensions: [X509Certificate.Extension] = []
        for number in 1...3 where !cursor.isAtEnd {
            let start = cursor
            let element = try cursor.next(in: der)
            if number < 3, element.tag == .implicit(UInt32(number)) { continue }
            guard element.tag == .explicit(3), isVersion3 else {
                cursor = start
                continue
            }
            var outer = DERCursor(element.content)
            var list = DERCursor(try outer.next(.sequence, in: der))
            try outer.finish()
            while !list.isAtEnd {
                var entry = DERCursor(try list.next(.sequence, in: der))
                extensions.append(try Self.entry(&entry, in: der))
                try entry.finish()
            }
        }
        try cursor.finish()
        return extensions
    }

    private static func entry(
        _ cursor: inout DERCursor,
        in der: Span<UInt8>
    ) throws(DERError) -> X509Certificate.Extension {
        let oid = der.copy(try cursor.next(.objectIdentifier, in: der))
        var element = try cursor.next(in: der)
        var isCritical = false
        if element.tag == .boolean {
            guard element.content.count == 1 else {
                throw DERError(.unexpectedTag, at: element.content.lowerBound)
            }
            isCritical = der[element.content.lowerBound] != 0
            element = try cursor.next(in: der)
        }
        guard element.tag == .octetString else {
            throw DERError(.unexpectedTag, at: element.content.lowerBound)
        }
        let value = der.copy(element.content)
        return X509Certificate.Extension(oid: oid, isCritical: isCritical, value: value)
    }
}

extension DERCursor {
    /// Reads the next element, an INTEGER of any length, minimal (X.690 §8.3.2).
    mutating func longInteger(in der: Span<UInt8>) throws(DERError) -> [UInt8] {
        let bytes = der.copy(try next(.integer, in: der))
        let isPadded =
            bytes.count > 1
            && (bytes[0] == 0 && bytes[1] < 0x80 || bytes[0] == 0xFF && bytes[1] >= 0x80)
        guard !bytes.isEmpty, !isPadded else { throw DERError(.badInteger, at: offset) }
        return bytes
    }

    /// Reads the next element, a BIT STRING of whole bytes.
    mutating func wholeBytes(in der: Span<UInt8>) throws(DERError) -> [UInt8] {
        let content = try next(.bitString, in: der)
        guard let first = content.first, der[first] == 0 else {
            throw DERError(.unexpectedTag, at: content.lowerBound)
        }
        return der.copy(content.dropFirst())
    }
}
