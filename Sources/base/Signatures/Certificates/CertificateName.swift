internal import Encodings

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
