internal import DeviceKey
internal import Tokens

/// The changes that wait for the writer. Lives under the committer's mutex.
struct PendingChanges {
    typealias Enrolment = (
        record: KeyRecord, challenge: ChallengeSerial?,
        completion: @Sendable (Result<EnrolledRow?, JournalError>) -> Void
    )

    typealias Renewal = (
        change: ReceiptChange, completion: @Sendable (Result<Void, JournalError>) -> Void
    )

    typealias Spending = (
        token: SpentToken, completion: @Sendable (Result<Bool, JournalError>) -> Void
    )

    /// `since`: the time of the hand-in, in monotonic nanoseconds.
    typealias Use = (ticket: CommitTicket, waiting: WaitingUse, since: UInt64)

    typealias LookUp = (ticket: CommitTicket, keyID: KeyID, since: UInt64)

    /// Uses and look-ups that have waited too long. Waiting ones have left the queue. Those that
    /// are being written stay in their batch, whose answer comes too late for them.
    struct Expired {
        var uses: [Use] = []
        var lookUps: [LookUp] = []

        /// From the first to the last of them; `nil` for none.
        var tickets: ClosedRange<CommitTicket>? {
            let all = uses.map(\.ticket) + lookUps.map(\.ticket)
            guard let first = all.min(), let last = all.max() else { return nil }
            return first...last
        }
    }

    /// The state of the writer.
    enum Phase {
        /// Nothing is scheduled. Leaves to `delayed`, `running`.
        case idle
        /// A timer will start the writer. Leaves to `running`.
        case delayed
        /// The writer is on its queue, or will be. Leaves to `idle`, `delayed`.
        case running
    }

    /// The contents of one transaction, and the tickets that wait for it.
    struct Batch {
        var changes: [CounterChange] = []
        /// The uses that the journal decides, in the order of the tickets.
        var uses: [Use] = []
        /// Values of failed batches that are retried with this one.
        var retried: [CounterChange] = []
        var enrolments: [Enrolment] = []
        var renewals: [Renewal] = []
        var lookUps: [LookUp] = []
        var spendings: [Spending] = []
        var tickets: ClosedRange<CommitTicket>?
        var isAwaited = false

        var isEmpty: Bool { count == 0 }
        var count: Int {
            changes.count + uses.count + retried.count + enrolments.count + renewals.count
                + lookUps.count + spendings.count
        }
    }

    var phase = Phase.idle
    /// A timer is set. It starts the writer if the phase is `delayed` then.
    var hasTimer = false
    private(set) var changes: [CounterChange] = []
    private(set) var uses: [Use] = []
    private(set) var enrolments: [Enrolment] = []
    /// Results of renewals of receipts. No caller waits for them; a failed one is renewed again.
    private(set) var renewals: [Renewal] = []
    private(set) var lookUps: [LookUp] = []
    /// Tokens that are to be spent. A caller waits for each.
    private(set) var spendings: [Spending] = []
    /// Uses and look-ups that are being written and are still in time.
    private var writtenUses: [Use] = []
    private var writtenLookUps: [LookUp] = []
    /// A timer is set for the next deadline among them.
    var hasAlarm = false
    /// The newest values of failed batches, by row.
    private(set) var retained: [Int64: CounterChange] = [:]
    /// Whether a caller waits for one of `changes`, `uses`, `enrolments`, `lookUps` or `spendings`.
    private(set) var isAwaited = false
    private var inFlightCount = 0
    /// A batch was taken and has not ended.
    private var isWriting = false
    private var lastTicket: UInt64 = 0
    private var takenTicket: UInt64 = 0
    var statistics = CommitStatistics()
    var pace = CommitPace()
    /// Consecutive failures.
    var failureCount = 0
    /// The end of the pause after many failures, monotonic nanoseconds; 0 without a pause.
    var pausedUntil: UInt64 = 0
    /// The next batch includes retained values, although the last one failed.
    var retryIsDue = false

    /// Why the writer is degraded; `nil` when it is not.
    var failing: JournalError? { statistics.isDegraded ? statistics.lastError : nil }

