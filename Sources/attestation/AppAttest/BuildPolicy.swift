/// Which builds of an app are accepted, by what devices from iOS and macOS 27 on sign into every
/// object.
///
/// Older systems send none of it, and a client cannot take it out, since it is signed. What an
/// absence means is therefore said apart from what a value means.
public struct BuildPolicy: Hashable, Codable, Sendable {
    /// The categories that are accepted; `nil` accepts every one.
    public let categories: Set<ValidationCategory>?
    /// Whether an object without a category is accepted.
    public let acceptsAbsentCategory: Bool
    /// The values of CFBundleVersion that are accepted; `nil` accepts every one.
    public let bundleVersions: Set<String>?
    /// Whether an object without a bundle version is accepted.
    public let acceptsAbsentBundleVersion: Bool

    /// A policy in which everything is said.
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
