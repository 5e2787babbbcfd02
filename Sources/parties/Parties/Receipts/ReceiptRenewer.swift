import AppAttest
import Cryptography
import Dispatch
import Encodings
import KeyStore
import OutboundCalls
import Rules
import Synchronization

/// Renews stored receipts: performs the actions of ``RenewalSchedule``, on its own queue.
///
/// It reads one receipt at a time from the store, sends it through the client for Apple, verifies
/// the answer, and gives it to the writer. None of this runs on an event loop. The state changes
/// only on the queue, except for the end; its lock is for readers.
final class ReceiptRenewer: Sendable {
    /// Its settings. A reload replaces them.
    struct Settings: Sendable {
        var renewal: RenewalSettings
        /// The apps; their test authorities verify their receipts.
        var apps: [AppPolicy]
        var teams: AppleTeams
        /// The time of a call, from the hand-in to the answer.
        var timeout = Duration.seconds(30)
        /// The roots for Apple's receipts.
        var roots = [AppleRoots.rootG3]
    }

    /// A notice for the operator.
    enum Notice: Sendable {
        /// No receipts are renewed for the keys of an environment for a while.
        case paused(KeyEnvironment, seconds: Int64)
        /// The new receipt of this key was refused.
        case refused(KeyID, ReceiptRefusal)
        /// Apple does not accept the receipt of this key.
        case rejected(KeyID, status: Int)
        case unreadable(JournalError)

        enum Kind: Hashable { case paused(KeyEnvironment), refused, rejected, unreadable }

        var kind: Kind {
            switch self {
            case .paused(let environment, _): .paused(environment)
            case .refused: .refused
            case .rejected: .rejected
            case .unreadable: .unreadable
            }
        }
    }

    /// What it works on.
    struct Parts {
        let keys: KeyTable
        let receipts: any ReceiptStore
        let apple: any AppleCalling
        let clock: RenewalClock
    }

    /// A receipt on its way to Apple.
    private struct Attempt {
        let due: DueReceipt
        let kept: KeptReceipt
    }

    private struct State {
        var settings: Settings
        var schedule: RenewalSchedule
        /// Rows whose change waits for the disk.
        var storing: Set<Int64> = []
        /// Rows with a new metric, of which the other gateways of the store don't know.
        var untold: [Int64] = []
        var facts = ReceiptFacts()
        var isEnded = false
        /// The time of the last notice of each kind, milliseconds.
        var toldAt: [Notice.Kind: Int64] = [:]
        /// A timer with a lower number than this one does nothing.
        var timer: UInt64 = 0
    }

    /// The longest wait without reading the clock again.
    private static let waitMax: Int64 = 5_000
    /// Milliseconds between two notices of a kind.
    private static let tellPause: Int64 = 60_000
    /// Apple: a receipt that was just obtained is at most five minutes old.
    private static let ageMax: Int64 = 300

    /// All events of the schedule are handled on it.
    let queue = DispatchQueue(label: "portcullis.receipts", qos: .utility)
    private let keys: KeyTable
    private let receipts: any ReceiptStore
    private let apple: any AppleCalling
    private let clock: RenewalClock
    private let telling: @Sendable (Notice) -> Void
    private let state: Mutex<State>

    init(_ settings: Settings, _ parts: Parts, tell: @escaping @Sendable (Notice) -> Void) {
        (keys, receipts) = (parts.keys, parts.receipts)
        (apple, clock) = (parts.apple, parts.clock)
        telling = tell
        let random = RandomBytes.word()
        let schedule = RenewalSchedule(settings.renewal, at: clock.now(), random: random)
        state = Mutex(State(settings: settings, schedule: schedule))
    }

    /// Reports a notice, unless one of its kind was reported in the last minute, or the renewer has
    /// ended.
    private func tell(_ notice: Notice) {
        let now = clock.now()
        let isNews = state.withLock { state in
            guard !state.isEnded else { return false }
            if let last = state.toldAt[notice.kind], abs(now - last) < Self.tellPause {
                return false
            }
            state.toldAt[notice.kind] = now
            return true
        }
        if isNews { telling(notice) }
    }

    /// Begins. Idempotent.
    func start() {
        keys.watchChanges { [weak self] in
            guard let self else { return }
            queue.async { self.lookForAsked() }
        }
        queue.async { self.pump() }
    }

    /// Replaces the settings. Calls under way continue.
    func reload(_ settings: Settings) {
        queue.async { [self] in
            state.withLock { state in
                state.schedule.take(settings.renewal)
                state.settings = settings
            }
            pump()
        }
    }

    /// Makes no further call. Results of calls under way are dropped: those receipts are renewed
    /// again.
    func end() { state.withLock { $0.isEnded = true } }

