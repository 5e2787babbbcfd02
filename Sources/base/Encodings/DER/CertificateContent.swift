/// The contents of a certificate that a test authority signs (RFC 5280 §4.1).
package struct CertificateContent {
    /// An extension: its object identifier in DER, and the DER inside the OCTET STRING.
    package typealias Extension = (identifier: [UInt8], isCritical: Bool, value: [UInt8])

    /// The serial number.
    package var serial: UInt64
    /// The issuer, a Name in DER.
    package var issuer: [UInt8]
    /// The subject, a Name in DER.
    package var subject: [UInt8]
    /// The SubjectPublicKeyInfo in DER.
    package var publicKeyInfo: [UInt8]
    /// The first moment of validity, in seconds since 1970.
    package var notBefore: Int64
    /// The last second of validity, since 1970.
    package var notAfter: Int64
    /// The extensions in their order.
    package var extensions: [Extension] = []

    /// Contents without extensions, of a subject that issues for itself, valid in 1970.
    package init(serial: UInt64, subject: [UInt8], publicKeyInfo: [UInt8]) {
        self.serial = serial
        (issuer, self.subject) = (subject, subject)
        self.publicKeyInfo = publicKeyInfo
        (notBefore, notAfter) = (0, 0)
    }

    /// The certificate in DER.
    ///
    /// - algorithm: the AlgorithmIdentifier of the signature.
    /// - sign: makes a signature over these bytes.
    package func signed(
        _ algorithm: [UInt8],
        _ sign: ([UInt8]) throws -> [UInt8]
    ) rethrows -> [UInt8] {
        let content = DEREncoder.sequence([
            DEREncoder.element(.explicit(0), DEREncoder.integer(2)),
            DEREncoder.integer(serial), algorithm, issuer,
            DEREncoder.sequence([DEREncoder.time(notBefore), DEREncoder.time(notAfter)]), subject,
            publicKeyInfo,
            DEREncoder.element(.explicit(3), DEREncoder.sequence(extensions.map(Self.encoded))),
        ])
        return DEREncoder.sequence([content, algorithm, DEREncoder.bitString(try sign(content))])
    }

    private static func encoded(_ entry: Extension) -> [UInt8] {
        let flag = entry.isCritical ? [DEREncoder.element(.boolean, [0xFF])] : []
        let value = DEREncoder.octetString(entry.value)
        return DEREncoder.sequence([entry.identifier] + flag + [value])
    }

    /// basicConstraints and keyUsage (RFC 5280 §4.2.1.9 and §4.2.1.3): keyCertSign and cRLSign for
    /// an authority, or digitalSignature.
    package static func usage(isAuthority: Bool) -> [Extension] {
        let constraints = isAuthority ? [DEREncoder.element(.boolean, [0xFF])] : []
        let keyUsage: [UInt8] = isAuthority ? [1, 0x06] : [7, 0x80]
        return [
            (DEREncoder.objectIdentifier([2, 5, 29, 19]), true, DEREncoder.sequence(constraints)),
            (
                DEREncoder.objectIdentifier([2, 5, 29, 15]), true,
                DEREncoder.element(.bitString, keyUsage)
            ),
        ]
    }

    /// A Name: each attribute with its type, an object identifier in DER, and its text.
    package static func name(_ attributes: [(type: [UInt8], text: String)]) -> [UInt8] {
        DEREncoder.sequence(
            attributes.map { type, text in
                let value = DEREncoder.element(.utf8String, Array(text.utf8))
                return DEREncoder.set([DEREncoder.sequence([type, value])])
            }
        )
    }
}

/// A CMS SignedData (RFC 5652 §5) as Apple makes receipts: one signer, ECDSA with SHA-256 over the
/// content itself.
package struct MessageContent {
    /// The bytes that are signed.
    package var content: [UInt8]
    /// The certificates, in DER.
    package var certificates: [[UInt8]]
    /// What names the signer's certificate: its issuer, a Name in DER, and its serial number.
    package var signer: (issuer: [UInt8], serial: [UInt8])
    /// The signature in DER.
    package var signature: [UInt8]
    /// The signed attributes, which Apple's signature of 2020 did not cover: object identifiers and
    /// values, in DER.
    package var attributes: [(type: [UInt8], value: [UInt8])] = []

    /// The most bytes of content in one OCTET STRING, as Apple cuts it.
    private static let pieceBytes = 1_000

    package init(
        _ content: [UInt8],
        certificates: [[UInt8]],
        signer: (issuer: [UInt8], serial: [UInt8]),
        signature: [UInt8]
    ) {
        self.content = content
        self.certificates = certificates
        self.signer = signer
        self.signature = signature
    }

    /// The message in BER: indefinite lengths around the content, which is in pieces.
    package var ber: [UInt8] {
        let sha256 = DEREncoder.sequence([
            DEREncoder.objectIdentifier([2, 16, 840, 1, 101, 3, 4, 2, 1])
        ])
        let ecdsa = DEREncoder.sequence([
            DEREncoder.objectIdentifier([1, 2, 840, 10_045, 4, 3, 2])
        ])
        let pieces = stride(from: 0, to: content.count, by: Self.pieceBytes).map { start in
            let end = min(start + Self.pieceBytes, content.count)
            return DEREncoder.octetString(Array(content[start..<end]))
        }
        let signerInfo = DEREncoder.sequence(
            [
                DEREncoder.integer(1), DEREncoder.sequence([signer.issuer, signer.serial]), sha256,
            ] + signedAttributes + [ecdsa, DEREncoder.octetString(signature)]
        )
        let constructed = DERTag(bits: 0x20, number: DERTag.octetString.number)
        let signedData = DEREncoder.indefinite(
            .sequence,
            [
                DEREncoder.integer(1), DEREncoder.set([sha256]),
                Self.contentInfo(1, DEREncoder.indefinite(constructed, pieces)),
                // IMPLICIT SET OF: the tag stands in place of the set's own.
                DEREncoder.element(.explicit(0), Array(certificates.joined())),
                DEREncoder.set([signerInfo]),
            ]
        )
        return Self.contentInfo(2, signedData)
    }

    /// Content of a type of PKCS #7: 1 is data, 2 is signed data.
    private static func contentInfo(_ type: UInt32, _ content: [UInt8]) -> [UInt8] {
        DEREncoder.indefinite(
            .sequence,
            [
                DEREncoder.objectIdentifier([1, 2, 840, 113_549, 1, 7, type]),
                DEREncoder.indefinite(.explicit(0), [content]),
            ]
        )
    }

    /// `[0] IMPLICIT SET OF SEQUENCE { type, SET OF value }`, left out when empty.
    private var signedAttributes: [[UInt8]] {
        let entries = attributes.map { DEREncoder.sequence([$0.type, DEREncoder.set([$0.value])]) }
        return entries.isEmpty
            ? [] : [DEREncoder.element(.explicit(0), Array(entries.joined()))]
    }
}
