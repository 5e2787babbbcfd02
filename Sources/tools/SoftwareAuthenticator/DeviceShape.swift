public import AppAttest
internal import StrictCBOR

/// Which systems' objects a device makes. What differs between them is undocumented for the most
/// part and taken from genuine objects.
public enum DeviceShape: Hashable, Sendable {
    /// iOS before 26: no extension map, flags 0x40, no access control list in the leaf.
    case beforeTwentySeven
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
        case .beforeTwentySeven, .macOS27: 0x40
        case .iOS27: 0xC0
        }
    }

    /// The octets behind the fixed part of authenticator data.
    var extensionMap: [UInt8] {
        switch self {
        case .beforeTwentySeven:
            return []
        case .iOS27(let category, let version):
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
