package import Challenges
package import DeviceKey

/// What keys are read from.
package protocol KeySource: AnyObject, Sendable {
    /// Gives all keys in batches, and returns the revision that they are of. A source that is read
    /// ahead gives later what another process has written since, as long as that leaves a trail:
    /// ``KeyJournal/beginTrail()``.
    func load(
        apps: AppNumbers,
        into body: ([KeyRow]) -> Void
    ) throws(JournalError) -> JournalRevision
}

/// Where keys and counters are durable.
///
/// `load` is called first and once, then `follow`, once. Then `commit` and `settle` are called on
/// the writer's queue only, and `changes` by the body of `follow`, never twice at once.
package protocol KeyJournal: KeySource {
    /// Who decides whether a counter and a challenge are free: the table, or ``commit(_:)``.
    var decides: DecisionMoment { get }

    /// The most keys that the table is to hold; others are looked up when they are used. `nil` for
    /// all keys: so it must be where the table decides.
    var keysMax: Int? { get }

    /// For how long the changes of others count as known after they were read; `nil` where they do
    /// until reading fails. After that a key that is in the table may be revoked, for all it knows.
    var knowledgeLifetime: Duration? { get }

    /// How long a use or a look-up waits for its answer, from when it was handed in, whatever
    /// stands in its way: another batch, a connection that is made. `nil` for as long as it takes.
    var answerTime: Duration? { get }

    /// The secret of the enrolment challenges, 32 bytes, which outlasts the process and is the same
    /// for all gateways that share the store; `nil` where nothing outlasts the process. It is drawn
    /// when it is first asked for. It is in no export, and it is never logged.
    ///
    /// Called at most once, behind `load`.
    func enrolmentSecret() throws(JournalError) -> [UInt8]?

    /// The secrets of the challenges that all gateways of the store share, the oldest first. When
    /// the newest is old the next one is drawn, which is used a little later, so that every gateway
    /// has read it by then. They are in no export, and they are never logged.
    ///
    /// Called behind `load` and then every few seconds, never on an event loop.
    ///
    /// - `now`: second of Unix time.
    /// - `lifetime`: of the challenge that is good for the longest time, in seconds.
    /// - Returns: `nil` where the process has secrets of its own.
    func sharedSecrets(now: Int64, lifetime: Int64) throws(JournalError) -> [SharedSecret]?

    /// Writes a batch, and returns when it is durable. Counters only rise. When it throws, nothing
    /// is known of what the batch has changed.
    ///
    /// Changes are written before uses are decided, and uses in their order: of two with one
    /// counter the first may be good.
    func commit(_ batch: JournalBatch) throws(JournalError) -> CommitAnswer

    /// Does a piece of the work that is left between commits. Called when the listeners have been
    /// told of the last commit. What is unfinished or has failed is continued at the next call.
    func settle() throws(JournalError)

    /// Calls `body` whenever another process may have revoked or imported keys, and from time to
    /// time, on a queue of the journal's own, never twice at once. `body` reads what has changed
    /// and returns why it could not.
    ///
    /// The other process learns that its change is obeyed when `body` has returned, and not
    /// before. What was committed between `load` and `follow` is read by the first call.
    func follow(_ body: @escaping @Sendable () -> JournalError?)

    /// Calls `body` when another process asks that all that waits is written, on the queue of
    /// ``follow(_:)``. `body` returns why it could not.
    func writeOnDemand(_ body: @escaping @Sendable () -> JournalError?)

    /// The keys that others have changed after that revision, in batches; returns the revision
    /// reached.
    ///
    /// - Throws: `replaced` when commands would read another store than this one.
    func changes(
        since revision: JournalRevision,
        into body: ([KeyRow]) -> Void
    ) throws(JournalError) -> JournalRevision

    /// The receipts, for their renewal; `nil` where nothing is renewed. Asked at most once, behind
    /// `load`.
    func receiptStore() throws(JournalError) -> (any ReceiptStore)?

    /// From now on another process may read the store ahead, and then what is written since.
    /// Returns when nothing is written any more that such a reader could miss.
    func beginTrail()

    /// No other process reads ahead any more.
    func endTrail()

    /// Stops using the store for another process of this gateway, until ``takeBack()`` or
    /// ``leave()``: commits fail, and commands wait. Nothing may wait for the writer.
    ///
    /// - Returns: what that process needs; `nil` where nothing outlasts this one.
    func lend() -> StoreLease?

    /// Goes on: the other process has not taken it, and is gone.
    func takeBack() throws(JournalError)

    /// The other process has it. Nothing is called afterwards, but ``close()``.
    func leave()

    /// How its connections stand; `nil` where there are none. Never waits.
    var databaseStatistics: DatabaseStatistics? { get }

    /// Ends the use of the journal. Nothing is called afterwards.
    func close()
}

