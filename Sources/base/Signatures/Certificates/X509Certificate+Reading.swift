internal import Crypto
package import Encodings

/// A certificate as it is read where OpenSSL is not, and in KeyAttestation everywhere: the DER by
/// `DERCursor`, signatures by swift-crypto.
///
///     Certificate = SEQUENCE { tbs, algorithm, BIT STRING signature }
///     tbs = SEQUENCE { [0] version, serial, algorithm, issuer, validity, subject, key,
///                      [1] and [2] unique ids, [3] extensions }
///
/// RFC 5280 §4.1. What is known is what Apple's authorities use: ECDSA with SHA-256 or SHA-384 by
/// keys on P-256 and P-384, and names that are equal byte by byte. OpenSSL knows more; a
/// certificate that needs it is refused here.
package struct PlainCertificate: CertificateReading {
    package struct Extension {
        package let oid: [UInt8]
        package let isCritical: Bool
        package let value: [UInt8]
    }

    /// A key of an issuer. Signatures by other keys are not accepted.
    enum Key {
        case p256(Crypto.P256.Signing.PublicKey)
        case p384(Crypto.P384.Signing.PublicKey)
    }

    package let der: [UInt8]
    package let validity: (notBefore: UnixTime, notAfter: UnixTime)
    /// What the issuer has signed: a part of the DER.
    package let signed: [UInt8]
    /// The algorithm, once inside of what is signed and once outside: each the content of its
    /// SEQUENCE.
    package let algorithms: (inner: [UInt8], outer: [UInt8])
    /// The issuer's signature, DER.
    package let signature: [UInt8]
    package let serial: [UInt8]
    /// Both names with their tags.
    package let issuer: [UInt8]
    package let subject: [UInt8]
    /// The content of AlgorithmIdentifier, and the bytes of the BIT STRING.
    package let subjectKey: (algorithm: [UInt8], point: [UInt8])
    package let extensions: [Extension]

    package init?(der: Span<UInt8>) {
        do throws(DERError) {
            try self.init(reading: der)
        } catch {
            return nil
        }
    }

    private init(reading der: Span<UInt8>) throws(DERError) {
        var outer = DERCursor(0..<der.count)
        var certificate = DERCursor(try outer.next(.sequence, in: der))
        try outer.finish()
        let start = certificate.offset
        var body = DERCursor(try certificate.next(.sequence, in: der))
        signed = der.copy(start..<certificate.offset)
        let outerAlgorithm = der.copy(try certificate.next(.sequence, in: der))
        signature = try Self.wholeBytes(&certificate, in: der)
        try certificate.finish()

        let isVersion3 = try Self.isVersion3(&body, in: der)
        serial = try Self.integer(&body, in: der)
        algorithms = (der.copy(try body.next(.sequence, in: der)), outerAlgorithm)
        issuer = try Self.name(&body, in: der)
        validity = try Self.validity(&body, in: der)
        subject = try Self.name(&body, in: der)
        var key = DERCursor(try body.next(.sequence, in: der))
        let keyAlgorithm = der.copy(try key.next(.sequence, in: der))
        subjectKey = (keyAlgorithm, try Self.wholeBytes(&key, in: der))
        try key.finish()
        extensions = try Self.extensions(&body, in: der, isVersion3: isVersion3)
        self.der = der.copy(0..<der.count)
    }

    package var p256PublicKey: P256PublicKey? {
        guard subjectKey.algorithm == Self.p256Algorithm else { return nil }
        return P256PublicKey(x963: subjectKey.point)
    }

    func extensionBytes(_ oid: OID) -> [UInt8]? {
        let found = extensions.filter { $0.oid == oid.content }
        return found.count == 1 ? found[0].value : nil
    }

    func subject(_ field: X509Certificate.SubjectField) -> String? {
        let oid =
            switch field {
            case .commonName: OID("2.5.4.3")
            case .organization: OID("2.5.4.10")
            case .organizationalUnit: OID("2.5.4.11")
            }
        let whole = ContiguousArray(subject)
        let bytes = whole.span
        do throws(DERError) {
            var text: String?
            try Self.walk(bytes) { type, tag, value in
                guard text == nil, bytes.copy(type) == oid.content else { return }
                let characters = bytes.copy(value)
                text =
                    tag == .utf8String
                    ? String(decoding: characters, as: UTF8.self)
                    // The other strings of names are ASCII, or Latin-1 as old certificates have it.
                    : String(String.UnicodeScalarView(characters.map { Unicode.Scalar($0) }))
            }
            return text
        } catch {
            return nil
        }
    }

    func isValidSignature(_ signature: [UInt8], digest: SHA256Digest) -> Bool? {
        key.map { $0.isValid(signature, for: HashedMessage(digest: digest)) }
    }

    /// The subject's key; `nil` when it is not on P-256 or P-384.
    var key: Key? {
        switch subjectKey.algorithm {
        case Self.p256Algorithm:
            (try? Crypto.P256.Signing.PublicKey(x963Representation: subjectKey.point))
                .map { .p256($0) }
        case Self.p384Algorithm:
            (try? Crypto.P384.Signing.PublicKey(x963Representation: subjectKey.point))
                .map { .p384($0) }
        default: nil
        }
    }

    // RFC 5480 §2.1.1: id-ecPublicKey and the curve.
    private static let p256Algorithm = algorithm("1.2.840.10045.2.1", "1.2.840.10045.3.1.7")
    private static let p384Algorithm = algorithm("1.2.840.10045.2.1", "1.3.132.0.34")
    // RFC 5758 §3.2: no parameters.
    private static let ecdsaWithSHA256 = algorithm("1.2.840.10045.4.3.2")
    private static let ecdsaWithSHA384 = algorithm("1.2.840.10045.4.3.3")

    private static func algorithm(_ identifiers: String...) -> [UInt8] {
        identifiers.flatMap { DEREncoder.element(.objectIdentifier, OID($0).content) }
    }

    /// Whether an issuer's key made this certificate's signature. RFC 5280 §4.1.1.2: the outer
    /// algorithm equals the signed one.
    func isSigned(by issuer: Key) -> Bool {
        guard algorithms.inner == algorithms.outer else { return false }
        switch algorithms.inner {
        case Self.ecdsaWithSHA256:
            return issuer.isValid(signature, for: Crypto.SHA256.hash(data: signed))
        case Self.ecdsaWithSHA384:
            return issuer.isValid(signature, for: Crypto.SHA384.hash(data: signed))
        default: return false
        }
    }
}

