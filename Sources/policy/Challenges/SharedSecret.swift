internal import Cryptography

/// A secret that all gateways of a store share.
package struct SharedSecret: Sendable, Hashable {
    /// The later of two has the higher number.
    package let number: Int64
    /// 32 bytes.
    package let bytes: [UInt8]
    /// Second of Unix time from which gateways use it.
    package let usedFrom: Int64
    /// Second of Unix time up to which what was made with it counts.
    package let goodUntil: Int64

    /// One of this process alone, for as long as those that are shared can't be read.
    package static func placeholder() -> SharedSecret {
        SharedSecret(
            number: .min,
            bytes: RandomOctets.make(count: 32),
            usedFrom: .min,
            goodUntil: .max
        )
    }

    package init(number: Int64, bytes: [UInt8], usedFrom: Int64, goodUntil: Int64) {
        self.number = number
        self.bytes = bytes
        self.usedFrom = usedFrom
        self.goodUntil = goodUntil
    }
}
