internal import Challenges
internal import DeviceKey

/// What waits for the writer. Lives under the committer's mutex.
struct PendingChanges {
    typealias Enrolment = (
        record: KeyRecord, challenge: ChallengeSerial?,
        completion: @Sendable (Result<EnrolledRow?, JournalError>) -> Void
    )

    typealias Renewal = (
        change: ReceiptChange, completion: @Sendable (Result<Void, JournalError>) -> Void
    )

    typealias Use = (ticket: CommitTicket, waiting: WaitingUse)

    typealias LookUp = (ticket: CommitTicket, keyID: KeyID)

    /// What the writer is about.
    enum Phase {
        /// Nothing is scheduled. Leaves to `delayed`, `running`.
        case idle
        /// A timer will start it. Leaves to `running`.
        case delayed
        /// It is on its queue, or will be. Leaves to `idle`, `delayed`.
        case running
    }

    /// What one transaction writes, and the tickets that wait for it.
    struct Batch {
        var changes: [CounterChange] = []
        /// What the journal is to decide, in the order of the tickets.
        var uses: [Use] = []
        /// Values of failed batches that are tried again with this one.
        var retried: [CounterChange] = []
        var enrolments: [Enrolment] = []
        var renewals: [Renewal] = []
        var lookUps: [LookUp] = []
        var tickets: ClosedRange<CommitTicket>?
        var isAwaited = false

        var isEmpty: Bool { count == 0 }
        var count: Int {
            changes.count + uses.count + retried.count + enrolments.count + renewals.count
                + lookUps.count
        }
    }

    var phase = Phase.idle
    /// A timer is set that will start the writer if it is `delayed` then.
    var hasTimer = false
    private(set) var changes: [CounterChange] = []
    private(set) var uses: [Use] = []
    private(set) var enrolments: [Enrolment] = []
    /// Receipts that were renewed, or not. Nobody waits for them; one that fails is renewed again.
    private(set) var renewals: [Renewal] = []
    private(set) var lookUps: [LookUp] = []
    /// The newest values of failed batches, by row.
    private(set) var retained: [Int64: CounterChange] = [:]
    /// Whether somebody waits for one of `changes`, `uses`, `enrolments` or `lookUps`.
    private(set) var isAwaited = false
    private var inFlightCount = 0
    private var lastTicket: UInt64 = 0
    private var takenTicket: UInt64 = 0
    var statistics = CommitStatistics()
    private(set) var pace = CommitPace()
    /// Failures in a row.
    var failureCount = 0
    /// When the pause after many failures is over, monotonic nanoseconds; 0 without one.
    var pausedUntil: UInt64 = 0
    /// The next batch takes retained values along, although the last one failed.
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
    mutating func append(_ use: WaitingUse) -> CommitTicket {
        let ticket = nextTicket()
        uses.append((ticket, use))
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

    mutating func append(_ keyID: KeyID) -> CommitTicket {
        let ticket = nextTicket()
        lookUps.append((ticket, keyID))
        isAwaited = true
        return ticket
    }

    /// Takes all that is new, and some of the retained values when it is time for them.
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
        batch.isAwaited = isAwaited
        isAwaited = false
        if lastTicket > takenTicket {
            batch.tickets =
                CommitTicket(number: takenTicket + 1)...CommitTicket(number: lastTicket)
        }
        takenTicket = lastTicket
        if failureCount == 0 || retryIsDue, !retained.isEmpty {
            batch.retried = Array(retained.values.prefix(retainedMax))
            for change in batch.retried { retained[change.row] = nil }
        }
        retryIsDue = false
        inFlightCount = batch.changes.count + batch.uses.count + batch.retried.count
        if !batch.isEmpty { pace.began(batch.changes.count + batch.uses.count, now: now) }
        return batch
    }

    /// The batch is on disk, but for changes that the journal has failed to decide: their values
    /// are kept.
    mutating func succeeded(
        _ count: Int,
        enrolments: Int,
        but failed: [CounterChange],
        _ error: JournalError?
    ) {
        inFlightCount = 0
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
        inFlightCount = 0
        failureCount += 1
        statistics.failures += 1
        statistics.isDegraded = true
        statistics.lastError = error
        retain(changes)
    }

    /// Why the next batch is not tried: the last error, in a pause. What a timer or the end asks
    /// for is tried in any case.
    func pause(now: UInt64) -> JournalError? {
        now < pausedUntil && !retryIsDue ? statistics.lastError : nil
    }

    /// The batch came in a pause and was not tried: its values are kept.
    mutating func refused(_ changes: [CounterChange]) {
        inFlightCount = 0
        retain(changes)
    }

    private mutating func retain(_ changes: [CounterChange]) {
        for change in changes {
            retained[change.row, default: change].merge(change)
        }
    }

    /// The changes with at most one for each key, in the order of their rows: neighbours share a
    /// page.
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

extension CounterChange {
    /// Adds another change of the same key. States are merged, so the order does not matter.
    package mutating func merge(_ other: CounterChange) {
        counters.merge(other.counters)
        usedAt = max(usedAt, other.usedAt)
    }
}
