import Foundation

/// A challenge, and until when it is used.
struct KeptChallenge: Sendable {
    let text: String
    let until: Date
}

/// Has a challenge for each request: those that came with answers, else new ones from the gateway,
/// several at a time.
actor ChallengeKeeper {
    private let configuration: PortcullisConfiguration
    private let calls: GatewayCalls
    private var pool: ChallengePool
    private var waiting: [SharedWork<KeptChallenge?>] = []
    private var callCount = 0
    /// When the first call that is under way began; `nil` where there is none.
    private var askedSince: Date?
    private var lifetime: Double
    /// Until when the gateway is not asked.
    private var holdUntil = Date.distantPast
    /// How many calls in a row brought no new challenge.
    private var fruitless = 0

    /// The most calls at a time.
    static let callsMax = 4
    /// The most challenges that the gateway gives at once.
    static let countMax = 8
    /// The longest time that the gateway is not asked because of a `Retry-After`, in seconds.
    static let holdMax: Double = 60
    /// The first time that the gateway is not asked after a call that brought nothing new, in
    /// seconds. It doubles with each such call.
    static let fruitlessHold: Double = 1
    /// The number of such calls above which it grows no more: 32 seconds.
    static let fruitlessMax = 6

    init(_ configuration: PortcullisConfiguration, calls: GatewayCalls) {
        self.configuration = configuration
        self.calls = calls
        pool = ChallengePool(limit: configuration.limits.challengesKept)
        lifetime = configuration.limits.challengeLifetime.seconds
    }

    private var now: Date { configuration.clock.now }

    /// A hold that ends later than any was made before the clock was set back.
    private var isHeld: Bool {
        let rest = holdUntil.timeIntervalSince(now)
        return rest > 0 && rest <= Self.holdMax
    }

    /// A challenge; `nil` when there is none in time.
    ///
    /// - isHasty: whether the time counts from when the gateway was asked, be it for another
    ///   request.
    func challenge(within seconds: Double, isHasty: Bool = false) async -> KeptChallenge? {
        if let challenge = pool.take(now: now) { return challenge }
        guard !isHeld else { return nil }
        let work = SharedWork<KeptChallenge?>()
        waiting.append(work)
        ask()
        let start = isHasty ? askedSince ?? now : now
        let time = start.addingTimeInterval(seconds)
        let challenge = await work.value(until: time, by: configuration.clock)
        waiting.removeAll { $0 === work }
        return challenge ?? nil
    }

    /// Keeps a challenge that came with an answer.
    func add(_ text: String) {
        guard !text.isEmpty, text.utf8.count <= 256 else { return }
        give([text])
    }

    /// Fetches challenges ahead.
    func fill() async {
        guard pool.count == 0, !isHeld else { return }
        beganCall()
        let count = min(max(configuration.limits.challengesAsked, 1), Self.countMax)
        let work = SharedWork<Void>()
        // Not in this task: requests may wait for its challenges when it is cancelled.
        Task {
            await call(count: count)
            work.end(with: ())
        }
        let time = now.addingTimeInterval(configuration.limits.callTime.seconds)
        _ = await work.value(until: time, by: configuration.clock)
    }

    /// Forgets all of them, after the gateway did not know one.
    func clear() { pool.clear() }

    private func give(_ texts: [String]) {
        // Shorter than they live, so that none ends on its way.
        let until = now.addingTimeInterval(lifetime - min(lifetime / 5, 10))
        for text in texts where !pool.hasUsed(text) {
            if waiting.isEmpty {
                pool.add(text, until: until)
            } else {
                pool.remember(text)
                waiting.removeFirst().end(with: KeptChallenge(text: text, until: until))
            }
        }
    }

    private func ask() {
        while !isHeld, callCount < Self.callsMax, waiting.count > callCount * Self.countMax {
            let missing = waiting.count - callCount * Self.countMax
            let wanted = max(missing, configuration.limits.challengesAsked)
            beganCall()
            Task { await call(count: min(max(wanted, 1), Self.countMax)) }
        }
    }

    private func beganCall() {
        callCount += 1
        if askedSince == nil { askedSince = now }
    }

    private func call(count: Int) async {
        let result = await calls.challenges(count: count)
        callCount -= 1
        askedSince = callCount == 0 ? nil : now
        switch result {
        case .success(let answer):
            if answer.expires_in.isFinite, answer.expires_in > 0 { lifetime = answer.expires_in }
            // A gateway or a cache that repeats itself would be asked for ever.
            guard answer.challenges.contains(where: { !pool.hasUsed($0) }) else {
                fruitless = min(fruitless + 1, Self.fruitlessMax)
                hold(for: Self.fruitlessHold * Double(1 << (fruitless - 1)))
                // Calls under way may still bring some.
                if callCount == 0 { giveUp() }
                return
            }
            fruitless = 0
            give(answer.challenges)
            ask()
            if callCount == 0 { giveUp() }
        case .failure(let failure):
            let seconds: Double? =
                switch failure {
                case .refused(_, _, let seconds), .unreachable(let seconds): seconds
                }
            if let seconds { hold(for: seconds) }
            giveUp()
        }
    }

    /// Makes no call for a time, in seconds.
    private func hold(for seconds: Double) {
        holdUntil = now.addingTimeInterval(min(seconds, Self.holdMax))
    }

    /// Tells all who wait that there is no challenge.
    private func giveUp() {
        let waiting = self.waiting
        self.waiting = []
        for work in waiting { work.end(with: nil) }
    }
}

/// Challenges that were given and not used yet. The newest is used first: after a restart of the
/// gateway the older ones are worth nothing.
struct ChallengePool: Sendable {
    /// Oldest first.
    private var entries: [KeptChallenge] = []
    /// Those that were used last. A cached answer brings the one that it came with again.
    private var used: [String] = []
    private let limit: Int

    /// The most used challenges that are remembered.
    static let usedMax = 64

    init(limit: Int) { self.limit = limit }

    var count: Int { entries.count }

    /// Keeps a challenge; the oldest gives way.
    mutating func add(_ text: String, until: Date) {
        guard limit > 0, !used.contains(text), !entries.contains(where: { $0.text == text })
        else { return }
        if entries.count >= limit { entries.removeFirst() }
        entries.append(KeptChallenge(text: text, until: until))
    }

    /// The newest challenge that is still good.
    mutating func take(now: Date) -> KeptChallenge? {
        entries.removeAll { $0.until <= now }
        guard let challenge = entries.popLast() else { return nil }
        remember(challenge.text)
        return challenge
    }

    /// Remembers a challenge as used.
    mutating func remember(_ text: String) {
        if used.count >= Self.usedMax { used.removeFirst() }
        used.append(text)
    }

    /// Whether a challenge was used before.
    func hasUsed(_ text: String) -> Bool { used.contains(text) }

    mutating func clear() { entries = [] }
}
