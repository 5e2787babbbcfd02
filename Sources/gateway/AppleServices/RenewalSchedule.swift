package import KeyStore

/// Which receipt is renewed when, as a pure machine.
///
/// What is due stands in the store, so that a restart forgets nothing and begins no flood: calls
/// are made one after the other at the rate, whatever is due. The machine asks the store for the
/// best few (``RenewalQueue``) and holds no receipt. A fault that says nothing about a key makes
/// all of them wait.
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
        case unasked
        /// It says nothing about the key.
        case outage(retryAfter: Int?)
    }

    private static let second: Int64 = 1_000
    private static let day: Int64 = 86_400
    /// Receipts that are renewed at once.
    package static let concurrentMax = 8
    /// Receipts that are held ahead: what the rate takes in five minutes, within these bounds.
    private static let (aheadMin, aheadMax) = (256, 16_384)
    /// Between two looks at the store when nothing is left to do.
    private static let lookPause = 60 * second
    /// Between two looks whatever is asked for.
    private static let lookPauseMin = second
    /// After a rejection, in seconds. It is no fault that passes by itself.
    package static let rejectedSeconds: Int64 = 7 * day
    /// After 304, after an answer that is not the key's newer receipt, and where nothing is asked.
    package static let earlySeconds: Int64 = day
    /// Rejections in a row that are taken for a fault of the configuration, and the pause then.
    package static let rejectionsMax = 8
    private static let rejectionPause = 3_600 * second
    /// The longest that an answer may have all keys wait, in seconds.
    package static let retryAfterMax = 3_600
    private static let backOff = BackOff(first: .seconds(30), most: .seconds(3_600))

    private let interval: Int64
    private let everySeconds: Int64
    private let limit: Int
    private var queue: RenewalQueue
    private var inFlight: Set<Int64> = []
    private var isScanning = false
    /// When the next call may be made, at the rate.
    private var nextCallAt: Int64
    /// Why all wait, and until when.
    private var pausedUntil: Int64 = .min
    private var nextLookAt: Int64
    private var failures = 0
    private var rejections = 0

    /// Begins at `now`, with nothing known.
    package init(_ settings: RenewalSettings, at now: Int64, random: UInt64) {
        let perSecond = min(max(settings.perSecond, 1), 1_000)
        // Rounded up: the rate is the most that is called.
        interval = (Self.second + Int64(perSecond) - 1) / Int64(perSecond)
        limit = min(max(perSecond * 300, Self.aheadMin), Self.aheadMax)
        everySeconds = max(settings.every.components.seconds, Self.day)
        queue = RenewalQueue(limit: limit)
        nextLookAt = now
        // Gateways that start together do not call together.
        nextCallAt = now + Self.share(of: Self.second, random)
    }

    /// Receipts that are being renewed.
    package var inFlightCount: Int { inFlight.count }

    /// Why nothing is called, until when; `nil` when it is.
    package func pause(at now: Int64) -> Int64? { pausedUntil > now ? pausedUntil : nil }

    /// What is to be done now.
    package mutating func next(at now: Int64, random: UInt64) -> Action {
        clamp(now)
        guard !isScanning else { return .wait(until: now + Self.lookPause) }
        if pausedUntil > now { return .wait(until: pausedUntil) }
        if queue.count == 0, inFlight.count < Self.concurrentMax {
            guard nextLookAt <= now else { return .wait(until: nextLookAt) }
            isScanning = true
            queue = RenewalQueue(limit: limit)
            return .scan
        }
        guard inFlight.count < Self.concurrentMax else {
            return .wait(until: now + Self.lookPause)
        }
        if nextCallAt > now { return .wait(until: nextCallAt) }
        guard let due = queue.next() else { return .wait(until: nextLookAt) }
        inFlight.insert(due.row)
        // Never faster than the rate, and a little slower at random.
        nextCallAt = max(nextCallAt, now) + interval + Self.share(of: interval / 8, random)
        if nextCallAt - now > 2 * interval { nextCallAt = now + interval }
        return .renew(due)
    }

    /// The wall clock may have been put back: nothing waits for longer than it would have.
    private mutating func clamp(_ now: Int64) {
        nextCallAt = min(nextCallAt, now + 2 * Self.second)
        nextLookAt = min(nextLookAt, now + Self.lookPause)
        pausedUntil = min(pausedUntil, now + Int64(Self.retryAfterMax) * Self.second)
    }

    // MARK: The store

    /// A receipt that is due, while a scan goes on.
    package mutating func offer(_ due: DueReceipt, at now: Int64) {
        guard !inFlight.contains(due.row) else { return }
        queue.offer(due, at: now / Self.second)
    }

    package mutating func scanEnded(at now: Int64) {
        isScanning = false
        queue.close()
        // What did not fit is looked for as soon as there is room, which takes minutes.
        nextLookAt = now + (queue.leftOver > 0 ? Self.lookPauseMin : Self.lookPause)
    }

    package mutating func scanFailed(at now: Int64, random: UInt64) {
        isScanning = false
        queue = RenewalQueue(limit: limit)
        fail(at: now, random: random)
    }

    /// An operator wants this one renewed before all others. It may be held ahead already; then the
    /// second look at it finds that nothing is due.
    package mutating func ask(_ due: DueReceipt, at now: Int64) {
        // A scan that goes on finds it by itself.
        guard !isScanning, !inFlight.contains(due.row), queue.count < 2 * limit else { return }
        queue.putBack(due, at: now / Self.second)
    }

    /// The store could not be read, or a change not be written: nothing is called before it is
    /// likely to work again.
    package mutating func storeFailed(at now: Int64, random: UInt64) {
        fail(at: now, random: random)
    }

    // MARK: Calls

    /// The receipt is not there any more, or its key was revoked: no call was made.
    package mutating func dropped(_ due: DueReceipt) { inFlight.remove(due.row) }

    /// A try ended.
    ///
    /// - Returns: what is to be stored of the key, but for a newer receipt; `nil` for nothing.
    ///   It has no outcome where nothing was tried.
    package mutating func ended(
        _ due: DueReceipt,
        _ end: End,
        at now: Int64,
        random: UInt64
    ) -> ReceiptState? {
        inFlight.remove(due.row)
        var state = ReceiptState()
        let second = now / Self.second
        state.triedAt = second
        switch end {
        case .renewed(let notBefore, let expiresAt):
            worked()
            state.outcome = .renewed
            state.dueAt = moment(after: second, notBefore, expiresAt, random)
        case .invalid:
            worked()
            state.outcome = .invalid
            state.dueAt = second + Self.earlySeconds + Self.share(of: Self.day / 8, random)
        case .early:
            worked()
            state.outcome = .early
            state.dueAt = second + Self.earlySeconds + Self.share(of: Self.day / 8, random)
        case .unasked:
            state.triedAt = nil
            state.dueAt = second + Self.earlySeconds + Self.share(of: Self.day / 8, random)
        case .gone:
            worked()
            state.outcome = .gone
            state.dueAt = nil
        case .rejected:
            state.outcome = .rejected
            // One that has ended will never be taken.
            let isEnded = due.expiresAt.map { $0 <= second } ?? false
            state.dueAt =
                isEnded ? nil : second + Self.rejectedSeconds + Self.share(of: Self.day, random)
            rejections += 1
            if rejections >= Self.rejectionsMax { rest(until: now + Self.rejectionPause) }
        case .outage(let seconds):
            // A scan that goes on finds it by itself.
            if !isScanning { queue.putBack(due, at: second) }
            fail(at: now, random: random)
            let asked = Int64(min(max(seconds ?? 0, 0), Self.retryAfterMax)) * Self.second
            pausedUntil = max(pausedUntil, now + asked)
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
        let wanted = second + everySeconds + Self.share(of: everySeconds / 10, random)
        let latest = expiresAt - RenewalQueue.urgentSeconds
        return max(min(wanted, latest), notBefore)
    }

    /// Lets all wait. What is due then is looked for anew: what is held ahead may be of the kind
    /// that was rejected, and would keep all others back.
    private mutating func rest(until end: Int64) {
        pausedUntil = end
        if !isScanning { (queue, nextLookAt) = (RenewalQueue(limit: limit), end) }
    }

    private mutating func worked() {
        failures = 0
        rejections = 0
    }

    private mutating func fail(at now: Int64, random: UInt64) {
        // Calls that were under way together end together, and are one failure.
        guard pausedUntil <= now else { return }
        failures += 1
        let pause = Self.backOff.pause(after: failures, random: random)
        pausedUntil = now + pause.components.seconds * Self.second
    }

    /// 0…`whole`, at random.
    private static func share(of whole: Int64, _ random: UInt64) -> Int64 {
        Int64(random % UInt64(max(whole, 0) + 1))
    }
}
