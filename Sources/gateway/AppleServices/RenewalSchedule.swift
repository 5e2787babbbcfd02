package import KeyStore

/// Which receipt is renewed when, as a pure machine.
///
/// What is due stands in the store, so that a restart forgets nothing and begins no flood: calls
/// are made one after the other at the rate, whatever is due. The machine asks the store for the
/// best few (``RenewalQueue``) and holds no receipt. A fault that says nothing about a key makes
/// all of its environment wait, and one of the store all there are.
///
/// Times are milliseconds since 1970, and may go back.
package struct RenewalSchedule {
    /// What the driver does next.
    package enum Action: Hashable, Sendable {
        /// Offer what is due, then call ``scanEnded(at:)`` or ``scanFailed(at:random:)``.
        case scan
        /// Send this one, then call ``ended(_:_:at:random:)`` or ``dropped(_:)``.
        case renew(DueReceipt)
        /// Nothing before this moment, unless something ends or is asked for.
        case wait(until: Int64)
    }

    /// How a try ended.
    package enum End: Hashable, Sendable {
        /// A newer receipt is stored, which Apple renews from `notBefore` on and takes until
        /// `expiresAt`; seconds.
        case renewed(notBefore: Int64, expiresAt: Int64)
        /// What came is not the newer receipt of the key.
        case invalid
        case early
        case rejected
        case gone
        /// Apple can't be asked about this key, as this gateway is configured.
        case unasked(ReceiptState.Outcome)
        /// It says nothing about the key.
        case outage(retryAfter: Int?)
    }

    private static let second: Int64 = 1_000
    private static let day: Int64 = 86_400
    /// Receipts of one environment that are renewed at once: each has a host of its own, and one
    /// that hangs keeps the other's waiting for nothing.
    package static let concurrentMax = 8
    /// Receipts that are held ahead: what the rate takes in five minutes, within these bounds.
    private static let (aheadMin, aheadMax) = (256, 16_384)
    /// Between two looks at the store when all is done.
    private static let lookPause = 60 * second
    /// The same while an environment waits: a look reads all that is due of it, too.
    private static let lookPausePaused = 5 * lookPause
    /// Between two looks whatever is asked for.
    private static let lookPauseMin = second
    /// After a rejection, in seconds. It is no fault that passes by itself.
    package static let rejectedSeconds: Int64 = 7 * day
    /// After 304, after an answer that is not the key's newer receipt, and where nothing is asked.
    package static let earlySeconds: Int64 = day

    /// What follows from the settings.
    private struct Pace {
        let interval: Int64
        let everySeconds: Int64
        let limit: Int

        init(_ settings: RenewalSettings) {
            let perSecond = min(max(settings.perSecond, 1), 1_000)
            // Rounded up: the rate is the most that is called.
            interval = (second + Int64(perSecond) - 1) / Int64(perSecond)
            limit = min(max(perSecond * 300, aheadMin), aheadMax)
            everySeconds = max(settings.every.components.seconds, day)
        }
    }

    private var pace: Pace
    /// Of the environments of which something was due.
    private var lines: [KeyEnvironment: RenewalLine] = [:]
    /// Why all lines wait: the pause of the store.
    private var store = RenewalLine(limit: 1)
    /// The rows that are being renewed.
    private var inFlight: [Int64: KeyEnvironment] = [:]
    private var isScanning = false
    /// When the next call may be made, at the rate.
    private var nextCallAt: Int64
    private var nextLookAt: Int64

    /// Begins at `now`, with nothing known.
    package init(_ settings: RenewalSettings, at now: Int64, random: UInt64) {
        pace = Pace(settings)
        nextLookAt = now
        // Gateways that start together do not call together, and one that starts at once behind its
        // last call keeps the rate.
        nextCallAt = now + pace.interval + Self.share(of: Self.second, random)
    }

    /// Takes other settings. What is under way goes on, and what waits does.
    package mutating func take(_ settings: RenewalSettings) { pace = Pace(settings) }

    /// Receipts that are being renewed.
    package var inFlightCount: Int { inFlight.count }

    /// Until when nothing is called for the keys of an environment; `nil` when it is.
    package func pause(of environment: KeyEnvironment, at now: Int64) -> Int64? {
        let until = max(store.pausedUntil, lines[environment]?.pausedUntil ?? .min)
        return until > now ? until : nil
    }

    /// What is to be done now.
    package mutating func next(at now: Int64, random: UInt64) -> Action {
        clamp(now)
        guard !isScanning, !lines.keys.allSatisfy(isFull) || lines.isEmpty else {
            return .wait(until: now + Self.lookPause)
        }
        guard store.pausedUntil <= now else { return .wait(until: store.pausedUntil) }
        let best = best(at: now)
        if best == nil || hasGap(at: now), nextLookAt <= now {
            isScanning = true
            empty(Array(lines.keys))
            return .scan
        }
        guard let best else {
            let ends = lines.values.map(\.pausedUntil).filter { $0 > now }
            return .wait(until: min(nextLookAt, ends.min() ?? nextLookAt))
        }
        if nextCallAt > now { return .wait(until: nextCallAt) }
        guard let due = lines[best]?.queue.next() else { return .wait(until: nextLookAt) }
        inFlight[due.row] = due.environment
        // Never faster than the rate, and a little slower at random.
        let interval = pace.interval
        nextCallAt = max(nextCallAt, now) + interval + Self.share(of: interval / 8, random)
        if nextCallAt - now > 2 * interval { nextCallAt = now + interval }
        return .renew(due)
    }

    /// The environment whose next receipt goes before those of the others.
    private func best(at now: Int64) -> KeyEnvironment? {
        var best: (environment: KeyEnvironment, rank: RenewalQueue.Rank)?
        for environment in KeyEnvironment.allCases {
            guard let line = lines[environment], line.pausedUntil <= now, !isFull(environment),
                let rank = line.queue.nextRank
            else { continue }
            if let other = best, rank < other.rank { continue }
            best = (environment, rank)
        }
        return best?.environment
    }

    private func isFull(_ environment: KeyEnvironment) -> Bool {
        inFlight.count { $0.value == environment } >= Self.concurrentMax
    }

    /// Whether a line is empty of which more is due than it could hold.
    private func hasGap(at now: Int64) -> Bool {
        lines.contains { environment, line in
            line.pausedUntil <= now && line.queue.count == 0 && line.queue.leftOver > 0
                && !isFull(environment)
        }
    }

    /// Forgets what is held ahead.
    private mutating func empty(_ environments: [KeyEnvironment]) {
        let queue = RenewalQueue(limit: pace.limit)
        for environment in environments { lines[environment]?.queue = queue }
    }

    /// The wall clock may have been put back: nothing waits for longer than it would have.
    private mutating func clamp(_ now: Int64) {
        nextCallAt = min(nextCallAt, now + 2 * Self.second)
        nextLookAt = min(nextLookAt, now + Self.lookPausePaused)
        store.clamp(now)
        for environment in lines.keys { lines[environment]?.clamp(now) }
    }

    // MARK: The store

    /// A receipt that is due, while a scan goes on.
    package mutating func offer(_ due: DueReceipt, at now: Int64) {
        guard inFlight[due.row] == nil else { return }
        lines[due.environment, default: RenewalLine(limit: pace.limit)].queue
            .offer(due, at: now / Self.second)
    }

    package mutating func scanEnded(at now: Int64) {
        isScanning = false
        for environment in lines.keys { lines[environment]?.queue.close() }
        let open = lines.values.filter { $0.pausedUntil <= now }
        if open.contains(where: { $0.queue.leftOver > 0 }) {
            // What did not fit is looked for as soon as there is room, which takes minutes.
            nextLookAt = now + Self.lookPauseMin
        } else {
            nextLookAt = now + (open.count < lines.count ? Self.lookPausePaused : Self.lookPause)
        }
    }

    package mutating func scanFailed(at now: Int64, random: UInt64) {
        isScanning = false
        empty(Array(lines.keys))
        storeFailed(at: now, random: random)
    }

    /// An operator wants this one renewed before all others. It may be held ahead already; then the
    /// second look at it finds that nothing is due.
    package mutating func ask(_ due: DueReceipt, at now: Int64) {
        // A scan that goes on finds it by itself.
        guard !isScanning, inFlight[due.row] == nil else { return }
        var line = lines[due.environment] ?? RenewalLine(limit: pace.limit)
        guard line.queue.count < 2 * pace.limit else { return }
        line.queue.putBack(due, at: now / Self.second)
        lines[due.environment] = line
    }

    /// The store could not be read, or a change not be written: nothing is called before it is
    /// likely to work again.
    package mutating func storeFailed(at now: Int64, random: UInt64) {
        store.failed(retryAfter: nil, at: now, random)
    }

    /// A change was written.
    package mutating func storeWorked() { store.worked() }

    // MARK: Calls

    /// The receipt is not there any more, or its key was revoked: no call was made.
    package mutating func dropped(_ due: DueReceipt) { inFlight[due.row] = nil }

    /// A try ended.
    ///
    /// - Returns: what is to be stored of the key, but for a newer receipt; `nil` for nothing.
    package mutating func ended(
        _ due: DueReceipt,
        _ end: End,
        at now: Int64,
        random: UInt64
    ) -> ReceiptState? {
        inFlight[due.row] = nil
        var state = ReceiptState()
        let second = now / Self.second
        state.triedAt = second
        switch end {
        case .renewed(let notBefore, let expiresAt):
            lines[due.environment]?.worked()
            state.outcome = .renewed
            state.dueAt = moment(after: second, notBefore, expiresAt, random)
        case .invalid:
            lines[due.environment]?.worked()
            state.outcome = .invalid
            state.dueAt = second + Self.earlySeconds + Self.share(of: Self.day / 8, random)
        case .early:
            lines[due.environment]?.worked()
            state.outcome = .early
            state.dueAt = second + Self.earlySeconds + Self.share(of: Self.day / 8, random)
        case .unasked(let outcome):
            state.outcome = outcome
            state.dueAt = second + Self.earlySeconds + Self.share(of: Self.day / 8, random)
        case .gone:
            lines[due.environment]?.worked()
            state.outcome = .gone
            state.dueAt = nil
        case .rejected:
            state.outcome = .rejected
            // One that has ended will never be taken.
            let isEnded = due.expiresAt.map { $0 <= second } ?? false
            state.dueAt =
                isEnded ? nil : second + Self.rejectedSeconds + Self.share(of: Self.day, random)
            // What is due after the pause is searched again: what is held ahead may be of the
            // kind that was rejected, and would keep all others back.
            if lines[due.environment]?.rejected(at: now) == true, !isScanning {
                empty([due.environment])
            }
        case .outage(let seconds):
            // A scan that goes on finds it by itself.
            if !isScanning { lines[due.environment]?.queue.putBack(due, at: second) }
            lines[due.environment]?.failed(retryAfter: seconds, at: now, random)
            return nil
        }
        return state
    }

    /// When a receipt is due that was just renewed: after `every`, and a little later at random,
    /// but long before it ends.
    private func moment(
        after second: Int64,
        _ notBefore: Int64,
        _ expiresAt: Int64,
        _ random: UInt64
    ) -> Int64 {
        let wanted = second + pace.everySeconds + Self.share(of: pace.everySeconds / 10, random)
        let latest = expiresAt - RenewalQueue.urgentSeconds
        return max(min(wanted, latest), notBefore)
    }

    /// 0…`whole`, at random.
    private static func share(of whole: Int64, _ random: UInt64) -> Int64 {
        Int64(random % UInt64(max(whole, 0) + 1))
    }
}

