internal import ByteCoding
public import Cryptography

/// The name of an App Attest key: SHA-256 of its X9.62 public point, 32 octets held inline.
public struct KeyID: Hashable, Sendable {
    /// The 32 octets.
    public let digest: SHA256Digest

    /// The key id that is this digest.
    public init(_ digest: SHA256Digest) {
        self.digest = digest
    }

    /// The key id of a public key.
    public init(of key: P256.PublicKey) {
        digest = key.digest
    }

    /// The key id with these octets; `nil` unless there are exactly 32.
    public init?(octets: some Collection<UInt8>) {
        guard octets.count == 32, let digest = SHA256Digest(octets: octets) else { return nil }
        self.digest = digest
    }

    /// Reads the text that `DCAppAttestService` gives an app: base64 of 32 octets, 44 characters;
    /// base64url and missing padding are read too. `nil` for anything else.
    public init?(base64 text: Span<UInt8>) {
        guard text.count <= 44, let octets = Base64.decode(text),
            let digest = SHA256Digest(octets.span)
        else { return nil }
        self.digest = digest
    }

    /// Reads base64. See ``init(base64:)-(Span<UInt8>)``.
    public init?(base64 text: String) {
        let octets = Array(text.utf8)
        self.init(base64: octets.span)
    }

    /// The 32 octets as an array.
    public var octets: [UInt8] { digest.octets }

    /// The text that `DCAppAttestService` gives an app: padded base64, 44 characters.
    public var base64: String { Base64.text(digest.octets) }

    /// What logs may show of a key id: the first 12 hexadecimal digits of SHA-256 of its octets.
    public var logName: String {
        Hex.text(SHA256.digest(of: octets).octets.prefix(6))
    }
}
