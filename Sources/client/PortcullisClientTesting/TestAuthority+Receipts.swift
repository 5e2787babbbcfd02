internal import Encodings
internal import Foundation

extension TestAuthority {
    /// 1.2.840.113635.100.12.15 marks the certificates that sign Apple's receipts.
    private static let signerMark: TestCertificate.Extension = (
        [1, 2, 840, 113_635, 100, 12, 15], false, [0x05, 0x00]
    )

    /// A receipt around this content: SignedData (RFC 5652 §5) without signed attributes, with
    /// ECDSA and SHA-256 over the content itself, as Apple makes them.
    ///
    /// - Parameters:
    ///   - content: the fields in DER.
    ///   - now: the signer is valid from a day before to two days after.
    /// - Returns: the message in DER.
    /// - Throws: when swift-crypto can't sign.
    func receipt(_ content: [UInt8], now: Date) throws -> [UInt8] {
        let signerKey = TestSigningKey.random()
        let signer = TestCertificate(
            subject: TestCertificate.name(
                "Software receipt signing",
                organization: Self.organization
            ),
            issuer: subject,
            publicKeyInfo: signerKey.publicKeyInfo,
            notBefore: now.addingTimeInterval(-86_400),
            notAfter: now.addingTimeInterval(2 * 86_400),
            isAuthority: false,
            extensions: [Self.signerMark]
        )
        let sha256 = DEREncoder.sequence([
            DEREncoder.objectIdentifier([2, 16, 840, 1, 101, 3, 4, 2, 1])
        ])
        let signerInfo = DEREncoder.sequence([
            DEREncoder.integer(1),
            DEREncoder.sequence([subject, DEREncoder.integer(signer.serial)]),
            sha256, signerKey.algorithm,
            DEREncoder.octetString(try signerKey.signature(of: content)),
        ])
        let signedData = DEREncoder.sequence([
            DEREncoder.integer(1),
            DEREncoder.set([sha256]),
            Self.contentInfo(1, DEREncoder.octetString(content)),
            // IMPLICIT SET OF: the tag stands in place of the set's own.
            DEREncoder.element(.explicit(0), try signer.signed(by: key)),
            DEREncoder.set([signerInfo]),
        ])
        return Self.contentInfo(2, signedData)
    }

    /// Content of a type of PKCS #7: 1 is data, 2 is signed data.
    private static func contentInfo(_ type: UInt32, _ content: [UInt8]) -> [UInt8] {
        DEREncoder.sequence([
            DEREncoder.objectIdentifier([1, 2, 840, 113_549, 1, 7, type]),
            DEREncoder.element(.explicit(0), content),
        ])
    }
}
