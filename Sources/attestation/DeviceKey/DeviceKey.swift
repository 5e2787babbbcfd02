// The parts that all platforms share of a key that a device keeps and that signs an app's requests.
//
// - `KeyID` names the key everywhere: on the wire, in the store, in logs.
// - `SignCounter` counts the key's signatures, where the platform counts.
// - `DevicePlatform` names the platform whose attestation vouches for the key.
// - `AttestedKey` is the part of any platform's verified attestation that a store needs.
//
// The formats themselves are modules of their own: `AppAttest` verifies Apple's, `KeyAttestation`
// Android's. A format that counts nothing gives no counter. Then the challenge alone makes a
// signature good once, so a store refuses a use that has neither.

internal import Encodings
package import Signatures

/// The platform whose attestation vouches for a key. The raw value is the word in exports: add,
/// never rename.
///
/// May grow: a `switch` over it has an `@unknown default`.
@nonexhaustive(warn)
public enum DevicePlatform: String, CaseIterable, Codable, Hashable, Sendable {
    /// Apple's App Attest.
    case apple
    /// Android's Key Attestation.
    case android
}

/// The part that all platforms' verified attestations share.
public protocol AttestedKey: Sendable {
    /// The platform of the attestation.
    static var platform: DevicePlatform { get }

    var keyID: KeyID { get }

    /// The counter to store: the next one must be greater. `nil` when the platform's keys count
    /// nothing.
    var initialCounter: SignCounter? { get }
}

/// The number of signatures that a key has made for its app; each carries the next one. An
/// attestation carries 0.
public struct SignCounter: Comparable, Hashable, Sendable {
    /// The number in the four bytes of authenticator data.
    public let rawValue: UInt32

    /// A counter of this value.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// The counter of a key that has signed nothing.
    public static let zero = SignCounter(rawValue: 0)

    /// Whether the left counter is the older one.
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

extension SignCounter: Codable {
    /// Reads a number.
    public init(from decoder: any Decoder) throws {
        self.init(rawValue: try decoder.singleValueContainer().decode(UInt32.self))
    }

    /// Writes the number.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
    }
}

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
