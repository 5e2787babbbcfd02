internal import Challenges
package import DeviceKey
internal import Synchronization

extension KeyTable {
    /// Why the changes of other processes can't be read, and who is told.
    struct ReadFault {
        /// `nil` when they can be read.
        var error: JournalError?
        var watcher: (@Sendable (JournalError?) -> Void)?
    }

    /// Why the keys can't be read at present; `nil` when they can.
    package var readFault: JournalError? { fault.withLock(\.error) }

    /// Tells when reading begins to fail or fails for another reason, and, with `nil`, when it is
    /// over. What fails already is told at once.
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
        // Somebody may have enrolled one of them.
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
        // Called behind the lock, since it may take others.
        let watcher = hasChanged ? changeWatcher.withLock { $0 } : nil
        watcher?()
        return error
    }
}
