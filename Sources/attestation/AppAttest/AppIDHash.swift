public import Cryptography

/// SHA-256 of an App ID: the RP ID hash of authenticator data, 32 octets held inline.
///
/// The App ID is the prefix (mostly the team id), a full stop and the bundle identifier. For an App
/// Clip it is that of the full app, on macOS the signing identifier stands in for the bundle
/// identifier.
public struct AppIDHash: Hashable, Sendable {
    /// The 32 octets.
    public let digest: SHA256Digest

    /// The hash of an App ID.
    public init(appID: String) {
        digest = SHA256.digest(of: Array(appID.utf8))
    }

    /// The hash that is this digest.
    public init(_ digest: SHA256Digest) {
        self.digest = digest
    }

    /// The 32 octets as an array.
    public var octets: [UInt8] { digest.octets }
}