/// How receipts are renewed: `apple.receipts` of the configuration.
package struct RenewalSettings: Hashable, Sendable {
    /// `renew`: default true. Nothing is renewed without a key for Apple.
    package var renews = true
    /// `rate`: calls a second at most. Default 5/s, 1/s…1000/s.
    package var perSecond = 5
    /// `every`: how long a receipt is left alone after it was renewed, at least. Default 7d,
    /// 1d…60d. Apple gives no newer one within a day, and takes none after 90 days.
    package var every = Duration.seconds(7 * 86_400)

    package init() {}
}

/// The receipts of the keys of one environment: those that go next, and until when all of them
/// wait. Apple has a host for each environment, and each fails by itself.
///
/// Times are milliseconds since 1970.
struct RenewalLine {
    /// After calls that failed one after the other.
    private static let backOff = BackOff(first: .seconds(30), most: .seconds(3_600))
    /// Rejections in a row that are taken for a fault of the configuration, and the pause then.
    static let rejectionsMax = 8
    private static let rejectionPause: Int64 = 3_600_000
    /// The longest that an answer may have all keys wait, in seconds.
    static let retryAfterMax = 3_600

    var queue: RenewalQueue
    private(set) var pausedUntil: Int64 = .min
    private var failures = 0
    private var rejections = 0

