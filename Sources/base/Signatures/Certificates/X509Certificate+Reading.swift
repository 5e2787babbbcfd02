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

/// The attributes of a name in their order.
///
///     Name = SEQUENCE OF SET OF SEQUENCE { OBJECT IDENTIFIER type, value }
///
/// Names are equal when types and texts are, whatever kind of string holds a text: the same root is
/// named by a PrintableString in one certificate and by a UTF8String in another. Java's verifier
/// and OpenSSL compare in this way too. OpenSSL also passes over case and white space.
package struct CertificateName: Equatable, Sendable {
    /// A type with its text.
    package struct Attribute: Equatable, Sendable {
        /// The arcs of its object identifier, as ``OID/content`` has them.
        package let type: [UInt8]
        /// The bytes of the string.
        package let text: [UInt8]
        private let isUTF8: Bool

        fileprivate init(type: [UInt8], text: [UInt8], isUTF8: Bool) {
            (self.type, self.text, self.isUTF8) = (type, text, isUTF8)
        }

        /// The text. Strings of names that are not UTF-8 are ASCII, or Latin-1 as old certificates
        /// have it.
        var string: String {
            isUTF8
                ? String(decoding: text, as: UTF8.self)
                : String(String.UnicodeScalarView(text.map { Unicode.Scalar($0) }))
        }

        package static func == (left: Self, right: Self) -> Bool {
            left.type == right.type && left.text == right.text
        }
    }

    package let attributes: [Attribute]
    /// The name in DER.
    package let der: [UInt8]

    /// Reads a name, the next element.
    init(_ cursor: inout DERCursor, in der: Span<UInt8>) throws(DERError) {
        let start = cursor.offset
        var attributes: [Attribute] = []
        var sets = DERCursor(try cursor.next(.sequence, in: der))
        while !sets.isAtEnd {
            var set = DERCursor(try sets.next(.set, in: der))
            while !set.isAtEnd {
                var attribute = DERCursor(try set.next(.sequence, in: der))
                let type = der.copy(try attribute.next(.objectIdentifier, in: der))
                let value = try attribute.next(in: der)
                try attribute.finish()
                let (text, isUTF8) = (der.copy(value.content), value.tag == .utf8String)
                guard !isUTF8 || String(utf8: text) != nil else {
                    throw DERError(.unexpectedTag, at: value.content.lowerBound)
                }
                attributes.append(Attribute(type: type, text: text, isUTF8: isUTF8))
            }
        }
        self.attributes = attributes
        self.der = der.copy(start..<cursor.offset)
    }

    /// Whether types and texts are equal.
    package static func == (left: Self, right: Self) -> Bool {
        left.attributes == right.attributes
    }

    /// The first text of this type; `nil` when there is none.
    package subscript(type: OID) -> String? {
        attributes.first { $0.type == type.content }?.string
    }

    /// Whether there is an attribute of this type, with this text where one is given.
    package func has(_ type: OID, _ text: String? = nil) -> Bool {
        attributes.contains { attribute in
            attribute.type == type.content
                && (text.map { attribute.text == Array($0.utf8) } ?? true)
        }
    }
}

// Types of a name's attributes.
extension OID {
    /// CN: a common name.
    package static let commonName = OID("2.5.4.3")
    /// A serial number, which is text.
    package static let serialNumber = OID("2.5.4.5")
    /// O: an organization.
    package static let organization = OID("2.5.4.10")
    /// OU: an organizational unit.
    package static let organizationalUnit = OID("2.5.4.11")
    /// A title: the level of a phone's keystore.
    package static let title = OID("2.5.4.12")
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
