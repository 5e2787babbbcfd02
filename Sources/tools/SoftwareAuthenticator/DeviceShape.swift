public import AppAttest
internal import Encodings

/// The system whose objects a device makes. The differences are mostly undocumented and come from
/// genuine objects.
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
