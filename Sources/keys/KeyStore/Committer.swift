internal import DeviceKey
internal import Dispatch
internal import Encodings
internal import Synchronization
internal import Telemetry
internal import Tokens

/// The one writer: commits waiting changes, in one transaction, on its own serial queue.
package final class Committer: Sendable {
    private let journal: any KeyJournal
    private let limits: Limits
    /// See ``KeyJournal/answerTime``.
    private let answerTime: UInt64?
    private let queue: DispatchQueue
    /// Used only for its timed wait; it is never signalled.
    private let rests = DispatchSemaphore(value: 0)
    private let pending = Mutex(PendingChanges())
    /// Held while tickets end, with a batch or because their time is over. Taken before all other
    /// locks.
    private let ending = Mutex<Void>(())
    /// The writer's own queue may be stuck in the journal.
    private let alarms = DispatchQueue(label: "portcullis.store.alarms")
    private let listeners = Mutex<[any CommitListener]>([])
    private let watcher = Mutex<(@Sendable (JournalError?) -> Void)?>(nil)
    private let finder = Mutex<(@Sendable (_ asked: [KeyID], _ found: [KeyRow]) -> Void)?>(nil)

    package init(journal: any KeyJournal, limits: Limits = Limits()) {
        self.journal = journal
        self.limits = limits
        answerTime = (limits.answerTime ?? journal.answerTime)?.nanosecondCount
        queue = DispatchQueue(label: "portcullis.store.writer")
    }

    /// Adds a listener. It gets the results of commits from the next batch on.
    package func register(_ listener: some CommitListener) {
        listeners.withLock { $0.append(listener) }
    }

    /// Reports, on the writer's queue, when transactions begin to fail or fail for another reason.
    /// It reports `nil` when all failed changes are written.
    package func watch(_ body: @escaping @Sendable (JournalError?) -> Void) {
        watcher.withLock { $0 = body }
    }

    /// The state of the writer.
    package var statistics: CommitStatistics {
        pending.withLock { pending in
            var statistics = pending.statistics
            statistics.depth = pending.depth
            statistics.waiting = pending.uses.count + pending.lookUps.count
            return statistics
        }
    }

    /// Whether changes can't be written at present.
    package var isDegraded: Bool { pending.withLock { $0.statistics.isDegraded } }

    // MARK: Taking changes

    /// Whether a change was taken.
    enum Intake {
        case taken(CommitTicket)
        case declined
        case full
    }

    /// Takes the change that `body` makes. If there is no room, `body` is not called.
    ///
    /// - `body`: makes the change real in memory, or declines with `nil`. Called under a
    ///   lock.
    func append(_ durability: Durability, _ body: () -> CounterChange?) -> Intake {
        pending.withLock { pending in
            guard pending.depth < limits.changesMax else {
                pending.statistics.turnedAway += 1
                return .full
            }
            guard let change = body() else { return .declined }
            return .taken(pending.append(change, durability))
        }
    }

    /// Takes a use that the journal decides; `nil` when there is no room.
    func append(_ use: WaitingUse) -> CommitTicket? {
        pending.withLock { pending in
            guard pending.depth < limits.changesMax, pending.uses.count < limits.usesMax else {
                pending.statistics.turnedAway += 1
                return nil
            }
            defer { setAlarm(&pending) }
            return pending.append(use, now: Self.now)
        }
    }

    /// Whether there is room for another change.
    package var hasRoom: Bool { pending.withLock { $0.depth < limits.changesMax } }

    /// Looks up a key; `nil` when there is no room. The ticket is `admitted` when the finder knows
    /// whether the key exists.
    func lookUp(_ keyID: KeyID) -> CommitTicket? {
        pending.withLock { pending in
            guard pending.lookUps.count < limits.lookUpsMax else {
                pending.statistics.turnedAway += 1
                return nil
            }
            defer { setAlarm(&pending) }
            return pending.append(keyID, now: Self.now)
        }
    }

    /// Reports, on the writer's queue and before the tickets end, which keys were looked up and
    /// which of them are stored.
    func find(_ body: @escaping @Sendable (_ asked: [KeyID], _ found: [KeyRow]) -> Void) {
        finder.withLock { $0 = body }
    }

    /// Takes an enrolment, and starts the writer. `completion` is called on the writer's queue.
    ///
    /// - `challenge`: the challenge that the journal spends with it.
    func enrol(
        _ record: KeyRecord,
        spending challenge: ChallengeSerial?,
        _ completion: @escaping @Sendable (Result<EnrolledRow?, JournalError>) -> Void
    ) {
        let isTaken = takes(\.enrolments.count, most: limits.enrolmentsMax) { pending in
            pending.append((record, challenge, completion))
            start(&pending)
        }
        if !isTaken { refuse("too many enrolments wait", completion) }
    }

    /// Takes the changes of a renewal, and starts the writer, which may wait for more. `completion`
    /// is called on the writer's queue.
    func renew(
        _ change: ReceiptChange,
        _ completion: @escaping @Sendable (Result<Void, JournalError>) -> Void
    ) {
        let isTaken = takes(\.renewals.count, most: limits.renewalsMax) { pending in
            pending.append((change, completion))
            if case .idle = pending.phase { schedule(&pending) }
        }
        if !isTaken { refuse("too many renewed receipts wait", completion) }
    }

    /// Takes a token that is to be spent, and starts the writer. `completion` is called on the
    /// writer's queue, with whether it was fresh.
    func spend(
        _ token: SpentToken,
        _ completion: @escaping @Sendable (Result<Bool, JournalError>) -> Void
    ) {
        let isTaken = takes(\.spendings.count, most: limits.spendingsMax) { pending in
            pending.append((token: token, completion: completion))
            start(&pending)
        }
        if !isTaken { refuse("too many tokens wait", completion) }
    }

    /// Takes a change, unless the most of its kind wait.
    ///
    /// - Returns: whether it was taken.
    private func takes(
        _ waiting: (PendingChanges) -> Int,
        most: Int,
        append: (inout PendingChanges) -> Void
    ) -> Bool {
        pending.withLock { pending in
            guard waiting(pending) < most else {
                pending.statistics.turnedAway += 1
                return false
            }
            append(&pending)
            return true
        }
    }

    private func refuse<Value: Sendable>(
        _ why: String,
        _ completion: @escaping @Sendable (Result<Value, JournalError>) -> Void
    ) {
        queue.async { completion(.failure(JournalError(.busy, why))) }
    }

    // MARK: Starting

    /// Starts the writer when there are changes to write and it does not run. Cheap: event loops
    /// call it with each iteration.
    ///
    /// - isBusy: whether requests wait for the event loop that calls.
    package func kick(isBusy: Bool = false) {
        pending.withLock { pending in
            pending.pace.isBusy = isBusy
            start(&pending)
        }
    }

    private func start(_ pending: inout PendingChanges) {
        switch pending.phase {
        case .running: return
        case .delayed where !pending.isAwaited && pending.changes.count < limits.behindCount:
            return
        case .idle, .delayed: schedule(&pending)
        }
    }

    /// Chooses the writer's next step.
    private func schedule(_ pending: inout PendingChanges) {
        if pending.isAwaited || pending.changes.count >= limits.behindCount {
            pending.phase = .running
            queue.async { self.drain() }
            return
        }
        guard
            !pending.changes.isEmpty || !pending.retained.isEmpty || !pending.renewals.isEmpty
                || pending.statistics.isDegraded
        else {
            pending.phase = .idle
            return
        }
        pending.phase = .delayed
        // There is one timer at a time. A timer of an earlier wait may end this wait too early. Or
        // it ends it too late, by at most the longest delay of a retry.
        guard !pending.hasTimer else { return }
        pending.hasTimer = true
        let delay =
            pending.failureCount == 0
            ? limits.behindDelay
            : limits.retryDelay * (1 << min(pending.failureCount - 1, 4))
        // Weak, so that a timer does not keep a journal and its lock alive.
        let interval = DispatchTimeInterval.nanoseconds(Int(delay.nanosecondCount))
        queue.asyncAfter(deadline: .now() + interval) { [weak self] in self?.delayIsOver() }
    }

    private func delayIsOver() {
        let starts = pending.withLock { pending in
            pending.hasTimer = false
            guard case .delayed = pending.phase else { return false }
            pending.phase = .running
            pending.retryIsDue = true
            return true
        }
        if starts { drain() }
    }

    // MARK: Writing

    /// Commits until only changes are left that should wait. Between batches it pauses, so that
    /// changes gather. The phase stays `running` then, so that no event loop starts the writer
    /// again.
    private func drain() {
        dispatchPrecondition(condition: .onQueue(queue))
        while true {
            let now = DispatchTime.now()
            let rest = pending.withLock { $0.pace.rest(now: now.uptimeNanoseconds) }
            // The thread is the writer's own in any case, and a timer would wake two more.
            if rest > 0 { _ = rests.wait(timeout: now + .nanoseconds(Int(rest))) }
            commitNext()
            let goesOn = pending.withLock { pending in
                if pending.isAwaited || pending.failureCount == 0 && !pending.retained.isEmpty {
                    return true
                }
                pending.phase = .idle
                schedule(&pending)
                return false
            }
            // When the new phase is `running`, another drain is in the queue.
            if !goesOn { return }
        }
    }

    /// Commits one batch. Returns why it failed; also `nil` when there was nothing to write.
    @discardableResult
    private func commitNext() -> JournalError? {
        let start = Self.now
        let (batch, refused) = pending.withLock { pending in
            let refused = pending.pause(now: start)
            return (pending.take(retainedMax: limits.retriesMax, now: start), refused)
        }
        guard !batch.isEmpty else { return nil }
        let changes = PendingChanges.merged(batch.changes + batch.retried)
        let uses = DecidedUses(batch.uses)
        let result = refused.map { .failure($0) } ?? write(changes, uses: uses.asked, batch: batch)
        let attempt = Attempt(batch: batch, changes: changes, start: start, isTried: refused == nil)
        ending.withLock { _ in end(attempt, uses, with: result) }
        if result.failure == nil { settle() }
        return result.failure
    }

    /// A commit of a batch.
    private struct Attempt {
        let batch: PendingChanges.Batch
        /// Its changes, merged.
        let changes: [CounterChange]
        let start: UInt64
        /// Whether the journal was asked.
        let isTried: Bool
    }

    /// The journal has answered, has failed for the whole batch, or was not tried.
    private func end(
        _ attempt: Attempt,
        _ uses: DecidedUses,
        with result: Result<CommitAnswer, JournalError>
    ) {
        let (batch, changes) = (attempt.batch, attempt.changes)
        var uses = uses
        uses.take(result.map(\.uses))
        let duration = Self.now &- attempt.start
        let news = pending.withLock { pending -> StandingChange? in
            guard attempt.isTried else {
                pending.refused(changes + uses.retained)
                return nil
            }
            pending.statistics.sizes.add(UInt64(batch.count))
            pending.statistics.durations.add(duration)
            let before = pending.failing
            switch result {
            case .success(let answer):
                pending.statistics.lookUps += UInt64(batch.lookUps.count)
                pending.statistics.foundLookUps += UInt64(answer.found.count)
                pending.succeeded(
                    changes.count + uses.usedCount,
                    enrolments: batch.enrolments.count,
                    but: uses.retained,
                    uses.error
                )
            case .failure(let error):
                pending.failed(changes + uses.retained, error)
                let pause = limits.pause(after: pending.failureCount).nanosecondCount
                pending.pausedUntil = pause == 0 ? 0 : attempt.start &+ duration &+ pause
            }
            return StandingChange(before, pending.failing)
        }
        if let news { watcher.withLock({ $0 })?(news.error) }
        for (index, enrolment) in batch.enrolments.enumerated() {
            enrolment.completion(result.map { $0.enrolments[index] })
        }
        for renewal in batch.renewals { renewal.completion(result.map { _ in }) }
        for (index, spending) in batch.spendings.enumerated() {
            spending.completion(result.map { $0.tokens[index] })
        }
        if case .success(let answer) = result, !batch.lookUps.isEmpty {
            finder.withLock({ $0 })?(batch.lookUps.map(\.keyID), answer.found)
        }
        report(batch, uses, others: result.failure == nil ? .admitted : .unassured)
    }

    private func write(
        _ changes: [CounterChange],
        uses: [CounterAdvance],
        batch: PendingChanges.Batch
    ) -> Result<CommitAnswer, JournalError> {
        var contents = JournalBatch(
            changes: changes,
            uses: uses,
            enrolments: batch.enrolments.map(\.record),
            receipts: batch.renewals.map(\.change),
            tokens: batch.spendings.map(\.token)
        )
        contents.challenges = batch.enrolments.map(\.challenge)
        contents.lookUps = batch.lookUps.map(\.keyID)
        // Nothing is left when every use has become impossible while it waited.
        guard !contents.isEmpty else { return .success(CommitAnswer()) }
        do throws(JournalError) {
            let answer = try journal.commit(contents)
            precondition(
                answer.enrolments.count == batch.enrolments.count
                    && answer.uses.count == uses.count
                    && answer.tokens.count == batch.spendings.count,
                "Committer: an answer for each use, each enrolment and each token"
            )
            return .success(answer)
        } catch {
            return .failure(error)
        }
    }

    private func report(
        _ batch: PendingChanges.Batch,
        _ uses: DecidedUses,
        others decision: ConsumeDecision
    ) {
        guard batch.isAwaited, let tickets = batch.tickets else { return }
        let report =
            uses.isEmpty
            ? CommitReport(tickets, all: decision)
            : CommitReport(tickets, uses.decisions, others: decision)
        tell(report)
    }

    private func settle() {
        do throws(JournalError) {
            try journal.settle()
        } catch {
            // No caller waits for it and nothing is lost. A lasting fault shows in the next commit
            // too.
            pending.withLock { $0.statistics.lastError = error }
        }
    }

    /// Writes all waiting changes, retained values included, and returns when they are durable.
    ///
    /// Blocks. Called at a clean stop and by tests, never on an event loop or the writer's queue.
    ///
    /// - Throws: why a batch failed; its changes stay retained.
    package func flush() throws(JournalError) {
        dispatchPrecondition(condition: .notOnQueue(queue))
        let failure: JournalError? = queue.sync {
            while true {
                let isDone = pending.withLock { pending in
                    pending.retryIsDue = true
                    return pending.depth == 0 && pending.enrolments.isEmpty
                        && pending.renewals.isEmpty && pending.lookUps.isEmpty
                        && pending.spendings.isEmpty
                }
                if isDone { return nil }
                if let failure = commitNext() { return failure }
            }
        }
        if let failure { throw failure }
    }
}

