import Encodings

/// Challenges that wait to be signed, newest first.
struct ChallengePool {
    private var waiting: [(text: [UInt8], goodUntil: UInt64)] = []
    private let lifetime: UInt64

    /// The most that are kept; older ones are dropped.
    private static let countMax = 1 << 22
    /// A challenge is not used in the last part of its lifetime, since it must still arrive.
    private static let margin: UInt64 = 2_000_000_000

    /// - `lifetime`: nanoseconds.
    init(lifetime: UInt64) { self.lifetime = lifetime }

    var count: Int { waiting.count }

    /// Until when a challenge that came now may be sent.
    func goodUntil(from now: UInt64) -> UInt64 { now + lifetime - min(Self.margin, lifetime / 2) }

    mutating func add(_ text: [UInt8], now: UInt64) {
        if waiting.count == Self.countMax { waiting.removeFirst(Self.countMax / 2) }
        waiting.append((text, goodUntil(from: now)))
    }

    /// The newest challenge. If it is too old, all are.
    mutating func take(now: UInt64) -> [UInt8]? {
        guard let newest = waiting.popLast() else { return nil }
        guard newest.goodUntil > now else {
            waiting.removeAll(keepingCapacity: true)
            return nil
        }
        return newest.text
    }

    /// The oldest challenges, and until when the first of them may be sent.
    mutating func takeOldest(_ count: Int) -> (texts: [[UInt8]], goodUntil: UInt64) {
        let taken = waiting.prefix(count)
        waiting.removeFirst(taken.count)
        return (taken.map(\.text), taken.first?.goodUntil ?? .max)
    }

    /// The challenge in the form that another start of the gateway would have given it: the eight
    /// bytes of the epoch, after version and purpose, differ.
    static func ofAnotherStart(_ text: [UInt8]) -> [UInt8]? {
        guard var bytes = Base64.decode(text.span), bytes.count > 10 else { return nil }
        for place in 2..<10 { bytes[place] ^= 0xFF }
        return Base64.encodeURL(bytes)
    }
}