    /// The counts so far.
    var facts: ReceiptFacts { state.withLock(\.facts) }

    // MARK: On the queue

    private func pump() {
        dispatchPrecondition(condition: .onQueue(queue))
        while true {
            let now = clock.now()
            let action = state.withLock { state -> RenewalSchedule.Action? in
                guard !state.isEnded, state.settings.renewal.renews else { return nil }
                return state.schedule.next(at: now, random: RandomBytes.word())
            }
            switch action {
            case nil: return
            case .scan: scan(now)
            case .renew(let due): renew(due, now)
            case .wait(let until): return wait(max(1, min(until - now, Self.waitMax)))
            }
        }
    }

    private func wait(_ milliseconds: Int64) {
        let number = state.withLock { state in
            state.timer &+= 1
            return state.timer
        }
        clock.run(queue, milliseconds) { [weak self] in
            guard let self, state.withLock({ $0.timer == number }) else { return }
            pump()
        }
    }

    private func scan(_ now: Int64) {
        var (due, overdue) = (0, 0)
        // The schedule is moved out, so that no lock is held while the store is read.
        var schedule = state.withLock(\.schedule)
        do throws(JournalError) {
            try receipts.forEachDue(at: now / 1_000) { one in
                due += 1
                if let end = one.expiresAt, end <= now / 1_000 { overdue += 1 }
                schedule.offer(one, at: now)
            }
            schedule.scanEnded(at: clock.now())
        } catch {
            schedule.scanFailed(at: clock.now(), random: RandomBytes.word())
            tell(.unreadable(error))
        }
        state.withLock { state in
            state.schedule = schedule
            state.facts.due = due
            state.facts.overdue = overdue
        }
    }

    private func lookForAsked() {
        let now = clock.now()
        var asked: [DueReceipt] = []
        do throws(JournalError) {
            try receipts.forEachAsked { asked.append($0) }
        } catch {
            return tell(.unreadable(error))
        }
        guard !asked.isEmpty else { return }
        state.withLock { state in
            for one in asked where !state.storing.contains(one.row) {
                state.schedule.ask(one, at: now)
            }
        }
        pump()
    }

    private func renew(_ due: DueReceipt, _ now: Int64) {
        let kept: KeptReceipt?
        do throws(JournalError) {
            kept = try receipts.receipt(ofRow: due.row)
        } catch {
            tell(.unreadable(error))
            return state.withLock { state in
                state.schedule.dropped(due)
                state.schedule.storeFailed(at: now, random: RandomBytes.word())
            }
        }
        // The key may have been revoked, or its receipt renewed, since the store was read.
        guard let kept, let dueAt = kept.state.dueAt, dueAt <= now / 1_000,
            !state.withLock({ $0.storing.contains(due.row) })
        else { return state.withLock { $0.schedule.dropped(due) } }
        let settings = state.withLock(\.settings)
        let call = AppleCall(
            service: .receipts,
            environment: kept.environment,
            teamID: settings.teams.team(of: kept.appID),
            body: Base64.encode(kept.receipt.span),
            timeout: settings.timeout
        )
        let attempt = Attempt(due: due, kept: kept)
        apple.send(call) { [weak self] reply in
            guard let self else { return }
            queue.async { self.answered(attempt, reply) }
        }
    }

    private func answered(_ attempt: Attempt, _ reply: CallReply) {
        guard !state.withLock(\.isEnded) else { return }
        switch ReceiptReply(reply) {
        case .receipt(let bytes): take(bytes, of: attempt)
        // Not a receipt: it is refused like an unreadable one.
        case .unreadable: take([], of: attempt)
        case .early: ended(attempt, .early, label: ReceiptState.Outcome.early.rawValue)
        case .gone: ended(attempt, .gone, label: ReceiptState.Outcome.gone.rawValue)
        case .rejected(let status):
            tell(.rejected(attempt.kept.keyID, status: status))
            ended(attempt, .rejected, label: ReceiptState.Outcome.rejected.rawValue)
        case .unasked(let why): ended(attempt, .unasked(why), label: why.rawValue)
        case .outage(let seconds): ended(attempt, .outage(retryAfter: seconds), label: "outage")
        }
    }

    /// Verifies the new receipt.
    private func take(_ bytes: [UInt8], of attempt: Attempt) {
        do throws(ReceiptRefusal) {
            let newer = try verified(bytes, kept: attempt.kept, now: clock.now())
            let label = ReceiptState.Outcome.renewed.rawValue
            ended(attempt, newer.end, label: label, newer: newer)
        } catch {
            tell(.refused(attempt.kept.keyID, error))
            ended(attempt, .invalid, label: error.reason.rawValue)
        }
    }

