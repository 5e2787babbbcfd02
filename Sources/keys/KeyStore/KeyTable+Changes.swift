package import DeviceKey
internal import Encodings
internal import Synchronization

extension KeyTable {
    /// Why the changes of other processes can't be read, and the observer.
    struct ReadFault {
        /// `nil` when they can be read.
        var error: JournalError?
        var watcher: (@Sendable (JournalError?) -> Void)?
    }

    /// Why the keys can't be read at present; `nil` when they can.
    package var readFault: JournalError? { fault.withLock(\.error) }

    /// Reports when reading begins to fail or fails for another reason, and `nil` when it works
    /// again. A current failure is reported at once.
    package func watchReading(_ body: @escaping @Sendable (JournalError?) -> Void) {
        let error = fault.withLock { fault in
            fault.watcher = body
            return fault.error
        }
        if let error { body(error) }
    }

    /// Reports, on a queue of the journal's, that other processes have changed keys and that the
    /// changes were read. Must return at once.
    package func watchChanges(_ body: @escaping @Sendable () -> Void) {
        changeWatcher.withLock { $0 = body }
    }

    /// Looks up a key for a request without asking the journal. The key is also `outdated` when the
    /// changes of others were read so long ago that it may be revoked since.
    package func findUnasked(_ keyID: KeyID) -> Finding {
        // First: changes that are read meanwhile make the answer below newer, not older.
        let counts = moment.counts
        let finding = find(keyID)
        guard case .known(let key) = finding, !counts else { return finding }
        return .outdated(key)
    }

    /// Writes all waiting changes.
    ///
    /// - Returns: why it failed.
    func writeNow() -> JournalError? {
        do throws(JournalError) {
            try committer.flush()
            return nil
        } catch {
            return error
        }
    }

    /// Reads the changes of other processes. While that fails the table admits nothing, since a key
    /// that it holds may be revoked.
    ///
    /// - Returns: why it failed.
    package func refresh() -> JournalError? {
        var hasChanged = false
        // Another gateway may have enrolled one of them.
        unknown.withLock { $0.removeAll() }
        let error = revision.withLock { (revision) -> JournalError? in
            do throws(JournalError) {
                let (before, moment) = (revision, self.moment.now)
                let take: ([KeyRow]) -> Void = { rows in self.take(rows) }
                revision =
                    if let before { try journal.changes(since: before, into: take) } else {
                        try journal.load(apps: apps, into: take)
                    }
                isCurrent.store(true, ordering: .releasing)
                self.moment.note(moment)
                hasChanged = revision != before
                return nil
            } catch {
                isCurrent.store(false, ordering: .releasing)
                return error
            }
        }
        let news = fault.withLock { fault in
            let isNews = fault.error != error
            fault.error = error
            return isNews ? fault.watcher : nil
        }
        news?(error)
        // Called outside the lock, since it may take others.
        let watcher = hasChanged ? changeWatcher.withLock { $0 } : nil
        watcher?()
        return error
    }
}

// Rows that the journal gives.
extension KeyTable {
    /// The origin of a row.
    enum RowSource {
        /// Read because a request asked for it: on the writer's queue, after a commit.
        case enrolled
        /// Read from the journal. Such rows are read one after the other, so the last one is right.
        case journal
    }

    /// Applies a row that was read because a request asked for it.
    func apply(asked row: KeyRow) {
        Self.apply(row, .enrolled, to: shards, keepsAhead: committer.isDegraded)
        // After that, since its erasure may be noted in any moment, and is then looked for in the
        // shards.
        guard erased.withLock({ $0.has(row) }) else { return }
        let place = Self.place(of: row.keyID)
        shards[place.shard].keys.withLock { keys in
            if let number = keys.find(row.keyID, hash: place.hash) {
                keys.set(.deleted, of: number)
            }
        }
    }

    /// Takes rows that the journal has read of itself.
    func take(_ rows: [KeyRow]) {
        erased.withLock { $0.note(rows.filter { $0.erasure != nil }) }
        Self.take(rows, to: shards, keepsAhead: committer.isDegraded)
    }