    /// Changes that are not on disk.
    var depth: Int { changes.count + uses.count + inFlightCount + retained.count }

    mutating func append(_ change: CounterChange, _ durability: Durability) -> CommitTicket {
        changes.append(change)
        if durability == .awaited { isAwaited = true }
        return nextTicket()
    }

    /// Every use is awaited: only the journal's answer says whether it was good.
    mutating func append(_ use: WaitingUse, now: UInt64) -> CommitTicket {
        let ticket = nextTicket()
        uses.append((ticket, use, now))
        isAwaited = true
        return ticket
    }

    mutating func nextTicket() -> CommitTicket {
        lastTicket += 1
        return CommitTicket(number: lastTicket)
    }

    mutating func append(_ enrolment: Enrolment) {
        enrolments.append(enrolment)
        isAwaited = true
    }

    mutating func append(_ renewal: Renewal) { renewals.append(renewal) }

    mutating func append(_ spending: Spending) {
        spendings.append(spending)
        isAwaited = true
    }

    mutating func append(_ keyID: KeyID, now: UInt64) -> CommitTicket {
        let ticket = nextTicket()
        lookUps.append((ticket, keyID, now))
        isAwaited = true
        return ticket
    }

    /// The hand-in time of the oldest use or look-up without an answer; `nil` where all have one.
    var oldest: UInt64? {
        [
            writtenUses.first?.since, uses.first?.since, writtenLookUps.first?.since,
            lookUps.first?.since,
        ].compactMap(\.self).min()
    }

    /// Takes the uses and look-ups that were handed in at that moment or before. Tickets and
    /// moments ascend together, so these are the first ones of all.
    mutating func expire(through moment: UInt64) -> Expired {
        var expired = Expired()
        func move<Item>(_ list: inout [Item], to: inout [Item], by since: (Item) -> UInt64) {
            let over = list.prefix { since($0) <= moment }
            to += over
            list.removeFirst(over.count)
        }
        move(&writtenUses, to: &expired.uses, by: \.since)
        move(&uses, to: &expired.uses, by: \.since)
        move(&writtenLookUps, to: &expired.lookUps, by: \.since)
        move(&lookUps, to: &expired.lookUps, by: \.since)
        return expired
    }

    /// Keeps the changes of expired uses, to be written later.
    mutating func expired(_ changes: [CounterChange], _ error: JournalError) {
        retain(changes)
        statistics.lastError = error
        // Otherwise no batch would follow that shows that the journal answers again.
        if isWriting || !retained.isEmpty { statistics.isDegraded = true }
    }

    /// Takes all new changes, and some of the retained values when they are due. Where the journal
    /// has failed and there is nothing to write, it takes a trial when a retry is due.
    ///
    /// - `retainedMax`: the most retained values to take.
    /// - `now`: monotonic nanoseconds.
    mutating func take(retainedMax: Int, now: UInt64) -> Batch {
        var batch = Batch()
        swap(&batch.changes, &changes)
        swap(&batch.uses, &uses)
        swap(&batch.enrolments, &enrolments)
        swap(&batch.renewals, &renewals)
        swap(&batch.lookUps, &lookUps)
        swap(&batch.spendings, &spendings)
        (writtenUses, writtenLookUps) = (batch.uses, batch.lookUps)
        batch.isAwaited = isAwaited
        isAwaited = false
        if lastTicket > takenTicket {
            batch.tickets = CommitTicket(number: takenTicket + 1)...CommitTicket(number: lastTicket)
        }
        takenTicket = lastTicket
        if failureCount == 0 || retryIsDue, !retained.isEmpty {
            batch.retried = Array(retained.values.prefix(retainedMax))
            for change in batch.retried { retained[change.row] = nil }
        }
        // Nothing else would show that the journal works again.
        if retryIsDue, statistics.isDegraded, batch.isEmpty {
            batch.spendings = [(token: .trial, completion: { _ in })]
        }
        retryIsDue = false
        inFlightCount = batch.changes.count + batch.uses.count + batch.retried.count
        isWriting = !batch.isEmpty
        if !batch.isEmpty { pace.began(batch.changes.count + batch.uses.count, now: now) }
        return batch
    }