    private func verified(
        _ bytes: [UInt8],
        kept: KeptReceipt,
        now: Int64
    ) throws(ReceiptRefusal) -> RenewedReceipt {
        let settings = state.withLock(\.settings)
        let app = settings.apps.first { $0.id == kept.appID }
        let moment = UnixTime(seconds: now / 1_000)
        return try UnverifiedReceipt(bytes: bytes).renewed(
            appIDs: [kept.appID],
            key: kept.publicKey,
            roots: kept.environment == .test ? app?.testRoots ?? [] : settings.roots,
            exchange: UnverifiedReceipt.Exchange(
                environment: kept.expectedEnvironment,
                previousCreation: kept.creationTime,
                freshness: .init(now: moment, secondsMax: Self.ageMax)
            )
        )
    }

    /// A try has ended: the schedule gets the result, and the key's new state is stored.
    private func ended(
        _ attempt: Attempt,
        _ end: RenewalSchedule.End,
        label: String,
        newer: RenewedReceipt? = nil
    ) {
        let (due, kept, now) = (attempt.due, attempt.kept, clock.now())
        let (stored, pause) = state.withLock { state -> (ReceiptState?, Int64?) in
            let before = state.schedule.pause(of: kept.environment, at: now)
            state.facts.add(label, metric: newer?.riskMetric)
            let stored = state.schedule.ended(due, end, at: now, random: RandomBytes.word())
            if stored != nil { state.storing.insert(due.row) }
            let pause = state.schedule.pause(of: kept.environment, at: now)
            return (stored, before == nil ? pause : nil)
        }
        if let pause { tell(.paused(kept.environment, seconds: (pause - now) / 1_000)) }
        if var stored {
            if let newer { stored.take(newer) }
            let change = ReceiptChange(
                row: kept.row,
                keyID: kept.keyID,
                receipt: newer?.receipt.bytes,
                state: stored
            )
            let isNewer = newer != nil
            keys.renew(change) { [weak self] result in
                guard let self else { return }
                queue.async { self.stored(due.row, isNewer: isNewer, result) }
            }
        }
        pump()
    }

    private func stored(_ row: Int64, isNewer: Bool, _ result: Result<Void, JournalError>) {
        let now = clock.now()
        let untold = state.withLock { state -> [Int64] in
            state.storing.remove(row)
            guard case .success = result else {
                state.facts.add("unstored", metric: nil)
                state.schedule.storeFailed(at: now, random: RandomBytes.word())
                return []
            }
            state.schedule.storeWorked()
            if isNewer { state.untold.append(row) }
            return state.untold
        }
        announce(untold)
        pump()
    }

    /// Makes the other gateways read the new metrics. The next renewal tries again what fails.
    private func announce(_ rows: [Int64]) {
        guard !rows.isEmpty else { return }
        do throws(JournalError) {
            try receipts.announce(rows)
        } catch {
            // An outage is reported where keys are read.
            return
        }
        state.withLock { $0.untold = [] }
    }
}

extension RenewedReceipt {
    fileprivate var end: RenewalSchedule.End {
        .renewed(notBefore: notBefore.seconds, expiresAt: expirationTime.seconds)
    }
}

extension ReceiptState {
    /// Takes the facts of the newer receipt.
    fileprivate mutating func take(_ newer: RenewedReceipt) {
        createdAt = newer.receipt.fields.creationTime.seconds
        notBefore = newer.notBefore.seconds
        expiresAt = newer.expirationTime.seconds
        riskMetric = newer.riskMetric
        metricAt = createdAt
    }
}

extension KeptReceipt {
    /// The required value of field 7; `nil` for keys of a test authority.
    fileprivate var expectedEnvironment: AttestationEnvironment? {
        switch environment {
        case .production: .production
        case .development: .development
        case .test: nil
        }
    }

    /// The creation of the stored receipt, from its own field. `nil` for an unreadable one.
    fileprivate var creationTime: UnixTime? {
        do throws(ReceiptRefusal) {
            return try UnverifiedReceipt(bytes: receipt).fields.creationTime
        } catch {
            return state.createdAt.map { UnixTime(seconds: $0) }
        }
    }
}

/// The clock of the renewal of receipts. A test can let it run faster.
struct RenewalClock: Sendable {
    /// Milliseconds since 1970.
    var now: @Sendable () -> Int64
    /// Runs a closure on a queue, after this number of milliseconds.
    var run: @Sendable (DispatchQueue, Int64, @escaping @Sendable () -> Void) -> Void

    /// Timers of the system.
    init(now: @escaping @Sendable () -> Int64) {
        self.now = now
        run = { queue, milliseconds, body in
            let pause = DispatchTimeInterval.milliseconds(Int(clamping: milliseconds))
            queue.asyncAfter(deadline: .now() + pause, execute: body)
        }
    }
}
