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

/// The platform whose attestation vouches for a key. The raw value is the word in exports: add,
/// never rename.
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
