/// The number of assertions a key has made; each carries the next one. An attestation carries 0.
public struct SignCounter: Comparable, Hashable, Sendable {
    /// The number, as the four octets of authenticator data say it.
    public let rawValue: UInt32

    /// A counter of this value.
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// The counter of a key that has asserted nothing.
    public static let zero = SignCounter(rawValue: 0)

    /// Whether the left counter is the older one.
    public static func < (left: Self, right: Self) -> Bool {
        left.rawValue < right.rawValue
    }
}