    /// The batch is on disk, except for changes that the journal has failed to decide: their values
    /// are kept.
    mutating func succeeded(
        _ count: Int,
        enrolments: Int,
        but failed: [CounterChange],
        _ error: JournalError?
    ) {
        ended()
        failureCount = 0
        pausedUntil = 0
        statistics.commits += 1
        statistics.counters += UInt64(count)
        statistics.enrolments += UInt64(enrolments)
        if let error { statistics.lastError = error }
        retain(failed)
        statistics.isDegraded = !retained.isEmpty
    }

    /// The batch failed: its values are kept.
    mutating func failed(_ changes: [CounterChange], _ error: JournalError) {
        ended()
        failureCount += 1
        statistics.failures += 1
        statistics.isDegraded = true
        statistics.lastError = error
        retain(changes)
    }

    /// Why the next batch is not tried: the last error, in a pause. A batch for a timer or for the
    /// end is always tried.
    func pause(now: UInt64) -> JournalError? {
        now < pausedUntil && !retryIsDue ? statistics.lastError : nil
    }

    /// The batch came in a pause and was not tried: its values are kept.
    mutating func refused(_ changes: [CounterChange]) {
        ended()
        retain(changes)
    }

    private mutating func ended() {
        inFlightCount = 0
        isWriting = false
        (writtenUses, writtenLookUps) = ([], [])
    }

    private mutating func retain(_ changes: [CounterChange]) {
        for change in changes { retained[change.row, default: change].merge(change) }
    }

    /// The changes, at most one for each key, in the order of their rows: neighbours share a page.
    static func merged(_ changes: [CounterChange]) -> [CounterChange] {
        var merged: [CounterChange] = []
        merged.reserveCapacity(changes.count)
        for change in changes.sorted(by: { $0.row < $1.row }) {
            if let last = merged.last, last.row == change.row {
                merged[merged.count - 1].merge(change)
            } else {
                merged.append(change)
            }
        }
        return merged
    }
}

/// The pauses of the writer between batches, so that a busy gateway commits larger batches less
/// often.
///
/// A transaction costs as much CPU time for one change as for forty. While event loops wait for
/// events, no change waits for others. Once requests wait for an event loop, or there are more than
/// 7,000 changes a second, the next batch begins when about 40 changes wait, or after 4 ms.
struct CommitPace {
    /// Changes a second from which the writer waits in any case.
    static let rateMin: UInt64 = 7_000
    /// Changes for which the writer waits.
    static let crowd: UInt64 = 40
    /// The longest time between the beginnings of two batches, nanoseconds.
    static let intervalMax: UInt64 = 4_000_000

    /// Whether requests wait for an event loop.
    var isBusy = false
    /// The beginning of the last batch, monotonic nanoseconds.
    private var begun: UInt64 = 0
    /// Changes a second, smoothed over some batches.
    private var rate: UInt64 = 0

    /// Nanoseconds from `now` until the next batch should begin; 0 for at once.
    func rest(now: UInt64) -> UInt64 {
        guard isBusy || rate >= Self.rateMin else { return 0 }
        let interval = min(Self.crowd * 1_000_000_000 / max(rate, 1), Self.intervalMax)
        let passed = now &- begun
        return passed < interval ? interval - passed : 0
    }

    /// A batch of `count` changes begins.
    mutating func began(_ count: Int, now: UInt64) {
        let interval = max(now &- begun, 1)
        begun = now
        // The number of waiting changes bounds a batch, so the product can't overflow.
        let sample = UInt64(count) &* 1_000_000_000 / interval
        rate = (rate &* 3 &+ sample) / 4
    }
}

extension CounterChange {
    /// Adds another change of the same key. States are merged, so the order does not matter.
    package mutating func merge(_ other: CounterChange) {
        counters.merge(other.counters)
        usedAt = max(usedAt, other.usedAt)
    }
}
