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
            bytes: RandomBytes.make(count: 32),
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

/// The keys of the codes where gateways share secrets: one that signs, and those that count.
struct SharedKeys: Sendable {
    private struct Entry: Sendable {
        let key: HMACSHA256.Key
        let usedFrom: Int64
        let goodUntil: Int64
    }

    /// The newest first; never empty.
    private let entries: [Entry]

    /// `nil` without a secret.
    init?(_ secrets: [SharedSecret]) {
        guard !secrets.isEmpty else { return nil }
        entries = secrets.sorted { $0.number > $1.number }.map { secret in
            Entry(
                key: HMACSHA256.Key(secret.bytes.span),
                usedFrom: secret.usedFrom,
                goodUntil: secret.goodUntil
            )
        }
    }

    /// The newest whose time has come. Where the clock is behind all of them, the oldest.
    func signing(at now: Int64) -> HMACSHA256.Key {
        let entry = entries.first { $0.usedFrom <= now } ?? entries[entries.count - 1]
        return entry.key
    }

    /// Whether the code is of a key that counts. One that is not used yet counts too: the clock of
    /// the gateway that used it may be ahead.
    func recognises(_ challenge: UnverifiedChallenge, at now: Int64) -> Bool {
        entries.contains { now < $0.goodUntil && challenge.isAuthentic(under: $0.key) }
    }
}
