package import DeviceKey
internal import Synchronization
package import Tokens

/// All keys in memory. Shared by all event loops.
package final class KeyTable: Sendable {
    /// The result of a lookup.
    package enum Finding: Sendable {
        /// The key is not in the table, and the store can't be read: another process may have
        /// enrolled it.
        case unavailable
        case unknown
        /// The key is not in the table, and the journal may have it: ``KeyTable/lookUp(_:)`` asks.
        case absent
        case known(StoredKey)
        /// The key as last read. The table can't read whether another process has revoked it
        /// meanwhile.
        case outdated(StoredKey)
    }

    /// A power of two; with two cores two event loops seldom need the same one of 64.
    private static let shardCount = 64

    /// A mutex in a class of its own, so that an array can hold it.
    final class Shard: Sendable {
        let keys: Mutex<KeyShard>

        init(countMax: Int) { keys = Mutex(KeyShard(countMax: countMax)) }
    }

    /// The writer, for listeners and statistics.
    package let committer: Committer
    let journal: any KeyJournal
    /// When the journal confirms a use.
    package let decides: DecisionMoment
    let apps: AppNumbers
    let shards: [Shard]
    /// Keys that the journal did not have a moment ago.
    let unknown = Mutex(UnknownKeys())
    let erased = Mutex(ErasedRows())
    /// The keys that are being stored, and the number of enrolments of each.
    private let enrolling = Mutex<[KeyID: Int]>([:])
    /// Whether the table may answer: it has all changes of others.
    let isCurrent = Atomic(true)
    /// The last read revision, under the lock that serialises readers of changes; `nil` before the
    /// keys were loaded.
    let revision: Mutex<JournalRevision?>
    let fault = Mutex(ReadFault())
    let moment: ReadMoment
    /// Called when other processes have changed keys.
    let changeWatcher = Mutex<(@Sendable () -> Void)?>(nil)

    /// What a table begins with.
    package enum Beginning {
        /// No keys. App IDs have the numbers of this list.
        case numbers(AppNumbers)
        /// The keys that were read ahead from the same journal, which gives the later changes.
        case ahead(KeysAhead)
    }

    /// Reads all keys.
    ///
    /// - `canWait`: whether the table may start in an outage of the journal. The keys are then
    ///   loaded after it, and until then the table answers as in any outage.
    /// - Throws: when the journal can't be read.
    package init(
        journal: any KeyJournal,
        limits: Committer.Limits = Committer.Limits(),
        from beginning: Beginning = .numbers(AppNumbers()),
        canWait: Bool = false,
        clock: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) throws(JournalError) {
        self.journal = journal
        moment = ReadMoment(lifetime: journal.knowledgeLifetime, clock: clock)
        decides = journal.decides
        committer = Committer(journal: journal, limits: limits)
        let (apps, shards) =
            switch beginning {
            case .numbers(let apps): (apps, Self.emptyShards(journal.keysMax))
            case .ahead(let keys): (keys.apps, keys.shards)
            }
        (self.apps, self.shards) = (apps, shards)
        do throws(JournalError) {
            let loaded = try journal.load(apps: apps) { Self.take($0, to: shards) }
            revision = Mutex(loaded)
        } catch {
            guard canWait, error.isPassing else { throw error }
            revision = Mutex(nil)
            isCurrent.store(false, ordering: .releasing)
            fault.withLock { $0.error = error }
        }
        committer.find { [weak self] asked, found in self?.take(asked, found) }
        // Weak, so that a running journal does not keep the table alive.
        journal.follow { [weak self] in self?.refresh() }
        journal.writeOnDemand { [weak self] in self?.writeNow() }
    }

    /// - `keysMax`: the most keys of all shards together, which share them equally; `nil` for all.
    static func emptyShards(_ keysMax: Int? = nil) -> [Shard] {
        let countMax = keysMax.map { max(($0 - 1) / shardCount + 1, 1) } ?? .max
        return (0..<shardCount).map { _ in Shard(countMax: countMax) }
    }

    /// The number of an App ID in ``StoredKey/app``.
    package func number(ofApp appID: String) -> AppNumber { apps.number(of: appID) }

    package func appID(of number: AppNumber) -> String { apps.appID(of: number) }

    /// Keys in the table, revoked ones included, deleted ones not.
    package var count: Int {
        shards.reduce(0) { $0 + $1.keys.withLock { $0.count - $0.deletedCount } }
    }

    package var revokedCount: Int { shards.reduce(0) { $0 + $1.keys.withLock(\.revokedCount) } }

    /// The state of the connections to a store that several gateways share; `nil` for other stores.
    package var databaseStatistics: DatabaseStatistics? { journal.databaseStatistics }

    /// The memory of the table in bytes.
    package var bytes: Int { shards.reduce(0) { $0 + $1.keys.withLock(\.bytes) } }

    /// Looks a key up.
    package func find(_ keyID: KeyID) -> Finding {
        let isCurrent = isCurrent.load(ordering: .acquiring)
        let place = Self.place(of: keyID)
        return shards[place.shard].keys.withLock { keys in
            guard let number = keys.find(keyID, hash: place.hash) else {
                return isCurrent ? missing(keyID) : .unavailable
            }
            guard keys[number].standing != .deleted else {
                return isCurrent ? .unknown : .unavailable
            }
            let stored = keys.stored(number)
            keys.touch(number)
            return isCurrent ? .known(stored) : .outdated(stored)
        }
    }

    /// The answer that ``consume(_:issuer:now:durability:whenFailing:)`` would give now as far
    /// as this process knows. Nothing is consumed.
    package func peek(_ use: CounterUse, issuer: ChallengeIssuer) -> ConsumeDecision {
        guard isCurrent.load(ordering: .acquiring) else { return .unavailable }
        let place = Self.place(of: use.keyID)
        return shards[place.shard].keys.withLock { keys in
            guard let number = keys.find(use.keyID, hash: place.hash) else {
                return lacking(use.keyID)
            }
            if let refusal = keys[number].refusal(use) { return .refused(refusal) }
            guard committer.hasRoom else { return .unavailable }
            if let challenge = use.challenge, issuer.isSpent(challenge) {
                return .refused(.challengeSpent)
            }
            return .admitted
        }
    }

    /// Uses a counter and a challenge: both or neither, once over all event loops.
    ///
    /// Call it after the signature was verified: an attacker must not cause its changes.
    ///
    /// - `now`: second of Unix time, for the record of the last use.
    /// - `durability`: `behind` when a use that is decided need not be on disk; the answer is
    ///   `pending` then only where the journal decides.
    /// - `whenFailing`: what to do where the answer would be `unavailable`.
    package func consume(
        _ use: CounterUse,
        issuer: ChallengeIssuer,
        now: Int64,
        durability: Durability = .awaited,
        whenFailing: FailingStore = .decline
    ) -> ConsumeOutcome {
        let isCurrent = isCurrent.load(ordering: .acquiring)
        guard isCurrent || whenFailing == .useInMemory else { return .decided(.unavailable) }
        let place = Self.place(of: use.keyID)
        let shard = shards[place.shard]
        let isAsked = decides == .atCommit && isCurrent
        /// Asks the journal where it decides; `nil` where it has no room.
        func ask(_ row: Int64) -> ConsumeOutcome? {
            guard isAsked else { return nil }
            let advance = CounterAdvance(use, row: row, usedAt: now)
            let waiting = WaitingUse(use: advance, shard: shard, hash: place.hash, issuer: issuer)
            return committer.append(waiting).map(ConsumeOutcome.pending)
        }
        return shard.keys.withLock { keys in
            guard let number = keys.find(use.keyID, hash: place.hash) else {
                return use.row.flatMap(ask)
                    ?? .decided(isCurrent ? lacking(use.keyID) : .unavailable)
            }
            if let reason = keys[number].refusal(use) { return .decided(.refused(reason)) }
            if let outcome = ask(keys[number].row) { return outcome }
            if isAsked, whenFailing == .decline { return .decided(.unavailable) }
            var refusal = ConsumeRefusal.challengeSpent
            func change() -> CounterChange? {
                let (counter, challenge) = (use.counter, use.challenge)
                switch keys[number].use(counter, challenge: challenge, issuer: issuer, now: now) {
                case .success(let change): return change
                case .failure(let reason):
                    refusal = reason
                    return nil
                }
            }
            // The writer's lock is taken inside the shard's lock, so that the changes of one key
            // are in the order of their admission. The writer never takes them in the other order.
            switch committer.append(durability, change) {
            // A deciding journal was not asked: another gateway may admit the same assertion.
            case .taken where !isCurrent || isAsked: return .decided(.unassured)
            case .taken(let ticket):
                return durability == .awaited ? .pending(ticket) : .decided(.admitted)
            case .declined: return .decided(.refused(refusal))
            case .full where whenFailing == .useInMemory:
                return .decided(change() == nil ? .refused(refusal) : .unassured)
            case .full: return .decided(.unavailable)
            }
        }
    }

    /// Stores a key; see ``EnrolOutcome``. The writer is started.
    ///
    /// - `challenge`: the valid challenge. A journal that decides spends it with the enrolment,
    ///   once for all gateways of the store. With another journal its issuer spends it.
    /// - `completion`: called on the writer's queue, when the key is durable and in the
    ///   table.
    package func enrol(
        _ record: KeyRecord,
        spending challenge: ChallengeSerial? = nil,
        completion: @escaping @Sendable (EnrolOutcome) -> Void
    ) {
        enrolling.withLock { $0[record.keyID, default: 0] += 1 }
        let spent = decides == .atCommit ? challenge : nil
        committer.enrol(record, spending: spent) { result in
            // After `apply`, so that a key is always in the table or being stored.
            defer { self.endEnrolling(record.keyID) }
            guard case .success(let stored) = result else { return completion(.failed) }
            guard let row = stored else { return completion(.challengeSpent) }
            self.apply(asked: row.key)
            guard row.key.standing == .active else { return completion(.revoked) }
            completion(row.isNew ? .inserted(record.keyID) : .existing(record.keyID))
        }
    }

    private func endEnrolling(_ keyID: KeyID) {
        enrolling.withLock { enrolling in
            let count = enrolling[keyID, default: 1] - 1
            enrolling[keyID] = count > 0 ? count : nil
        }
    }

    /// Stores the changes from the renewal of a key's receipt, and starts the writer.
    ///
    /// - `completion`: called on the writer's queue, when the change is durable and in the table,
    ///   or with the failure.
    package func renew(
        _ change: ReceiptChange,
        completion: @escaping @Sendable (Result<Void, JournalError>) -> Void
    ) {
        committer.renew(change) { result in
            if case .success = result, change.receipt != nil { self.take(change) }
            completion(result)
        }
    }

    private func take(_ change: ReceiptChange) {
        let place = Self.place(of: change.keyID)
        shards[place.shard].keys.withLock { keys in
            guard let number = keys.find(change.keyID, hash: place.hash),
                keys[number].standing != .deleted
            else { return }
            // Of two metrics of one day, the one committed last is the newest. A metric of the
            // future was imported, and is replaced.
            let now = change.state.triedAt ?? 0
            guard !keys[number].risk.isNewer(than: change.state.risk, at: now) else { return }
            keys[number].risk = change.state.risk
        }
    }

    /// The stored receipts, for their renewal; `nil` where the journal renews none.
    package func receiptStore() throws(JournalError) -> (any ReceiptStore)? {
        try journal.receiptStore()
    }

    /// Whether the key is being stored: ``enrol(_:spending:completion:)`` has not answered yet.
    package func isEnrolling(_ keyID: KeyID) -> Bool {
        return enrolling.withLock { $0[keyID] != nil }
    }

    /// The secret of the enrolment challenges; `nil` where it dies with the process.
    package func enrolmentSecret() throws(JournalError) -> [UInt8]? {
        try journal.enrolmentSecret()
    }

    /// The secrets that all gateways of the store share: see ``KeyJournal``.
    package func sharedSecrets(
        now: Int64,
        lifetime: Int64
    ) throws(JournalError) -> [SharedSecret]? {
        try journal.sharedSecrets(now: now, lifetime: lifetime)
    }

    /// Calls `body` when it is announced that operators have given the fleet an order: a hint.
    package func hearOrders(_ body: @escaping @Sendable () -> Void) { journal.hearOrders(body) }

    /// Starts the writer when a change waits. Event loops call it at the end of each iteration, and
    /// in long ones.
    ///
    /// - isBusy: whether requests wait for the event loop, which has then no use for small batches.
    package func kick(isBusy: Bool = false) { committer.kick(isBusy: isBusy) }

    /// Writes all waiting changes, and ends the use of the journal. Blocks; for a clean stop.
    ///
    /// - Throws: when a change could not be written, or else the changes of other processes could
    ///   not be read. The journal is closed in any case.
    package func close() throws(JournalError) {
        defer { journal.close() }
        try committer.flush()
        // Whether any change was left to write depends on how fast the last requests came. Whether
        // the store could be used does not.
        if let readFault { throw readFault }
    }

    static func place(of keyID: KeyID) -> (shard: Int, hash: UInt32) {
        let hash = UInt64(truncatingIfNeeded: keyID.hashValue)
        return (Int(hash >> 58), UInt32(truncatingIfNeeded: hash))
    }
}
