/// An app whose keys are accepted, and under which conditions.
public struct ExpectedApp: Hashable, Sendable {
    /// The App ID: prefix, full stop, bundle identifier (macOS: signing identifier).
    public let id: String
    /// SHA-256 of the App ID.
    public let hash: AppIDHash
    /// The environments in which its keys may have been attested.
    public let environments: Set<AttestationEnvironment>
    /// Whether the app runs on macOS, alone or beside other systems, so that a leaf certificate
    /// needs Apple's access control list even if it does not tell a Mac from other devices.
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
