/// An app whose keys are accepted, and under which conditions.
public struct ExpectedApp: Hashable, Sendable {
    /// The App ID: prefix, full stop, bundle identifier (macOS: signing identifier).
    public let id: String
    /// SHA-256 of the App ID.
    public let hash: AppIDHash
    /// The environments in which its keys may have been attested.
    public let environments: Set<AttestationEnvironment>
    /// Whether this is a macOS app, so that its leaf certificates need Apple's access control
    /// list even if they do not name the platform.
    public let isMacOS: Bool
    /// Which builds are accepted.
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
