internal import Encodings
package import KeyStore
package import OutboundCalls

/// The schedule of the renewal of receipts, as a pure machine.
///
/// The store has the due times, so that a restart forgets nothing. It also causes no flood: calls
/// are made one after the other at the rate, however many are due. The machine asks the store for
/// the first few (``RenewalQueue``) and holds no receipt. A fault that says nothing about a key
/// makes its whole environment wait, and a fault of the store makes all wait.
///
/// Times are milliseconds since 1970, and may go back.
package struct RenewalSchedule {
    /// The driver's next action.
    package enum Action: Hashable, Sendable {
        /// Offer the due receipts, then call ``scanEnded(at:)`` or ``scanFailed(at:random:)``.
        case scan
        /// Send this receipt, then call ``ended(_:_:at:random:)`` or ``dropped(_:)``.
        case renew(DueReceipt)
        /// No action before this moment, except after an end or a request.
        case wait(until: Int64)
    }

    /// The end of a try.
    package enum End: Hashable, Sendable {
        /// A newer receipt is stored. Apple renews it from `notBefore` on and accepts it until
        /// `expiresAt`; seconds.
        case renewed(notBefore: Int64, expiresAt: Int64)
        /// The content is not the newer receipt of the key.
        case invalid
        case early
        case rejected
        case gone
        /// The gateway can't ask Apple about this key with this configuration.
        case unasked(ReceiptState.Outcome)
        /// It says nothing about the key.
        case outage(retryAfter: Int?)
    }

    private static let second: Int64 = 1_000
    private static let day: Int64 = 86_400
    /// The most receipts of one environment that are renewed at the same time. Each environment has
    /// its own host, so that a hanging one does not delay the other.
    package static let concurrentMax = 8
    /// Receipts that are held ahead: those for five minutes at the rate, within these bounds.
    private static let (aheadMin, aheadMax) = (256, 16_384)
    /// The time between two queries of the store when all work is done.
    private static let lookPause = 60 * second
    /// The time between two queries while an environment waits: a query reads all of its due
    /// receipts too.
    private static let lookPausePaused = 5 * lookPause
    /// The least time between two queries, whatever is requested.
    private static let lookPauseMin = second
    /// The pause after a rejection, in seconds. Such a fault does not end by itself.
    package static let rejectedSeconds: Int64 = 7 * day
    /// The pause after 304, after an answer that is not the key's newer receipt, and where Apple
    /// can't be asked.
    package static let earlySeconds: Int64 = day

    /// Values that follow from the settings.
    private struct Pace {
        let interval: Int64
        let everySeconds: Int64
        let limit: Int

        init(_ settings: RenewalSettings) {
            let perSecond = min(max(settings.perSecond, 1), 1_000)
            // Rounded up: the rate is the limit.
            interval = (second + Int64(perSecond) - 1) / Int64(perSecond)
            limit = min(max(perSecond * 300, aheadMin), aheadMax)
            everySeconds = max(settings.every.components.seconds, day)
        }
    }

    private var pace: Pace
    /// The lines of environments with due receipts.
    private var lines: [KeyEnvironment: RenewalLine] = [:]
    /// The reason for which all lines wait: the pause of the store.
    private var store = RenewalLine(limit: 1)
    /// The rows under renewal.
    private var inFlight: [Int64: KeyEnvironment] = [:]
    private var isScanning = false
    /// The earliest time of the next call, by the rate.
    private var nextCallAt: Int64
    private var nextLookAt: Int64

    /// Begins at `now`, without knowledge.
    package init(_ settings: RenewalSettings, at now: Int64, random: UInt64) {
        pace = Pace(settings)
        nextLookAt = now
        // Gateways that start together do not call together, and a restarted gateway keeps the
        // rate.
        nextCallAt = now + pace.interval + Self.share(of: Self.second, random)
    }

    /// Takes new settings. Calls under way and waiting receipts stay.
    package mutating func take(_ settings: RenewalSettings) { pace = Pace(settings) }

    /// Receipts under renewal.
    package var inFlightCount: Int { inFlight.count }

    /// The time until which no calls are made for the keys of an environment; `nil` without a
    /// pause.
    package func pause(of environment: KeyEnvironment, at now: Int64) -> Int64? {
        let until = max(store.pausedUntil, lines[environment]?.pausedUntil ?? .min)
        return until > now ? until : nil
    }

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

    /// The environment whose next receipt comes before those of the others.
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

    /// Whether an empty line has more due receipts than it could hold.
    private func hasGap(at now: Int64) -> Bool {
        lines.contains { environment, line in
            line.pausedUntil <= now && line.queue.count == 0 && line.queue.leftOver > 0
                && !isFull(environment)
        }
    }

    /// Drops the receipts that are held ahead.
    private mutating func empty(_ environments: [KeyEnvironment]) {
        let queue = RenewalQueue(limit: pace.limit)
        for environment in environments { lines[environment]?.queue = queue }
    }

    /// The wall clock may have been set back: no wait becomes longer than it was.
    private mutating func clamp(_ now: Int64) {
        nextCallAt = min(nextCallAt, now + 2 * Self.second)
        nextLookAt = min(nextLookAt, now + Self.lookPausePaused)
        store.clamp(now)
        for environment in lines.keys { lines[environment]?.clamp(now) }
    }

    // MARK: The store

    /// A due receipt, during a scan.
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
            // Receipts that did not fit are looked up as soon as there is room, which takes
            // minutes.
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

    /// An operator wants this receipt renewed before all others. It may be held ahead already; then
    /// the second look-up finds that it is not due.
    package mutating func ask(_ due: DueReceipt, at now: Int64) {
        // A running scan finds it itself.
        guard !isScanning, inFlight[due.row] == nil else { return }
        var line = lines[due.environment] ?? RenewalLine(limit: pace.limit)
        guard line.queue.count < 2 * pace.limit else { return }
        line.queue.putBack(due, at: now / Self.second)
        lines[due.environment] = line
    }

    /// The store could not be read, or a change could not be written: no call is made before the
    /// store is likely to work again.
    package mutating func storeFailed(at now: Int64, random: UInt64) {
        store.failed(retryAfter: nil, at: now, random)
    }

    /// A change was written.
    package mutating func storeWorked() { store.worked() }

    // MARK: Calls

    /// The receipt is gone, or its key was revoked: no call was made.
    package mutating func dropped(_ due: DueReceipt) { inFlight[due.row] = nil }

    /// A try ended.
    ///
    /// - Returns: the state to store for the key, unless there is a newer receipt; `nil` for none.
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
            state.dueAt = moment(after: second, notBefore, expiresAt: expiresAt, random: random)
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
            // An expired one will never be accepted.
            let isEnded = due.expiresAt.map { $0 <= second } ?? false
            state.dueAt =
                isEnded ? nil : second + Self.rejectedSeconds + Self.share(of: Self.day, random)
            // The due receipts are looked up again after the pause. Those held ahead may all be of
            // the rejected kind, and would delay all others.
            if lines[due.environment]?.rejected(at: now) == true, !isScanning {
                empty([due.environment])
            }
        case .outage(let seconds):
            // A running scan finds it itself.
            if !isScanning { lines[due.environment]?.queue.putBack(due, at: second) }
            lines[due.environment]?.failed(retryAfter: seconds, at: now, random)
            return nil
        }
        return state
    }

    /// The next due time of a receipt that was just renewed: after `every`, and a little later at
    /// random, but long before it expires.
    private func moment(
        after second: Int64,
        _ notBefore: Int64,
        expiresAt: Int64,
        random: UInt64
    ) -> Int64 {
        let wanted = second + pace.everySeconds + Self.share(of: pace.everySeconds / 10, random)
        let latest = expiresAt - RenewalQueue.urgentSeconds
        return max(min(wanted, latest), notBefore)
    }

    /// 0…`whole`, random.
    private static func share(of whole: Int64, _ random: UInt64) -> Int64 {
        Int64(random % UInt64(max(whole, 0) + 1))
    }
}

