public import AppAttest
internal import Cryptography
internal import Encodings

/// The system whose objects a device makes. The differences are mostly undocumented and come from
/// genuine objects.
///
/// May grow: a `switch` over it has an `@unknown default`.
@nonexhaustive(warn)
public enum DeviceShape: Hashable, Sendable {
    /// iOS 14 and 15: no extension map, flags 0x40; the leaf names the system's version, and
    /// neither build nor platform.
    case iOS14
    /// iOS 16 to 18: no extension map, flags 0x40, no access control list in the leaf.
    case beforeTwentySeven
    /// iOS 26: no extension map, flags 0x40; the leaf names the platform and has an access control
    /// list.
    case iOS26
    /// iOS 27.0, as in Apple's sample of 2026: an extension map, flags 0x40 all the same.
    case iOS27Preview(category: ValidationCategory, bundleVersion: String)
    /// iOS 27.0.1: an extension map in every object, flags 0xC0.
    case iOS27(category: ValidationCategory, bundleVersion: String)
    /// macOS 27: an extension map with the code directory's hash, flags 0x40 all the same, and
    /// Apple's access control list for Macs in the leaf. The one that was seen, of a beta, had no
    /// bundle version.
    case macOS27(category: ValidationCategory, bundleVersion: String?)

    /// Whether the leaf names macOS.
    public var isMacOS: Bool {
        if case .macOS27 = self { return true }
        return false
    }

    var flags: UInt8 {
        switch self {
        case .iOS14, .beforeTwentySeven, .iOS26, .iOS27Preview, .macOS27: 0x40
        case .iOS27: 0xC0
        }
    }

    /// The leaf's statement about the system. Builds are named since iOS 16, platforms since iOS
    /// 18.
    var system: (version: String, build: String?, platform: String?) {
        switch self {
        case .iOS14: ("14.2", nil, nil)
        case .beforeTwentySeven: ("18.2", "22C152", nil)
        case .iOS26: ("26.3", "23D127", "iphoneos")
        case .iOS27Preview: ("27.0", "24A325b", "iphoneos")
        case .iOS27: ("27.0.1", "24A446", "iphoneos")
        case .macOS27: ("27.0.1", "24A446", "macosx")
        }
    }

    /// Whether the leaf has the parts that Apple adds since iOS 26: an extended key usage and an
    /// access control list.
    var isOf26OrLater: Bool {
        switch self {
        case .iOS14, .beforeTwentySeven: false
        case .iOS26, .iOS27Preview, .iOS27, .macOS27: true
        }
    }

    /// The bytes after the fixed part of authenticator data.
    var extensionMap: [UInt8] {
        switch self {
        case .iOS14, .beforeTwentySeven, .iOS26: return []
        case .iOS27Preview(let category, let version), .iOS27(let category, let version):
            return CBORValue.map(Self.build(category, version)).encoded
        case .macOS27(let category, let version):
            let hash = [UInt8](repeating: 0xCD, count: 32)
            let codeDirectory: [CBORValue.Pair] = [
                .init(.text("apple_cd_hash_hash_01"), .bytes(hash)),
                .init(.text("apple_cd_hash_type_01"), .bytes([0x02])),
            ]
            return CBORValue.map(codeDirectory + Self.build(category, version)).encoded
        }
    }

    private static func build(
        _ category: ValidationCategory,
        _ version: String?
    ) -> [CBORValue.Pair] {
        // Little-endian, unlike every other number of the protocol.
        let number = (0..<4).map { UInt8(truncatingIfNeeded: category.rawValue >> (8 * $0)) }
        let pair = CBORValue.Pair(.text("apple_validation_category_01"), .bytes(number))
        guard let version else { return [pair] }
        return [.init(.text("apple_bundle_version_01"), .text(version)), pair]
    }
}

/// The extensions that Apple writes into a key's certificate, byte for byte in the forms seen.
enum LeafExtensions {
    /// The mark of a signer of receipts.
    static let receiptSigner = CertificateBuilder.Extension(
        oid: UnverifiedReceipt.signerOID,
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
                .init(
                    oid: OID("2.5.29.37"),
                    value: DEREncoder.sequence([
                        [0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x63, 0x64, 0x04, 0x18]
                    ])
                )
            )
        }
        let app = tagged([(1204, Array(device.appID.utf8))])
        extensions.append(.init(oid: LeafDetails.appOID, value: app))
        extensions.append(.init(oid: LeafDetails.systemOID, value: tagged(system)))
        if let nonce {
            extensions.append(.init(oid: LeafDetails.nonceOID, value: tagged([(1, nonce)])))
        }
        if let list = accessControl ?? self.accessControl(of: device.shape) {
            extensions.append(.init(oid: LeafDetails.accessControlOID, value: tagged([(3, list)])))
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

    private static func text(_ text: String) -> [UInt8] {
        DEREncoder.element(.utf8String, Array(text.utf8))
    }
}
