internal import KeyCatalog
package import KeyStore
internal import Synchronization

// The store goes to the next process of the gateway without a moment in which nobody holds it: that
// process gets the descriptors of the lock and of the socket on which commands call. Commands wait
// meanwhile. If the next process fails, this one goes on with what it has kept open.
extension SQLiteKeyJournal {
    package func lend() -> StoreLoan? {
        watch.pause()
        isLent.store(true, ordering: .releasing)
        return StoreLoan(lock: lock.descriptor, calls: watch.descriptor)
    }

    package func takeBack() throws(JournalError) {
        do throws(StoreProblem) {
            // The other process may have written its own.
            try lock.note(files, database: writer.path)
        } catch {
            throw JournalError(.unusable, "\(error.path) \(error.detail)")
        }
        isLent.store(false, ordering: .releasing)
        watch.goOn()
    }

    package func leave() {
        watch.leave()
        // The process that has the store now has it open, so that nothing of it is deleted.
        closeConnections()
        lock.leave()
    }
}
