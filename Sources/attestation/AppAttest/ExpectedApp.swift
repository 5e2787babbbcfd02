internal import Encodings
package import Signatures

/// An app whose keys are accepted, and the conditions for it.
public struct ExpectedApp: Hashable, Sendable {
    /// The App ID: prefix, full stop, bundle identifier (macOS: signing identifier).
    public let id: String
    /// SHA-256 of the App ID.
    public let hash: AppIDHash
    /// The environments in which its keys may have been attested.
    public let environments: Set<AttestationEnvironment>
    /// Whether the app runs on macOS, alone or besides other systems. If so, a leaf certificate
    /// needs Apple's access control list even if it does not tell a Mac from other devices.
    public let isMacOS: Bool
    /// The accepted builds.
    public let builds: BuildPolicy

    /// An app from its parts.
    public init(
        id: String,
        environments: Set<AttestationEnvironment>,
        isMacOS: Bool,
        builds: BuildPolicy
    ) {
        self.id = id
        hash = AppIDHash(appID: id)
        self.environments = environments
        self.isMacOS = isMacOS
        self.builds = builds
    }
}

/// SHA-256 of an App ID: the RP ID hash of authenticator data, 32 bytes held inline.
///
/// The App ID is the prefix (mostly the team id), a full stop and the bundle identifier. For an App
/// Clip it is that of the full app. On macOS the signing identifier takes the place of the bundle
/// identifier.
public struct AppIDHash: Hashable, Sendable {
    /// The 32 bytes.
    package let digest: SHA256Digest

    /// The hash of an App ID.
    public init(appID: String) { digest = SHA256.digest(of: Array(appID.utf8)) }

    /// The hash with these bytes; `nil` unless there are exactly 32.
    public init?(bytes: some Collection<UInt8>) {
        guard bytes.count == 32, let digest = SHA256Digest(bytes: bytes) else { return nil }
        self.digest = digest
    }

    /// The hash with this digest.
    package init(_ digest: SHA256Digest) { self.digest = digest }

    /// The 32 bytes as an array.
    public var bytes: [UInt8] { digest.array }
}

extension AppIDHash: Codable {
    /// Reads base64 of the 32 bytes.
    public init(from decoder: any Decoder) throws {
        self = try decoder.value(otherwise: "not base64 of 32 bytes") {
            Base64.decode($0).flatMap { AppIDHash(bytes: $0) }
        }
    }

    /// Writes base64 of the 32 bytes.
    public func encode(to encoder: any Encoder) throws {
        try encoder.encode(text: Base64.text(bytes))
    }
}

/// Apple's two services, one of which attested a key (the AAGUID of an attestation).
///
/// Frozen: Apple has these two services.
@frozen
public enum AttestationEnvironment: String, Hashable, Codable, Sendable, CaseIterable {
    /// App Store, TestFlight and enterprise builds, and Xcode builds whose entitlement says so.
    case production
    /// Xcode builds.
    case development

    /// The 16 bytes of the AAGUID: "appattest" and seven zeros, or "appattestdevelop".
    ///
    /// "Preparing to use the App Attest service" says "appattestsandbox", which no object has.
    public var aaguid: [UInt8] {
        switch self {
        case .production: Array("appattest".utf8) + [UInt8](repeating: 0, count: 7)
        case .development: Array("appattestdevelop".utf8)
        }
    }

    /// The environment of an AAGUID; `nil` when it is neither.
    init?(aaguid: some Collection<UInt8>) {
        for environment in Self.allCases where environment.aaguid.elementsEqual(aaguid) {
            self = environment
            return
        }
        return nil
    }
}

/// How the system judged the build that made an object (`apple_validation_category_01`, iOS and
/// macOS 27 and later).
public struct ValidationCategory: RawRepresentable, Hashable, Codable, Sendable {
    /// Apple's number.
    public let rawValue: UInt32

    /// The category of a number, whether it has a name or not.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// 0: not valid.
    public static let invalid = ValidationCategory(rawValue: 0)
    /// 1: an executable of the operating system.
    public static let operatingSystem = ValidationCategory(rawValue: 1)
    /// 2: TestFlight.
    public static let testFlight = ValidationCategory(rawValue: 2)
    /// 3: a development build.
    public static let development = ValidationCategory(rawValue: 3)
    /// 4: App Store.
    public static let appStore = ValidationCategory(rawValue: 4)
    /// 5: enterprise or ad hoc distribution.
    public static let enterprise = ValidationCategory(rawValue: 5)
    /// 6: Developer ID.
    public static let developerID = ValidationCategory(rawValue: 6)
    /// 10: other.
    public static let other = ValidationCategory(rawValue: 10)

    /// A short name in kebab-case; the number where Apple gives none.
    public var name: String {
        switch rawValue {
        case 0: "invalid"
        case 1: "operating-system"
        case 2: "test-flight"
        case 3: "development"
        case 4: "app-store"
        case 5: "enterprise"
        case 6: "developer-id"
        case 10: "other"
        default: String(rawValue)
        }
    }

    /// The category of a name or a number in decimal; `nil` for other text.
    public init?(name: String) {
        if let number = UInt32(name) {
            self.init(rawValue: number)
            return
        }
        guard let known = (UInt32(0)...10).first(where: { Self(rawValue: $0).name == name }) else {
            return nil
        }
        self.init(rawValue: known)
    }
}

/// The accepted builds of an app. Devices with iOS or macOS 27 and later sign their build's
/// category and version into every object.
///
/// Older systems sign neither. A client can't remove them, because they are signed. So a policy
/// says separately what a value means and what its absence means.
public struct BuildPolicy: Hashable, Codable, Sendable {
    /// The accepted categories; `nil` accepts every category.
    public let categories: Set<ValidationCategory>?
    /// Whether an object without a category is accepted.
    public let acceptsAbsentCategory: Bool
    /// The accepted values of CFBundleVersion; `nil` accepts every value.
    public let bundleVersions: Set<String>?
    /// Whether an object without a bundle version is accepted.
    public let acceptsAbsentBundleVersion: Bool

    /// A policy from its parts.
    public init(
        categories: Set<ValidationCategory>?,
        acceptsAbsentCategory: Bool,
        bundleVersions: Set<String>?,
        acceptsAbsentBundleVersion: Bool
    ) {
        self.categories = categories
        self.acceptsAbsentCategory = acceptsAbsentCategory
        self.bundleVersions = bundleVersions
        self.acceptsAbsentBundleVersion = acceptsAbsentBundleVersion
    }

    /// Accepts every build.
    public static let any = BuildPolicy(
        categories: nil,
        acceptsAbsentCategory: true,
        bundleVersions: nil,
        acceptsAbsentBundleVersion: true
    )

    /// The fault of a build; the category is judged before the version.
    package enum Finding {
        case none
        case category(String)
        case version(String)
    }

    package func judge(_ extensions: AuthenticatorExtensions) -> Finding {
        if let category = extensions.validationCategory {
            if let categories, !categories.contains(category) {
                return .category("category \(category.name)")
            }
        } else if !acceptsAbsentCategory {
            return .category("no category")
        }
        if let version = extensions.bundleVersion {
            if let bundleVersions, !bundleVersions.contains(version) {
                return .version("bundle version not in the list")
            }
        } else if !acceptsAbsentBundleVersion {
            return .version("no bundle version")
        }
        return .none
    }
}
