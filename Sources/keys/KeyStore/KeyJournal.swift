package import DeviceKey
package import Tokens

/// The source from which keys are read.
package protocol KeySource: AnyObject, Sendable {
    /// Gives all keys in batches, and returns their revision. A source that is read ahead later
    /// gives the changes that another process has written since, while that leaves a trail:
    /// ``KeyJournal/beginTrail()``.
    func load(
        apps: AppNumbers,
        into body: ([KeyRow]) -> Void
    ) throws(JournalError) -> JournalRevision
}

/// The durable store of keys and counters.
///
/// `load` is called first and once, then `follow`, once. Then `commit` and `settle` are called on
/// the writer's queue only, and `changes` by the body of `follow`, never twice at once.
package protocol KeyJournal: KeySource {
    /// Whether the table or ``commit(_:)`` decides if a counter and a challenge are free.
    var decides: DecisionMoment { get }

    /// The most keys that the table holds; others are looked up when they are used. `nil` for all
    /// keys, which is required where the table decides.
    var keysMax: Int? { get }

    /// The time for which the changes of others count as known after they were read; `nil` for
    /// until reading fails. After that time a key in the table may be revoked without the table
    /// knowing.
    var knowledgeLifetime: Duration? { get }

    /// The time that a use or a look-up waits for its answer, from its hand-in, whatever delays it:
    /// another batch, or a new connection. `nil` for no limit.
    var answerTime: Duration? { get }

    /// The secret of the enrolment challenges, 32 bytes. It outlasts the process and is the same
    /// for all gateways that share the store; `nil` where nothing outlasts the process. The first
    /// call draws it. It is in no export, and it is never logged.
    ///
    /// Called at most once, after `load`.
    func enrolmentSecret() throws(JournalError) -> [UInt8]?

    /// The secrets of the challenges that all gateways of the store share, the oldest first. When
    /// the newest is old, the next one is drawn. It is used a little later, so that every gateway
    /// has read it by then. They are in no export, and they are never logged.
    ///
    /// Called after `load` and then every few seconds, never on an event loop.
    ///
    /// - `now`: second of Unix time.
    /// - `lifetime`: the longest lifetime of a challenge, in seconds.
    /// - Returns: `nil` where the process has secrets of its own.
    func sharedSecrets(now: Int64, lifetime: Int64) throws(JournalError) -> [SharedSecret]?

    /// Writes a batch, and returns when it is durable. Counters only rise. If it throws, it is
    /// unknown what the batch has changed.
    ///
    /// Changes are written before uses are decided, and uses in their order: of two with one
    /// counter the first may be good.
    func commit(_ batch: JournalBatch) throws(JournalError) -> CommitAnswer

    /// Does a piece of the work that is left between commits. Called after the listeners were
    /// notified of the last commit. The next call continues unfinished or failed work.
    func settle() throws(JournalError)

    /// Calls `body` whenever another process may have revoked or imported keys, and from time to
    /// time, on a queue of the journal's own, never twice at once. `body` reads the changes and
    /// returns why it could not.
    ///
    /// The other process gets its confirmation when `body` has returned, and not before. The first
    /// call reads the commits between `load` and `follow`.
    func follow(_ body: @escaping @Sendable () -> JournalError?)

    /// Calls `body` when it is announced that operators have given the fleet an order, on a queue
    /// of the journal's own. It is a hint that may get lost, and some journals give none.
    func hearOrders(_ body: @escaping @Sendable () -> Void)

    /// Calls `body` when another process asks that all waiting changes are written, on the queue of
    /// ``follow(_:)``. `body` returns why it could not.
    func writeOnDemand(_ body: @escaping @Sendable () -> JournalError?)

    /// The keys that others have changed after that revision, in batches; returns the revision
    /// reached.
    ///
    /// - Throws: `replaced` when commands use another store than this one.
    func changes(
        since revision: JournalRevision,
        into body: ([KeyRow]) -> Void
    ) throws(JournalError) -> JournalRevision

    /// The receipts, for their renewal; `nil` where nothing is renewed. Called at most once, after
    /// `load`.
    func receiptStore() throws(JournalError) -> (any ReceiptStore)?

    /// From now on another process may read the store ahead, and then the later changes. Returns
    /// when no change is being written that such a reader could miss.
    func beginTrail()

    /// No other process reads ahead any more.
    func endTrail()

    /// Stops using the store for another process of this gateway, until ``takeBack()`` or
    /// ``leave()``: commits fail, and commands wait. No change may wait for the writer.
    ///
    /// - Returns: the lease for that process; `nil` where nothing outlasts this one.
    func lend() -> StoreLease?

    /// Continues to use the store: the other process has not taken it, and is gone.
    func takeBack() throws(JournalError)

    /// The other process has the store. No call may follow except ``close()``.
    func leave()

    /// The state of its connections; `nil` where there are none. Never waits.
    var databaseStatistics: DatabaseStatistics? { get }

    /// Ends the use of the journal. No call may follow.
    func close()
}

