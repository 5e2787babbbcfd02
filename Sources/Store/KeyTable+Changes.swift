internal import Synchronization

extension KeyTable {
    /// Makes sure that what another process has changed is in the table. One load when nothing has.
    ///
    /// - Returns: false when the changes can't be read; the table may then admit a revoked key, so
    ///   nothing is to be answered from it.
    @inline(__always)
    func isCurrent() -> Bool {
        journal.changeCount == seenCount.load(ordering: .acquiring) || readChanges()
    }

    private func readChanges() -> Bool {
        revision.withLock { revision in
            // Read before the rows: a change that comes in between makes the next lookup read
            // again.
            let count = journal.changeCount
            guard count != seenCount.load(ordering: .acquiring) else { return true }
            do throws(JournalError) {
                revision = try journal.changes(since: revision) { rows in
                    for row in rows { apply(row) }
                }
            } catch {
                return false
            }
            seenCount.store(count, ordering: .releasing)
            return true
        }
    }
}
