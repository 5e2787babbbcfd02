import AppAttest
import KeyStore
import Synchronization
import TestSupport

/// What becomes of a commit, and of the process that makes it.
enum CommitFate: Sendable {
    case works
    /// Nothing is written, and the writer is told so.
    case failsBefore
    /// All is written, and the writer is told that nothing is.
    case failsAfter
    /// The process is killed before anything is written.
    case endsBefore
    /// The process is killed when all is written, before anybody is told.
    case endsAfter
    /// Nothing is written, and the writer is told that all is: no store may do that.
    case lies
}

/// The store as one process has it: what is under it outlives the process.
final class SimulatedStore: KeyJournal {
    private let inner: any KeyJournal
    private let fate: @Sendable () -> CommitFate
    private let isKilled = Atomic(false)
    private let isDeaf = Atomic(false)
    private let follower = Mutex<(@Sendable () -> JournalError?)?>(nil)
    let knowledgeLifetime: Duration?

    private static let fault = JournalError(.busy, "simulated")

    /// - `fate`: asked once for each commit, on the writer's queue.
    init(
        _ inner: any KeyJournal,
        knowledgeLifetime: Duration?,
        fate: @escaping @Sendable () -> CommitFate
    ) {
        (self.inner, self.knowledgeLifetime, self.fate) = (inner, knowledgeLifetime, fate)
    }

    /// Whether the process has been killed: nothing that it does afterwards is seen by anybody.
    var isDead: Bool { isKilled.load(ordering: .sequentiallyConsistent) }

    func kill() { isKilled.store(true, ordering: .sequentiallyConsistent) }

    /// No announcement reaches the process from now on.
    func hearsNothing() { isDeaf.store(true, ordering: .sequentiallyConsistent) }

    /// Another process has changed keys, and this one hears of it.
    func announce() { _ = follower.withLock { $0 }?() }

    var decides: DecisionMoment { inner.decides }

    func commit(_ batch: JournalBatch) throws(JournalError) -> CommitAnswer {
        guard !isDead else { throw Self.fault }
        switch fate() {
        case .works: return try inner.commit(batch)
        case .failsBefore: break
        case .failsAfter: _ = try inner.commit(batch)
        case .endsBefore: kill()
        case .endsAfter:
            _ = try inner.commit(batch)
            kill()
        case .lies:
            guard batch.enrolments.isEmpty, batch.uses.isEmpty else {
                return try inner.commit(batch)
            }
            return CommitAnswer()
        }
        throw Self.fault
    }

    func follow(_ body: @escaping @Sendable () -> JournalError?) {
        let alive: @Sendable () -> JournalError? = { [weak self] in
            guard let self, !isDead, !isDeaf.load(ordering: .relaxed) else { return nil }
            return body()
        }
        follower.withLock { $0 = alive }
        inner.follow(alive)
    }

    func load(
        apps: AppNumbers,
        into body: ([KeyRow]) -> Void
    ) throws(JournalError) -> JournalRevision { try inner.load(apps: apps, into: body) }

    func changes(
        since revision: JournalRevision,
        into body: ([KeyRow]) -> Void
    ) throws(JournalError) -> JournalRevision { try inner.changes(since: revision, into: body) }

    func enrolmentSecret() throws(JournalError) -> [UInt8]? { try inner.enrolmentSecret() }

    func settle() throws(JournalError) {
        guard !isDead else { throw Self.fault }
        try inner.settle()
    }

    func close() { inner.close() }
}
