internal import ByteCoding
package import Cryptography

/// SHA-256 of an App ID: the RP ID hash of authenticator data, 32 bytes held inline.
///
/// The App ID is the prefix (mostly the team id), a full stop and the bundle identifier. For an App
/// Clip it is that of the full app. On macOS the signing identifier takes the place of the bundle
/// identifier.
public struct AppIDHash: Hashable, Sendable {
    /// The 32 bytes.
    package let digest: SHA256Digest

    /// The hash of an App ID.
    public init(appID: String) {
        digest = SHA256.digest(of: Array(appID.utf8))
    }

    /// The hash with these bytes; `nil` unless there are exactly 32.
    public init?(bytes: some Collection<UInt8>) {
        guard bytes.count == 32, let digest = SHA256Digest(octets: bytes) else { return nil }
        self.digest = digest
    }

    /// The hash that is this digest.
    package init(_ digest: SHA256Digest) {
        self.digest = digest
    }

    /// The 32 bytes as an array.
    public var bytes: [UInt8] { digest.octets }
}

extension AppIDHash: Codable {
    /// Reads base64 of the 32 bytes.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let bytes = Base64.decode(try container.decode(String.self))
        guard let hash = bytes.flatMap({ AppIDHash(bytes: $0) }) else {
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription: "not base64 of 32 bytes"
            )
        }
        self = hash
    }

    /// Writes base64 of the 32 bytes.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(Base64.text(bytes))
    }
}