extension KeyJournal {
    package var keysMax: Int? { nil }
    package var knowledgeLifetime: Duration? { nil }
    package var answerTime: Duration? { nil }
    package var databaseStatistics: DatabaseStatistics? { nil }
    package func writeOnDemand(_ body: @escaping @Sendable () -> JournalError?) {}
    package func sharedSecrets(
        now: Int64,
        lifetime: Int64
    ) throws(JournalError) -> [SharedSecret]? { nil }
    package func receiptStore() throws(JournalError) -> (any ReceiptStore)? { nil }
    package func beginTrail() {}
    package func endTrail() {}
    package func lend() -> StoreLease? { nil }
    package func takeBack() throws(JournalError) {}
    package func leave() {}
}

/// How far the changes by other processes have been read.
package struct JournalRevision: Comparable, Hashable, Sendable {
    package let number: Int64

    package init(_ number: Int64) { self.number = number }

    package static func < (left: Self, right: Self) -> Bool { left.number < right.number }
}

/// A key's counters after an admission.
package struct CounterChange: Hashable, Sendable {
    /// The key, as ``KeyRow/row``.
    package let row: Int64
    package var counters: CounterState
    /// Second of Unix time.
    package var usedAt: Int64

    package init(row: Int64, counters: CounterState, usedAt: Int64) {
        self.row = row
        self.counters = counters
        self.usedAt = usedAt
    }
}

/// What one transaction writes.
package struct JournalBatch: Sendable {
    /// At most one for each key, in the order of their rows.
    package var changes: [CounterChange]
    /// Uses that the journal decides; none when it decides nothing.
    package var uses: [CounterAdvance]
    package var enrolments: [KeyRecord]
    /// Of each enrolment in turn, what the journal spends with it: both or neither. Empty where it
    /// spends none.
    package var challenges: [ChallengeSerial?]
    /// In any order; a key may have several.
    package var receipts: [ReceiptChange]
    /// Keys that the table does not have; none when it has all. One may come twice.
    package var lookUps: [KeyID]

    package init(
        changes: [CounterChange] = [],
        uses: [CounterAdvance] = [],
        enrolments: [KeyRecord] = [],
        challenges: [ChallengeSerial?] = [],
        receipts: [ReceiptChange] = [],
        lookUps: [KeyID] = []
    ) {
        self.changes = changes
        self.uses = uses
        self.enrolments = enrolments
        self.challenges = challenges
        self.receipts = receipts
        self.lookUps = lookUps
    }

    /// What is spent with an enrolment; `nil` for nothing.
    package func challenge(at place: Int) -> ChallengeSerial? {
        challenges.indices.contains(place) ? challenges[place] : nil
    }

    var isEmpty: Bool {
        changes.isEmpty && uses.isEmpty && enrolments.isEmpty && receipts.isEmpty
            && lookUps.isEmpty
    }
}

/// What has come of a batch that is durable.
package struct CommitAnswer: Sendable {
    /// For each use in turn.
    package var uses: [UseAnswer]
    /// For each enrolment in turn, what is stored under its key id now; `nil` where there is
    /// nothing, since its challenge was spent before.
    package var enrolments: [EnrolledRow?]
    /// Those keys that were looked up and are stored, in any order.
    package var found: [KeyRow]

    package init(
        uses: [UseAnswer] = [],
        enrolments: [EnrolledRow?] = [],
        found: [KeyRow] = []
    ) {
        self.uses = uses
        self.enrolments = enrolments
        self.found = found
    }
}

/// What is stored after an enrolment.
package struct EnrolledRow: Sendable {
    package let key: KeyRow
    /// Whether this enrolment stored it, and not one before.
    package let isNew: Bool

    package init(key: KeyRow, isNew: Bool) {
        self.key = key
        self.isNew = isNew
    }
}

/// Why a journal failed.
package struct JournalError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Reason: String, Hashable, Sendable {
        /// Another process holds the write lock for too long.
        case busy
        /// The disk is full.
        case full
        /// What is on disk can't be right.
        case damaged
        /// The file can't be written or read.
        case unusable
        /// Files were replaced, deleted or put back to an older state while they were in use.
        case replaced
        case closed
    }

    package let reason: Reason
    /// For people; left out of `==`.
    package let detail: String

    /// What to do, where the journal knows better than ``reason`` tells; left out of `==`.
    package let next: String?

    /// Whether it may be over by itself, as when a database is started; left out of `==`.
    package let isOutage: Bool

    package init(_ reason: Reason, _ detail: String, next: String? = nil, isOutage: Bool = false) {
        self.reason = reason
        self.detail = detail
        self.next = next
        self.isOutage = isOutage
    }

    package static func == (left: Self, right: Self) -> Bool { left.reason == right.reason }

    package func hash(into hasher: inout Hasher) { hasher.combine(reason) }

    package var description: String { "\(reason.rawValue): \(detail)" }
}

/// Descriptors with which the next process of a gateway takes over a store that is in use.
package struct StoreLease: Sendable {
    /// Of the lock. It is held as long as one of both processes has it.
    package let lock: Int32
    /// Of the socket on which commands call.
    package let calls: Int32

    package init(lock: Int32, calls: Int32) {
        (self.lock, self.calls) = (lock, calls)
    }
}
