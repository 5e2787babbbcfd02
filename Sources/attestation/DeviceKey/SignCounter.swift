/// The number of signatures that a key has made for its app; each carries the next one. An
/// attestation carries 0.
public struct SignCounter: Comparable, Hashable, Sendable {
    /// The number, as the four bytes of authenticator data say it.
    public let rawValue: UInt32

    /// A counter of this value.
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// The counter of a key that has signed nothing.
    public static let zero = SignCounter(rawValue: 0)

    /// Whether the left counter is the older one.
    public static func < (left: Self, right: Self) -> Bool {
        left.rawValue < right.rawValue
    }
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