// Tickets that end without a batch.
extension Committer {
    /// Monotonic nanoseconds.
    private static var now: UInt64 { DispatchTime.now().uptimeNanoseconds }

    // MARK: Too late

    /// Sets the timer for the deadline of the next use or look-up, unless it is set.
    private func setAlarm(_ pending: inout PendingChanges) {
        guard let answerTime, !pending.hasAlarm, let oldest = pending.oldest else { return }
        pending.hasAlarm = true
        let deadline = DispatchTime(uptimeNanoseconds: oldest &+ answerTime)
        alarms.asyncAfter(deadline: deadline) { [weak self] in self?.alarmRang(answerTime) }
    }

    private func alarmRang(_ answerTime: UInt64) {
        ending.withLock { _ in expire(before: Self.now, answerTime) }
        pending.withLock { pending in
            pending.hasAlarm = false
            setAlarm(&pending)
        }
    }

    /// Ends the tickets whose time is over, whatever the journal does with their batch. The journal
    /// may still use the counters of these uses. So they are also used in memory, where they are
    /// free: the assertion is good once.
    private func expire(before now: UInt64, _ answerTime: UInt64) {
        guard now > answerTime else { return }
        let expired = pending.withLock { $0.expire(through: now - answerTime) }
        guard let tickets = expired.tickets else { return }
        let error = JournalError(.busy, "no answer in time")
        var decisions: [(ticket: CommitTicket, decision: ConsumeDecision)] = []
        var changes: [CounterChange] = []
        for use in expired.uses {
            let (decision, change) = use.waiting.settle(.failed(error))
            decisions.append((use.ticket, decision))
            if let change { changes.append(change) }
        }
        let news = pending.withLock { pending in
            let before = pending.failing
            pending.expired(changes, error)
            return StandingChange(before, pending.failing)
        }
        if let news { watcher.withLock({ $0 })?(news.error) }
        tell(CommitReport(tickets, decisions, others: .unavailable))
    }

    // MARK: After a hand-over

    /// The ticket of a use that the successor decides.
    func ticketOfSuccessor() -> CommitTicket { pending.withLock { $0.nextTicket() } }

    /// Reports the successor's decisions to the listeners.
    func tell(_ report: CommitReport) {
        for listener in listeners.withLock({ $0 }) { listener.commitEnded(report) }
    }
}

/// The writer has begun to fail, fails for another reason, or no longer fails.
private struct StandingChange {
    let error: JournalError?

    /// `nil` where nothing has changed.
    init?(_ before: JournalError?, _ after: JournalError?) {
        guard before != after else { return nil }
        error = after
    }
}

extension Result {
    fileprivate var failure: Failure? {
        if case .failure(let failure) = self { failure } else { nil }
    }
}