/// The renewal of receipts: `apple.receipts` of the configuration.
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

/// The meaning of an answer to the renewal of a receipt (Apple, "Assessing fraud risk").
///
/// | status | meaning | the key | all keys |
/// |---|---|---|---|
/// | 200 | a newer receipt | it takes the old one's place, if it verifies | |
/// | 304 | before field 19 | asked again later | |
/// | 400 | bad receipt, or the other environment | left alone for days | wait when it goes on |
/// | 401 | the token is not accepted | | wait |
/// | 404 | no data of the key | never asked again | |
/// | 429, 5xx | too many calls, or out of order | | wait |
/// | none | no connection | | wait |
/// | not sent | no credential of the team, or no host | asked again after a day | |
/// | others | not documented | left alone for days | wait when it goes on |
package enum ReceiptReply: Hashable, Sendable {
    /// 200: the new receipt, still to be verified.
    case receipt([UInt8])
    /// 200, but the content is not a receipt in base64.
    case unreadable
    case early
    case rejected(status: Int)
    case gone
    /// The gateway can't ask Apple about this key: its team has no credential here, or its
    /// environment no host. It says nothing about other keys.
    case unasked(ReceiptState.Outcome)
    /// It says nothing about the key. `retryAfter` is in seconds, where the answer has it.
    case outage(retryAfter: Int?)

    package init(_ reply: CallReply) {
        switch reply {
        case .answered(status: 200, _, let body):
            // Apple's example has no line feeds, and none were seen.
            self = Base64.decode(body.span).map { .receipt($0) } ?? .unreadable
        case .answered(status: 304, _, _): self = .early
        case .answered(status: 404, _, _): self = .gone
        case .answered(status: 401, let seconds, _), .answered(status: 429, let seconds, _),
            .answered(status: 500..., let seconds, _):
            self = .outage(retryAfter: seconds)
        case .answered(let status, _, _): self = .rejected(status: status)
        case .unsent(.noCredential): self = .unasked(.noCredential)
        case .unsent(.noHost): self = .unasked(.noHost)
        case .unsent, .failed: self = .outage(retryAfter: nil)
        }
    }
}
