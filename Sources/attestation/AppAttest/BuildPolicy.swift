/// Which builds of an app are accepted. Devices with iOS or macOS 27 and later sign their build's
/// category and version into every object.
///
/// Older systems sign neither. A client can't remove them, because they are signed. So a policy
/// says separately what a value means and what its absence means.
public struct BuildPolicy: Hashable, Codable, Sendable {
    /// The categories that are accepted; `nil` accepts every one.
    public let categories: Set<ValidationCategory>?
    /// Whether an object without a category is accepted.
    public let acceptsAbsentCategory: Bool
    /// The values of CFBundleVersion that are accepted; `nil` accepts every one.
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

    /// What is wrong with a build, the category before the version.
    enum Finding {
        case none
        case category(String)
        case version(String)
    }

    func judge(_ extensions: AuthenticatorExtensions) -> Finding {
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
