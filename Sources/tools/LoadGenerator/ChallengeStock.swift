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

// Challenges from the answers, and from the endpoint where those do not suffice.
extension LoadLoop {
    /// Bytes of a call for eight challenges, the most of one call.
    private func callMessage() -> Message {
        Message(to: plan.challengesTarget, at: plan.host, #"{"purpose":"assertion","count":8}"#)
    }

    /// Asks for some challenges, on a connection that does nothing else, one call at a time.
    func callForChallenges() {
        guard !isCalling, MonotonicClock.nanoseconds >= callAt else { return }
        guard let caller, !caller.isClosed else {
            // The call follows when the connection is open.
            self.caller = LoadConnection.open(
                plan.server,
                for: self,
                timeout: plan.options.connectTimeout,
                on: loop
            )
            self.caller?.keepsContent = true
            if self.caller == nil { tell(.failed("the challenges endpoint: no connection")) }
            return
        }
        guard case .idle = caller.state else { return }
        isCalling = true
        caller.message = callMessage()
        caller.send([], timeout: plan.options.responseTimeout)
    }

    func challengesCame(_ connection: LoadConnection, _ now: UInt64) {
        isCalling = false
        if connection.isClosed { caller = nil }
        let answer = connection.answer
        guard answer.status == 200, let texts = Self.challenges(in: answer.content) else {
            callAt = now + max(UInt64(answer.retryAfter) * 1_000_000_000, Self.pause)
            if !isIssuing || isBlocked { alarm?.set(nanoseconds: callAt) }
            if answer.status != 429 { tell(.failed("the challenges endpoint: \(answer.text)")) }
            return
        }
        for text in texts { challenges.add(text, now: now) }
        if stale.wantsChallenge, let text = challenges.take(now: now),
            let foreign = ChallengeStock.ofAnotherStart(text)
        {
            stale.take(
                ofAnotherStart: staleProofs(foreign),
                aging: text,
                // A second more than its lifetime: the gateway's clock ticks in seconds.
                expired: now + plan.challengeLifetime + 1_500_000_000
            )
        }
        if isReady {
            if challenges.count < Self.challengeStock || challenges.count < challengesWanted {
                callForChallenges()
            }
            pump()
            tellIfGathered()
        } else {
            checkReadiness()
        }
    }

    /// The texts of `{"challenges":["…","…"],"expires_in":300}`.
    static func challenges(in content: [UInt8]) -> [[UInt8]]? {
        let places = (0..<8).compactMap { JSONPointer("/challenges/\($0)") }
        let texts = places.compactMap { $0.string(in: content.span) }
            .filter { $0.count == RequestTemplate.challengeCount }
        return texts.isEmpty ? nil : texts
    }

    func checkReadiness() {
        guard !isReady else { return }
        if challenges.count < challengesWanted { callForChallenges() }
        guard idle.count == connectionCount,
            challenges.count >= challengesWanted
        else { return }
        isReady = true
        challengesWanted = 0
        tell(.ready)
    }

    /// Gets this number of challenges before the start; the event loop reports `ready` when it has
    /// them.
    func gather(_ count: Int) {
        challengesWanted = count
        tellIfGathered()
        callForChallenges()
    }

    private func tellIfGathered() {
        guard challengesWanted > 0, challenges.count >= challengesWanted else { return }
        challengesWanted = 0
        tell(.ready)
    }

    /// Returns gathered challenges, to be signed before the start.
    func takeGathered(_ count: Int) -> (texts: [[UInt8]], goodUntil: UInt64) {
        challenges.takeOldest(count)
    }
}