    /// - `limit`: the most receipts that are held ahead.
    init(limit: Int) { queue = RenewalQueue(limit: limit) }

    /// A call failed, or what it brought could not be stored.
    ///
    /// - `seconds`: what the answer asks for, if it does.
    mutating func failed(retryAfter seconds: Int?, at now: Int64, _ random: UInt64) {
        // Calls that were under way together end together, and are one failure.
        if pausedUntil <= now {
            failures += 1
            let pause = Self.backOff.pause(after: failures, random: random)
            pausedUntil = now + pause.components.seconds * 1_000
        }
        let asked = Int64(min(max(seconds ?? 0, 0), Self.retryAfterMax)) * 1_000
        pausedUntil = max(pausedUntil, now + asked)
    }

    /// A receipt was rejected; `true` when there were enough in a row that all wait now.
    mutating func rejected(at now: Int64) -> Bool {
        rejections += 1
        guard rejections >= Self.rejectionsMax else { return false }
        pausedUntil = now + Self.rejectionPause
        return true
    }

    mutating func worked() {
        failures = 0
        rejections = 0
    }

    /// The wall clock may have been put back: nothing waits for longer than it would have.
    mutating func clamp(_ now: Int64) {
        pausedUntil = min(pausedUntil, now + Int64(Self.retryAfterMax) * 1_000)
    }
}
