internal import AppAttest
internal import Cryptography
internal import Encodings

/// The extensions that Apple writes into a key's certificate, byte for byte in the forms seen.
enum LeafExtensions {
    /// The mark of a signer of receipts.
    static let receiptSigner = CertificateBuilder.Extension(
        oid: UnverifiedReceipt.signerOID,
        isCritical: false,
        value: [0x05, 0x00]
    )

    /// The list of an iPhone's key, 69 bytes, as in Apple's sample of 2026: each right is granted.
    static let iPhoneAccessControl = DEREncoder.sequence([
        text("11"),
        DEREncoder.sequence(
            ["okd", "oa", "osgn", "odel", "ock"].map {
                DEREncoder.sequence([text($0), [0xA1, 0x03, 0x01, 0x01, 0xFF]])
            }
        ),
    ])

    /// All extensions of a leaf, in the order of genuine ones, without the nonce where none is
    /// given.
    /// `accessControl` stands in place of the list that belongs to the shape.
    static func all(
        _ device: SoftwareDevice,
        nonce: [UInt8]?,
        isMacOS: Bool,
        accessControl: [UInt8]?
    ) -> [CertificateBuilder.Extension] {
        let system = system(of: device.shape, isMacOS: isMacOS)
        var extensions: [CertificateBuilder.Extension] = []
        if device.shape.isOf26OrLater {
            // extKeyUsage { 1.2.840.113635.100.4.24 }, from 2026 on.
            extensions.append(
                plain(
                    OID("2.5.29.37"),
                    DEREncoder.sequence([
                        [0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x63, 0x64, 0x04, 0x18]
                    ])
                )
            )
        }
        extensions.append(plain(LeafDetails.appOID, tagged([(1204, Array(device.appID.utf8))])))
        extensions.append(plain(LeafDetails.systemOID, tagged(system)))
        if let nonce { extensions.append(plain(LeafDetails.nonceOID, tagged([(1, nonce)]))) }
        if let list = accessControl ?? self.accessControl(of: device.shape) {
            extensions.append(plain(LeafDetails.accessControlOID, tagged([(3, list)])))
        }
        return extensions
    }

    private static func accessControl(of shape: DeviceShape) -> [UInt8]? {
        guard shape.isOf26OrLater else { return nil }
        return shape.isMacOS ? UnverifiedAttestation.macOSAccessControl : iPhoneAccessControl
    }

    /// 1400 version, 1403 build, 1026 platform.
    private static func system(of shape: DeviceShape, isMacOS: Bool) -> [(UInt32, [UInt8])] {
        let system = shape.system
        let platform = isMacOS ? "macosx" : system.platform
        let texts: [(UInt32, String?)] = [
            (1400, system.version), (1403, system.build), (1026, platform),
        ]
        return texts.compactMap { tag, text in text.map { (tag, Array($0.utf8)) } }
    }

    /// `SEQUENCE { [n] EXPLICIT OCTET STRING, … }`.
    private static func tagged(_ values: [(tag: UInt32, bytes: [UInt8])]) -> [UInt8] {
        DEREncoder.sequence(
            values.map {
                DEREncoder.element(.explicit($0.tag), DEREncoder.octetString($0.bytes))
            }
        )
    }

    private static func plain(_ oid: OID, _ value: [UInt8]) -> CertificateBuilder.Extension {
        CertificateBuilder.Extension(oid: oid, isCritical: false, value: value)
    }

    private static func text(_ text: String) -> [UInt8] {
        DEREncoder.element(.utf8String, Array(text.utf8))
    }
}