extension KeyJournal {
    package var keysMax: Int? { nil }
    package var knowledgeLifetime: Duration? { nil }
    package var answerTime: Duration? { nil }
    package var databaseStatistics: DatabaseStatistics? { nil }
    package func hearOrders(_ body: @escaping @Sendable () -> Void) {}
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

/// The revision up to which the changes by other processes have been read.
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

/// The contents of one transaction.
package struct JournalBatch: Sendable {
    /// At most one for each key, in the order of their rows.
    package var changes: [CounterChange]
    /// Uses that the journal decides; empty when it decides none.
    package var uses: [CounterAdvance]
    package var enrolments: [KeyRecord]
    /// The challenge that the journal spends with each enrolment, in order: both or neither. Empty
    /// where it spends none.
    package var challenges: [ChallengeSerial?] = []
    /// In any order; a key may have several.
    package var receipts: [ReceiptChange]
    /// Keys that the table does not have; empty when it has all. One may come twice.
    package var lookUps: [KeyID] = []
    /// Tokens of other issuers that are good once. One may come twice.
    package var tokens: [SpentToken]

    package init(
        changes: [CounterChange] = [],
        uses: [CounterAdvance] = [],
        enrolments: [KeyRecord] = [],
        receipts: [ReceiptChange] = [],
        tokens: [SpentToken] = []
    ) {
        self.changes = changes
        self.uses = uses
        self.enrolments = enrolments
        self.receipts = receipts
        self.tokens = tokens
    }

    /// The challenge that is spent with an enrolment; `nil` for none.
    package func challenge(at place: Int) -> ChallengeSerial? {
        challenges.indices.contains(place) ? challenges[place] : nil
    }

    var isEmpty: Bool {
        changes.isEmpty && uses.isEmpty && enrolments.isEmpty && receipts.isEmpty
            && lookUps.isEmpty && tokens.isEmpty
    }
}

/// The result of a durable batch.
package struct CommitAnswer: Sendable {
    /// The answer to each use, in order.
    package var uses: [UseAnswer]
    /// The stored row of each enrolment's key id, in order; `nil` where there is none, since its
    /// challenge was spent before.
    package var enrolments: [EnrolledRow?]
    /// The keys that were looked up and are stored, in any order.
    package var found: [KeyRow]
    /// Whether each token was fresh, in order: it is spent now in any case.
    package var tokens: [Bool]

    package init(
        uses: [UseAnswer] = [],
        enrolments: [EnrolledRow?] = [],
        found: [KeyRow] = [],
        tokens: [Bool] = []
    ) {
        self.uses = uses
        self.enrolments = enrolments
        self.found = found
        self.tokens = tokens
    }
}

/// The stored row after an enrolment.
package struct EnrolledRow: Sendable {
    package let key: KeyRow
    /// Whether this enrolment stored it, and not an earlier one.
    package let isNew: Bool

    package init(key: KeyRow, isNew: Bool) {
        self.key = key
        self.isNew = isNew
    }
}

/// Descriptors with which the next process of a gateway takes over a store in use.
package struct StoreLease: Sendable {
    /// The descriptor of the lock. The lock is held while one of the two processes has it.
    package let lock: Int32
    /// The descriptor of the socket on which commands call.
    package let calls: Int32

    package init(lock: Int32, calls: Int32) { (self.lock, self.calls) = (lock, calls) }
}