    /// Takes rows that the journal has read of itself. A key that was erased meanwhile is not known
    /// by its id there, so it is looked for by the number of its row.
    static func take(_ rows: [KeyRow], to shards: [Shard], keepsAhead: Bool = true) {
        var erased: [Int64: KeyRow] = [:]
        for row in rows {
            if row.erasure == nil {
                apply(row, .journal, to: shards, keepsAhead: keepsAhead)
            } else {
                erased[row.row] = row
            }
        }
        guard !erased.isEmpty else { return }
        for shard in shards { shard.keys.withLock { $0.erase(erased) } }
    }

    /// Applies a row of the journal. Counters only go one way, so that a row that was read before a
    /// change here undoes nothing. For the same reason a row that an enrolment has read does not
    /// change the standing of a key that is here.
    ///
    /// - `keepsAhead`: whether keys with uses that the journal may not know must stay.
    static func apply(
        _ row: KeyRow,
        _ source: RowSource,
        to shards: [Shard],
        keepsAhead: Bool = true
    ) {
        let place = place(of: row.keyID)
        shards[place.shard].keys.withLock { keys in
            if source == .journal { keys.forgetPassed(row.keyID) }
            guard let number = keys.find(row.keyID, hash: place.hash) else {
                return add(row, source: source, to: &keys, hash: place.hash, keepsAhead: keepsAhead)
            }
            // Nothing of a deleted key comes back.
            guard keys[number].standing != .deleted else { return }
            // A database that has lost the key, and stored it again, has given it another number.
            keys[number].row = row.row
            keys[number].counters.merge(row.counters)
            if row.anchor == .held { keys[number].hold() }
            if row.risk.isNewer(than: keys[number].risk) { keys[number].risk = row.risk }
            if source == .journal { keys.set(row.standing, of: number) }
            guard let context = row.context, keys[number].standing != .deleted else { return }
            keys.keep(context, for: number)
        }
    }

    private static func add(
        _ row: KeyRow,
        source: RowSource,
        to keys: inout KeyShard,
        hash: UInt32,
        keepsAhead: Bool
    ) {
        var entry = KeyEntry(row)
        // A command may have changed the key after a request's row was read.
        if source == .enrolled, let standing = keys.passedStanding(of: row.keyID) {
            entry.standing = standing
        }
        guard entry.standing != .deleted else {
            if source == .journal { keys.pass(row.keyID, .deleted) }
            return
        }
        var number: Int?
        if keys.isFull {
            // A row that no request asked for evicts no other key.
            guard source == .enrolled else { return keys.pass(row.keyID, row.standing) }
            number = keys.replace(with: entry, hash: hash, keepsAhead: keepsAhead) {
                place(of: $0).hash
            }
        }
        if number == nil {
            number = keys.count
            keys.insert(entry, hash: hash) { place(of: $0).hash }
        }
        guard let number else { return }
        // A request waits for this key. The next keys must not evict it.
        if source == .enrolled { keys.touch(number) }
        if let context = row.context { keys.keep(context, for: number) }
    }
}

// Keys that are not in the table, where other gateways enrol keys too.
extension KeyTable {
    /// Looks up a key that was ``Finding/absent``. When the ticket is `admitted`, ``find(_:)``
    /// knows the key, or that there is none.
    ///
    /// - Returns: `nil` when too many look-ups wait.
    package func lookUp(_ keyID: KeyID) -> CommitTicket? { committer.lookUp(keyID) }

    /// Keeps a key in use from being evicted, where the table has no room for all.
    package func touch(_ keyID: KeyID) {
        guard journal.keysMax != nil else { return }
        let place = Self.place(of: keyID)
        shards[place.shard].keys.withLock { keys in
            if let number = keys.find(keyID, hash: place.hash) { keys.touch(number) }
        }
    }

