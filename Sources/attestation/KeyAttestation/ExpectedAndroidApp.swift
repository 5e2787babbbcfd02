/// An app whose keys are accepted, and what is asked of its phones.
public struct ExpectedAndroidApp: Hashable, Sendable {
    /// The package name, such as com.example.shop.
    public let package: String
    /// SHA-256 of each signing certificate that is accepted, 32 bytes each.
    public let signers: Set<[UInt8]>
    /// What is asked of the phone and the key.
    public let policy: AndroidPolicy

    /// An app with these signers, held to this policy.
    public init(package: String, signers: Set<[UInt8]>, policy: AndroidPolicy) {
        self.package = package
        self.signers = signers
        self.policy = policy
    }
}

/// What is asked of a phone and its key, beyond what is asked of every one.
///
/// Every policy asks for a key on P-256 that may sign with SHA-256, and for a description by the
/// hardware: what the system says of itself counts for nothing. Begin with ``standard``, and change
/// what differs.
public struct AndroidPolicy: Hashable, Sendable {
    /// Where the key may live.
    public var securityLevels: Set<SecurityLevel> = [.trustedEnvironment, .strongBox]
    /// In which states the system may have been started.
    public var bootStates: Set<VerifiedBootState> = [.verified]
    /// Verified boot keys of other systems, such as GrapheneOS: a system that is self-signed with
    /// one of them is accepted, too.
    public var bootKeys: Set<[UInt8]> = []
    /// Whether the bootloader has to be locked.
    public var requiresLocked = true
    /// Where the key may come from.
    public var origins: Set<KeyOrigin> = [.generated]
    /// Which kinds of chains are accepted.
    public var provisioning = Set(Provisioning.allCases)
    /// The oldest patch level of the system, such as 202601; `nil` accepts every one.
    public var osPatchLevelMin: Int64?

    /// Hardware of either kind that started the maker's system, locked, and made the key itself.
    public static let standard = AndroidPolicy()

    func accepts(_ trust: RootOfTrust) -> Bool {
        bootStates.contains(trust.state)
            || trust.state == .selfSigned && bootKeys.contains(trust.bootKey)
    }
}
