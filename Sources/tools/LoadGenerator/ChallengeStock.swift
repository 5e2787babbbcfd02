import DequeModule
import Encodings
import EventLoops

/// Challenges that wait to be signed, newest first.
struct ChallengeStock {
    private var waiting: [(text: [UInt8], goodUntil: UInt64)] = []
    private let lifetime: UInt64

    /// The most that are kept; older ones are dropped.
    private static let countMax = 1 << 22
    /// A challenge is not used in the last part of its lifetime, since it must still arrive.
    private static let margin: UInt64 = 2_000_000_000

    /// - `lifetime`: nanoseconds.
    init(lifetime: UInt64) { self.lifetime = lifetime }

    var count: Int { waiting.count }

    mutating func add(_ text: [UInt8], now: UInt64) {
        if waiting.count == Self.countMax { waiting.removeFirst(Self.countMax / 2) }
        waiting.append((text, now + lifetime - min(Self.margin, lifetime / 2)))
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

extension Answer {
    /// The texts of `{"challenges":["…","…"],"expires_in":300}`; empty for another content.
    var challenges: [[UInt8]] {
        (0..<8).compactMap { JSONPointer("/challenges/\($0)")?.string(in: content.span) }
            .filter { $0.count == RequestTemplate.challengeCount }
    }
}

// Challenges from the answers, and from the endpoint where those do not suffice.
extension LoadLoop {
    func takeChallenge(_ now: UInt64) -> [UInt8]? {
        let newest = challenges.take(now: now)
        if challenges.count < Self.challengeStock { callForChallenges() }
        return newest
    }

    /// Asks for eight challenges, the most of one call, on a connection that does nothing else, one
    /// call at a time.
    func callForChallenges() {
        guard !isCalling, MonotonicClock.nanoseconds >= callAt else { return }
        callers.fill()
        // Without a connection, the call follows when it is open.
        guard let caller = callers.idle.popFirst() else { return }
        isCalling = true
        let document = #"{"purpose":"assertion","count":8}"#
        let message = Message(to: plan.challengesTarget, at: plan.request.host, document)
        caller.send(message, for: LoadRequest())
    }

    func challengesCame(_ answer: Answer, _ now: UInt64) {
        isCalling = false
        let texts = answer.status == 200 ? answer.challenges : []
        guard !texts.isEmpty else {
            callAt = now + max(UInt64(answer.retryAfter) * 1_000_000_000, ConnectionPool.pause)
            if !isIssuing || isBlocked { alarm?.set(nanoseconds: callAt) }
            if answer.status != 429 { tell(.failed("the challenges endpoint: \(answer.text)")) }
            return
        }
        for text in texts { challenges.add(text, now: now) }
        guard stale.wantsChallenge, let text = challenges.take(now: now),
            let foreign = ChallengeStock.ofAnotherStart(text)
        else { return }
        // A second more than its lifetime: the gateway's clock ticks in seconds.
        let expired = now + plan.challengeLifetime + 1_500_000_000
        stale.take(ofAnotherStart: staleProofs(foreign), aging: text, expired: expired)
    }
}
