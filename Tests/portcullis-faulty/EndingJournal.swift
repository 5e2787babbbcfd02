import GRDB
import KeyStore
import Synchronization

/// A journal in SQLite at whose places the process may end.
///
/// What has been committed is brought into the database's file every few commits, and not after
/// SQLite's usual thousand pages: a short load sees checkpoints.
final class EndingJournal: KeyJournal {
    private static let commitsPerCheckpoint = 6

    private let inner: any KeyJournal
    private let database: String
    private let commits = Atomic<Int>(0)

    init(_ inner: any KeyJournal, database: String) {
        self.inner = inner
        self.database = database
    }

    var decides: DecisionMoment { inner.decides }

    func follow(_ body: @escaping @Sendable () -> JournalError?) { inner.follow(body) }

    func load(
        apps: AppNumbers,
        into body: ([KeyRow]) -> Void
    ) throws(JournalError) -> JournalRevision {
        try inner.load(apps: apps, into: body)
    }

    func enrolmentSecret() throws(JournalError) -> [UInt8]? {
        try inner.enrolmentSecret()
    }

    func receiptStore() throws(JournalError) -> (any ReceiptStore)? { try inner.receiptStore() }

    func commit(_ batch: JournalBatch) throws(JournalError) -> CommitAnswer {
        Ending.pass(.beforeCommit)
        let answer = try inner.commit(batch)
        Ending.pass(.afterCommit)
        return answer
    }

    func settle() throws(JournalError) {
        Ending.pass(.beforeSettling)
        try inner.settle()
        let count = commits.wrappingAdd(1, ordering: .relaxed).newValue
        guard count.isMultiple(of: Self.commitsPerCheckpoint) else { return }
        do {
            let queue = try DatabaseQueue(path: database)
            try queue.writeWithoutTransaction { _ = try $0.checkpoint(.passive) }
            try queue.close()
        } catch {
            throw JournalError(.unusable, "\(error)")
        }
    }

    func changes(
        since revision: JournalRevision,
        into body: ([KeyRow]) -> Void
    ) throws(JournalError) -> JournalRevision {
        try inner.changes(since: revision, into: body)
    }

    func close() { inner.close() }
}
