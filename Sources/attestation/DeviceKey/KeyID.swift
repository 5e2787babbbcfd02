internal import Encodings
package import Signatures

/// The name of a device's key: SHA-256 of its X9.62 public point, 32 bytes held inline.
///
/// `DCAppAttestService` gives an app the same 32 bytes in base64.
public struct KeyID: Hashable, Sendable {
    /// The 32 bytes.
    package let digest: SHA256Digest

    /// The key id with this digest.
    package init(_ digest: SHA256Digest) { self.digest = digest }

    /// The key id of a public key.
    package init(of key: P256PublicKey) { digest = key.digest }

    /// The key id with these bytes; `nil` unless there are exactly 32.
    public init?(bytes: some Collection<UInt8>) {
        guard bytes.count == 32, let digest = SHA256Digest(bytes: bytes) else { return nil }
        self.digest = digest
    }

    /// Reads base64 of 32 bytes, 44 characters; base64url and missing padding are read too. `nil`
    /// for anything else.
    package init?(base64 text: Span<UInt8>) {
        guard text.count <= 44, let bytes = Base64.decode(text),
            let digest = SHA256Digest(ContiguousArray(bytes).span)
        else { return nil }
        self.digest = digest
    }

    /// Reads base64 of 32 bytes, 44 characters, as an app gets it from the system; base64url and
    /// missing padding are read too. `nil` for anything else.
    public init?(base64 text: String) {
        let bytes = Array(text.utf8)
        self.init(base64: ContiguousArray(bytes).span)
    }

    /// The 32 bytes as an array.
    public var bytes: [UInt8] { digest.array }

    /// Padded base64, 44 characters.
    public var base64: String { Base64.text(digest.array) }

    /// The form of a key id for logs: the first 12 hexadecimal digits of SHA-256 of its bytes.
    public var logName: String { Hex.text(SHA256.digest(of: bytes).array.prefix(6)) }
}

extension KeyID: Codable {
    /// Reads the base64 of ``base64``.
    public init(from decoder: any Decoder) throws {
        let text = try decoder.singleValueContainer().decode(String.self)
        guard let keyID = KeyID(base64: text) else {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(
                    codingPath: decoder.codingPath,
                    debugDescription: "A key id is base64 of 32 bytes, 44 characters."
                )
            )
        }
        self = keyID
    }

    /// Writes ``base64``.
    public func encode(to encoder: any Encoder) throws {
        try encoder.encode(text: base64)
    }
}

extension KeyID: CustomStringConvertible {
    /// Padded base64, 44 characters.
    public var description: String { base64 }
}
