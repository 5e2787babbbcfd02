public import AppAttest
internal import Cryptography

/// A device with one app on it, which makes keys.
public struct SoftwareDevice: Sendable {
    /// The authority that attests the keys.
    public let authority: SoftwareAuthority
    /// The App ID: prefix, full stop, bundle identifier.
    public let appID: String
    /// What the attestations state in their AAGUID.
    public let environment: AttestationEnvironment
    /// Which system's objects it makes.
    public let shape: DeviceShape

    /// A device in which everything is said.
    public init(
        authority: SoftwareAuthority,
        appID: String,
        environment: AttestationEnvironment,
        shape: DeviceShape
    ) {
        self.authority = authority
        self.appID = appID
        self.environment = environment
        self.shape = shape
    }

    /// A fresh random key.
    public func makeKey() -> SoftwareKey {
        SoftwareKey(P256PrivateKey(), of: self)
    }

    /// The key of a seed, the same for the same App ID and seed. For load, where two processes have
    /// to know a million keys without keeping them.
    public func makeKey(seed: [UInt8]) -> SoftwareKey {
        SoftwareKey(P256PrivateKey(seed: (Array(appID.utf8) + [0] + seed).span), of: self)
    }
}
