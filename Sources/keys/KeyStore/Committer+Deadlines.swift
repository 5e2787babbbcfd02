internal import Dispatch
internal import Synchronization

/// The writer has begun to fail, fails for another reason, or no longer fails.
struct StandingChange {
    let error: JournalError?

    /// `nil` where nothing has changed.
    init?(_ before: JournalError?, _ after: JournalError?) {
        guard before != after else { return nil }
        error = after
    }
}

// Tickets that end without a batch.
extension Committer {
    /// Monotonic nanoseconds.
    static var now: UInt64 { DispatchTime.now().uptimeNanoseconds }

    // MARK: Too late

    /// Sets the timer for the deadline of the next use or look-up, unless it is set.
    func setAlarm(_ pending: inout PendingChanges) {
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