    /// The finding for a key that is not in the table.
    func missing(_ keyID: KeyID) -> Finding {
        switch decides {
        case .inMemory: .unknown
        case .atCommit: unknown.withLock { $0.contains(keyID) } ? .unknown : .absent
        }
    }

    /// The decision about a key that is not in the table. It was evicted since it was found, and
    /// the journal may still have it.
    func lacking(_ keyID: KeyID) -> ConsumeDecision {
        if case .unknown = missing(keyID) { return .refused(.unknown) }
        return .unavailable
    }

    /// Takes the result of a look-up in the journal.
    func take(_ asked: [KeyID], _ found: [KeyRow]) {
        for row in found { apply(asked: row) }
        let stored = Set(found.lazy.filter { $0.standing != .deleted }.map(\.keyID))
        unknown.withLock { unknown in
            for keyID in asked where !stored.contains(keyID) { unknown.insert(keyID) }
        }
    }
}

/// Keys that the journal does not have, remembered for a moment, so that a client which repeats its
/// request costs one query. A key that another gateway enrols meanwhile is found when the moment is
/// over.
struct UnknownKeys {
    /// The most keys that are remembered. Beyond it, all are forgotten: each then costs a query.
    private static let countMax = 16_384
    private static let lifetime = Duration.seconds(1)

    private var ends: [KeyID: ContinuousClock.Instant] = [:]

    func contains(_ keyID: KeyID) -> Bool {
        ends[keyID].map { ContinuousClock.now < $0 } ?? false
    }

    mutating func insert(_ keyID: KeyID) {
        if ends.count >= Self.countMax { removeAll() }
        ends[keyID] = ContinuousClock.now + Self.lifetime
    }

    /// Forgets all: another process has changed keys.
    mutating func removeAll() { ends.removeAll(keepingCapacity: true) }
}

/// Keys that were read from a store that another process still uses. They are for the table of the
/// process that takes over the store, so that clients need not wait until all keys are read.
package final class KeysAhead: Sendable {
    /// The most keys that may be left to read while clients wait.
    private static let littleCount = 256
    /// Under load there is always something new. The rest after the last pass is read while clients
    /// wait.
    private static let passesMax = 8

    let apps = AppNumbers()
    let shards = KeyTable.emptyShards()

    /// Reads all keys, then the new ones again and again, until few are left.
    ///
    /// - Throws: when the source can't be read.
    package init(_ source: any KeySource) throws(JournalError) {
        for _ in 0..<Self.passesMax {
            var count = 0
            _ = try source.load(apps: apps) { rows in
                count += rows.count
                KeyTable.take(rows, to: shards)
            }
            guard count > Self.littleCount else { return }
        }
    }
}

/// When the changes of others were last read, and for how long they count as known.
///
/// It uses the continuous clock, which advances while the process is stopped and while the machine
/// sleeps.
struct ReadMoment: ~Copyable, Sendable {
    private let lifetime: Duration?
    private let clock: @Sendable () -> ContinuousClock.Instant
    private let start: ContinuousClock.Instant
    /// Nanoseconds after the start.
    private let last: Atomic<Int64>

    /// - lifetime: `nil` if the last reading counts until reading fails.
    init(lifetime: Duration?, clock: @escaping @Sendable () -> ContinuousClock.Instant) {
        self.lifetime = lifetime
        self.clock = clock
        start = clock()
        last = Atomic(0)
    }

    /// The moment before a reading, for ``note(_:)``: a change during the reading may be missed.
    var now: ContinuousClock.Instant { clock() }

    /// All changes before this moment are known.
    func note(_ moment: ContinuousClock.Instant) {
        _ = last.max(Int64((moment - start).nanosecondCount), ordering: .releasing)
    }

    /// Whether the known changes count now.
    var counts: Bool {
        guard let lifetime else { return true }
        let age = Int64((clock() - start).nanosecondCount) - last.load(ordering: .acquiring)
        return age <= Int64(lifetime.nanosecondCount)
    }
}
