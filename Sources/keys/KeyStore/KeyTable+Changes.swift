internal import Challenges
package import DeviceKey
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

    /// Tells when reading begins to fail or fails for another reason, and, with `nil`, when it is
    /// over. What fails already is reported at once.
    package func watchReading(_ body: @escaping @Sendable (JournalError?) -> Void) {
        let error = fault.withLock { fault in
            fault.watcher = body
            return fault.error
        }
        if let error { body(error) }
    }

    /// Tells, on a queue of the journal's, that other processes have changed keys and that it was
    /// read. Must return at once.
    package func watchChanges(_ body: @escaping @Sendable () -> Void) {
        changeWatcher.withLock { $0 = body }
    }

    /// Looks a key up for a request that the journal is not asked about: the key is `outdated` also
    /// when the changes of others were read so long ago that it may be revoked since.
    package func findUnasked(_ keyID: KeyID) -> Finding {
        // First: what is read meanwhile makes the answer below newer, and not older.
        let counts = successor.holder != nil || moment.counts
        let finding = find(keyID)
        guard case .known(let key) = finding, !counts else { return finding }
        return .outdated(key)
    }

    /// Writes what waits.
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

    /// Reads what other processes have changed. While that fails the table admits nothing, since a
    /// key that it holds may be revoked.
    ///
    /// - Returns: why it failed.
    package func refresh() -> JournalError? {
        var hasChanged = false
        // Another gateway may have enrolled one of them.
        unknown.withLock { $0.removeAll() }
        let error = revision.withLock { (revision) -> JournalError? in
            do throws(JournalError) {
                let (before, moment) = (revision, self.moment.now)
                let take: ([KeyRow]) -> Void = { rows in
                    for row in rows { self.apply(row, .journal) }
                }
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

// What the journal says of keys.
extension KeyTable {
    /// Where a row comes from.
    enum RowSource {
        /// Read because it was asked for: on the writer's queue, after a commit.
        case enrolled
        /// Read from the journal. Such rows are read one after the other, so the last one is right.
        case journal
    }

    func apply(_ row: KeyRow, _ source: RowSource) {
        Self.apply(row, source, to: shards, keepsAhead: committer.isDegraded)
    }

    /// Takes over what the journal says of a key. Counters only go one way, so that a row that was
    /// read before a change here undoes nothing. For the same reason what an enrolment has read
    /// says nothing about the standing of a key that is here.
    ///
    /// - `keepsAhead`: whether keys stay whose uses the journal may not know of.
    static func apply(
        _ row: KeyRow,
        _ source: RowSource,
        to shards: [Shard],
        keepsAhead: Bool = true
    ) {
        let place = place(of: row.keyID)
        shards[place.shard].keys.withLock { keys in
            guard let number = keys.find(row.keyID, hash: place.hash) else {
                return add(row, source, to: &keys, place.hash, keepsAhead: keepsAhead)
            }
            keys[number].counters.merge(row.counters)
            if row.anchor == .held { keys[number].hold() }
            if source == .journal { keys.set(row.standing, of: number) }
            if row.risk.isNewer(than: keys[number].risk) { keys[number].risk = row.risk }
            guard let context = row.context, keys[number].standing != .deleted else { return }
            keys.keep(context, for: number)
        }
    }

    private static func add(
        _ row: KeyRow,
        _ source: RowSource,
        to keys: inout KeyShard,
        _ hash: UInt32,
        keepsAhead: Bool
    ) {
        guard row.standing != .deleted else { return }
        let entry = KeyEntry(row)
        var number: Int?
        if keys.isFull {
            // What was not asked for here takes no place from another key.
            guard source == .enrolled else { return }
            number = keys.replace(with: entry, hash: hash, keepsAhead: keepsAhead) {
                place(of: $0).hash
            }
        }
        if number == nil {
            number = keys.count
            keys.insert(entry, hash: hash) { place(of: $0).hash }
        }
        guard let number else { return }
        // A request waits for a key that was asked for. The next ones must not take its place.
        if source == .enrolled { keys.touch(number) }
        if let context = row.context { keys.keep(context, for: number) }
    }
}
