internal import Cryptography

/// A secret that all gateways of a store share.
package struct SharedSecret: Sendable, Hashable {
    /// Counts up: a newer secret has a higher number.
    package let number: Int64
    /// 32 bytes.
    package let bytes: [UInt8]
    /// Second of Unix time from which gateways use it.
    package let usedFrom: Int64
    /// Second of Unix time up to which challenges made with it are good.
    package let goodUntil: Int64

    /// A secret of this process alone, used while the shared secrets can't be read.
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

/// The keys of the codes where gateways share secrets: one signs, all that are good verify.
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

    /// The newest key whose time has come. Where the clock is before all of them, the oldest.
    func signing(at now: Int64) -> HMACSHA256.Key {
        let entry = entries.first { $0.usedFrom <= now } ?? entries[entries.count - 1]
        return entry.key
    }

    /// Whether the code is of a good key. A key that is not used yet is good too: the clock of the
    /// gateway that used it may be ahead.
    func recognises(_ challenge: UnverifiedChallenge, at now: Int64) -> Bool {
        entries.contains { now < $0.goodUntil && challenge.isAuthentic(under: $0.key) }
    }
}
