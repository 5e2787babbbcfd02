import KeyStore
import Synchronization

/// A journal that hears of changes by others when it is told to, and not otherwise.
final class ToldJournal: KeyJournal {
    private let inner: any KeyJournal
    private let body = Mutex<(@Sendable () -> JournalError?)?>(nil)

    init(_ inner: any KeyJournal) { self.inner = inner }

    /// Has the changes by others read now.
    func tell() { _ = body.withLock { $0 }?() }

    func follow(_ body: @escaping @Sendable () -> JournalError?) {
        self.body.withLock { $0 = body }
    }

    var decides: DecisionMoment { inner.decides }

    func load(
        apps: AppNumbers,
        into body: ([KeyRow]) -> Void
    ) throws(JournalError) -> JournalRevision {
        try inner.load(apps: apps, into: body)
    }

    func enrolmentSecret() throws(JournalError) -> [UInt8]? { try inner.enrolmentSecret() }

    func commit(_ batch: JournalBatch) throws(JournalError) -> CommitAnswer {
        try inner.commit(batch)
    }

    func settle() throws(JournalError) { try inner.settle() }

    func changes(
        since revision: JournalRevision,
        into body: ([KeyRow]) -> Void
    ) throws(JournalError) -> JournalRevision {
        try inner.changes(since: revision, into: body)
    }

    func close() { inner.close() }
}