extension PlainCertificate.Key {
    /// Whether a signature in DER is one of this key. ECDSA takes as many bits of a digest as the
    /// curve has (FIPS 186-4 §6.4).
    func isValid(_ signature: [UInt8], for digest: some Digest) -> Bool {
        let whole = ContiguousArray(signature)
        let bytes = whole.span
        let count =
            switch self {
            case .p256: 32
            case .p384: 48
            }
        guard let parts = ECDSASignature(bytes, integerBytesMax: count) else { return false }
        return parts.withPair(of: bytes, integerBytes: count) { pair in
            switch self {
            case .p256(let key):
                (try? Crypto.P256.Signing.ECDSASignature(rawRepresentation: pair))
                    .map { key.isValidSignature($0, for: digest) } ?? false
            case .p384(let key):
                (try? Crypto.P384.Signing.ECDSASignature(rawRepresentation: pair))
                    .map { key.isValidSignature($0, for: digest) } ?? false
            }
        }
    }
}

// The parts of the DER.
extension PlainCertificate {
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

    /// An INTEGER of any length, minimal (X.690 §8.3.2).
    static func integer(
        _ cursor: inout DERCursor,
        in der: Span<UInt8>
    ) throws(DERError) -> [UInt8] {
        let bytes = der.copy(try cursor.next(.integer, in: der))
        let isPadded =
            bytes.count > 1
            && (bytes[0] == 0 && bytes[1] < 0x80 || bytes[0] == 0xFF && bytes[1] >= 0x80)
        guard !bytes.isEmpty, !isPadded else { throw DERError(.badInteger, at: cursor.offset) }
        return bytes
    }

    /// A BIT STRING of whole bytes.
    private static func wholeBytes(
        _ cursor: inout DERCursor,
        in der: Span<UInt8>
    ) throws(DERError) -> [UInt8] {
        let content = try cursor.next(.bitString, in: der)
        guard let first = content.first, der[first] == 0 else {
            throw DERError(.unexpectedTag, at: content.lowerBound)
        }
        return der.copy(content.dropFirst())
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

    /// A name with its tag, which has the form of one.
    static func name(_ cursor: inout DERCursor, in der: Span<UInt8>) throws(DERError) -> [UInt8] {
        let start = cursor.offset
        _ = try cursor.next(.sequence, in: der)
        let bytes = der.copy(start..<cursor.offset)
        try walk(ContiguousArray(bytes).span) { _, _, _ in }
        return bytes
    }

    /// Shows the attributes of a name: type, and the value's tag and bytes.
    ///
    ///     Name = SEQUENCE OF SET OF SEQUENCE { OBJECT IDENTIFIER type, value }
    package static func walk(
        _ name: Span<UInt8>,
        _ visit: (_ type: Range<Int>, _ tag: DERTag, _ value: Range<Int>) -> Void
    ) throws(DERError) {
        var outer = DERCursor(0..<name.count)
        var sets = DERCursor(try outer.next(.sequence, in: name))
        while !sets.isAtEnd {
            var attributes = DERCursor(try sets.next(.set, in: name))
            while !attributes.isAtEnd {
                var attribute = DERCursor(try attributes.next(.sequence, in: name))
                let type = try attribute.next(.objectIdentifier, in: name)
                let value = try attribute.next(in: name)
                try attribute.finish()
                let isText =
                    value.tag != .utf8String
                    || String(utf8: name.copy(value.content)) != nil
                guard isText else { throw DERError(.unexpectedTag, at: value.content.lowerBound) }
                visit(type, value.tag, value.content)
            }
        }
    }

    /// `[3] EXPLICIT SEQUENCE OF SEQUENCE { id, BOOLEAN critical, OCTET STRING value }`, and before
    /// it the unique ids, which say nothing.
    private static func extensions(
        _ cursor: inout DERCursor,
        in der: Span<UInt8>,
        isVersion3: Bool
    ) throws(DERError) -> [Extension] {
        var extensions: [Extension] = []
        for number in 1...3 where !cursor.isAtEnd {
            let start = cursor
            let element = try cursor.next(in: der)
            if number < 3, element.tag == DERTag(bits: 0x80, number: UInt32(number)) { continue }
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
    ) throws(DERError) -> Extension {
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
        return Extension(oid: oid, isCritical: isCritical, value: der.copy(element.content))
    }
}
