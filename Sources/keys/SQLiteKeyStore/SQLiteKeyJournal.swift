internal import Cryptography
internal import DeviceKey
internal import Foundation
internal import GRDB
internal import Glibc
package import KeyStore
internal import Synchronization

/// The gateway's journal in SQLite.
package final class SQLiteKeyJournal: KeyJournal {
    let lock: StoreLock
    let watch: ChangeWatch
    let files: StoreFiles
    private let generation: Mutex<GenerationFile>
    let writer: KeyDatabase
    private let reader: SQLiteKeyReader
    private let store: String
    private let anchors: CounterAnchors
    /// Whether another process has the store.
    private let isLent = Atomic(false)
    /// Whether another process reads ahead: see ``beginTrail()``.
    private let isTrailed = Atomic(false)
    /// Used only on the writer's queue.
    private let work: Mutex<WriterWork>
    private let receipts = Mutex<SQLiteReceiptStore?>(nil)
    private let follower = Mutex<(@Sendable () -> JournalError?)?>(nil)
    /// The generation that this process has seen.
    private let seenGeneration: Atomic<Int64>
    /// The fault in the age of the database that was accepted; `nil` for none.
    package let accepted: StoreProblem?

    /// Opens the database, creates a missing one, and checks it as a whole.
    ///
    /// Checked in this order: that no other gateway uses it; that it is not missing where there was
    /// one; that its log of transactions is its own; that the file can be opened or created; that
    /// it is a database, ours, and of a known version; that it is not damaged; that it is not older
    /// than the one that was used here.
    ///
    /// - `entriesMax`: the number of entries at which the log of counters is merged.
    /// - `lease`: the predecessor's lease; `nil` without a predecessor.
    /// - `ahead`: the reader that has read the database ahead, and found no damage;
    ///   ``load(apps:into:)`` gives the later changes.
    package init(
        path: String,
        foldedAt entriesMax: Int = CounterFold.entriesMax,
        age: StoreAge.Demand = .newest,
        lease: StoreLease? = nil,
        ahead: SQLiteKeyReader? = nil
    ) throws(StoreProblem) {
        let resolved = StoreFile.resolved(path)
        if let lease {
            lock = StoreLock(lent: lease.lock)
        } else {
            lock = try StoreLock(database: resolved)
        }
        var problem = StoreAge.problemBeforeOpening(resolved)
        if let problem, age == .newest { throw problem }
        try StoreAge.checkPairing(resolved)
        try StoreFile.create(resolved)
        if let lease {
            watch = ChangeWatch(lent: lease.calls, database: resolved)
        } else {
            watch = try ChangeWatch(database: resolved)
        }
        writer = try KeyDatabase(path: resolved, creates: false)
        if let ahead {
            try ahead.checkIdentity()
            reader = ahead
        } else {
            try writer.check()
            reader = SQLiteKeyReader(try KeyDatabase(beside: writer))
        }
        let before = try writer.attempt { db in try Generation.current(db) }
        problem = problem ?? StoreAge.problem(before, resolved)
        if let problem, age == .newest { throw problem }
        accepted = problem
        store = before.store
        // Before the first number is given, so that a crash leaves no number without a file.
        if before.number == 0 {
            _ = try GenerationFile(database: resolved, GenerationFile.Record(generation: before))
        }
        let (now, anchors) = try writer.attempt { db in
            if problem != nil {
                try CounterAnchors.take(now: Int64(time(nil)), db)
                // In the same transaction: this start may end before it asks for the secret.
                try StoreSecrets.forgetEnrolment(db)
            }
            let number = try Generation.advance(db)
            return (Generation(store: before.store, number: number), try CounterAnchors(db))
        }
        self.anchors = anchors
        seenGeneration = Atomic(now.number)
        files = try StoreFiles(database: resolved)
        generation = Mutex(try GenerationFile(database: resolved, files.record(now)))
        let count = try writer.attempt { db in try CounterLog.count(db) }
        work = Mutex(WriterWork(fold: CounterFold(entryCount: count, entriesMax: entriesMax)))
        try lock.note(files, database: resolved)
    }

    package var decides: DecisionMoment { .inMemory }

    package func load(
        apps: AppNumbers,
        into body: ([KeyRow]) -> Void
    ) throws(JournalError) -> JournalRevision {
        try reader.load(apps: apps, into: body)
    }

    package func enrolmentSecret() throws(JournalError) -> [UInt8]? {
        try writer.write { db in try StoreSecrets.enrolment(db) }
    }

    package func changes(
        since revision: JournalRevision,
        into body: ([KeyRow]) -> Void
    ) throws(JournalError) -> JournalRevision {
        try files.check()
        // Read before the database, so the database is at least this new.
        let seen = seenGeneration.load(ordering: .acquiring)
        let (reached, now) = try reader.changes(since: revision, into: body)
        guard now.store == store, now.number >= seen else {
            throw JournalError(.replaced, "\(writer.path) was put back to an older state")
        }
        seenGeneration.max(now.number, ordering: .acquiringAndReleasing)
        // The command that has made a change leaves this to the gateway. If it fails, the next
        // commit retries and reports it.
        try? generation.withLock { $0 }.raise(to: now.number)
        return reached
    }

    package func follow(_ body: @escaping @Sendable () -> JournalError?) {
        follower.withLock { $0 = body }
        watch.start(body)
    }

    package func writeOnDemand(_ body: @escaping @Sendable () -> JournalError?) {
        watch.writeOnDemand(body)
    }

    // MARK: Writing

    package func commit(_ batch: JournalBatch) throws(JournalError) -> CommitAnswer {
        guard !watch.isEnded, !isLent.load(ordering: .acquiring) else {
            throw JournalError(.closed, "the store is closed")
        }
        do throws(JournalError) {
            try files.check()
        } catch {
            // Requests that don't wait for the disk must also be refused, and at once.
            if let body = follower.withLock({ $0 }) { watch.look(body) }
            throw error
        }
        let (rows, tokens, number) = try writer.write { db in
            let session = SQLiteSession(db)
            let isOfCounters = !batch.changes.isEmpty
            let logged = isOfCounters ? try CounterLog.append(batch.changes, db) : nil
            let rows = try batch.enrolments.map { try self.enrol($0, session) }
            for change in batch.receipts {
                try session.apply(change)
                try self.leaveTrail(ofRow: change.row, session)
            }
            let tokens = try SpentTokens.spend(batch.tokens, db)
            let isLogAlone = rows.isEmpty && batch.receipts.isEmpty && tokens.isEmpty
            return (rows, tokens, try isLogAlone ? logged : logged ?? Generation.advance(db))
        }
        if let number { seenGeneration.max(number, ordering: .acquiringAndReleasing) }
        work.withLock { work in
            work.lastCount = batch.changes.count
            work.fold.added(batch.changes.count)
        }
        return CommitAnswer(enrolments: rows, tokens: tokens)
    }

    package func receiptStore() throws(JournalError) -> (any ReceiptStore)? {
        do throws(StoreProblem) {
            let receipts = try SQLiteReceiptStore(beside: writer)
            self.receipts.withLock { $0 = receipts }
            return receipts
        } catch {
            throw JournalError(.unusable, "\(error.path) \(error.detail)")
        }
    }

    package func settle() throws(JournalError) {
        do throws(StoreProblem) {
            try generation.withLock { $0 }.raise(to: seenGeneration.load(ordering: .acquiring))
        } catch {
            throw JournalError(.unusable, "\(error.path) \(error.detail)")
        }
        try work.withLock { (work) throws(JournalError) in
            try work.spent.prune(writer, now: Int64(time(nil)))
            guard work.fold.isDue, !isTrailed.load(ordering: .acquiring) else { return }
            try work.fold.fold(writer, added: work.lastCount)
        }
    }

    private func enrol(
        _ record: KeyRecord,
        _ session: SQLiteSession
    ) throws(JournalError) -> EnrolledRow {
        let mark = try KeyMarks(session).stored(of: record.keyID, session)
        let isNew = mark == nil ? try session.insert(record, revision: "0") : false
        let found = try session.ask(
            SQLiteKeyReader.select + " WHERE k.key_id = $1",
            [.bytes((mark ?? record.keyID).bytes)]
        ) { (row) throws(JournalError) in try reader.key(row, anchors) }
        guard let key = found.first?.asked(by: record.keyID) else {
            throw JournalError(.damaged, "a key that was inserted is not there")
        }
        if isNew { try leaveTrail(ofRow: key.row, session) }
        return EnrolledRow(key: key, isNew: isNew)
    }

    package func beginTrail() {
        // A running piece of a merge, or a transaction, ends first.
        work.withLock { _ in
            writer.queue.inDatabase { _ in isTrailed.store(true, ordering: .releasing) }
        }
    }

    package func endTrail() { isTrailed.store(false, ordering: .releasing) }

    /// Makes a written key visible to the process that reads ahead, like a command's change.
    private func leaveTrail(ofRow row: Int64, _ session: SQLiteSession) throws(JournalError) {
        guard isTrailed.load(ordering: .acquiring) else { return }
        try session.run([SQLiteSession.nextRevision, KeyColumns.touch(row)])
    }

    package func close() {
        guard !isLent.load(ordering: .acquiring) else { return }
        watch.endAndWait()
        // The last connection that closes a database deletes the log at its path, even if another
        // database is there now.
        if !files.ownsLog { writer.leaveLog() }
        let isIntact = files.difference == nil
        closeConnections()
        if isIntact { rememberCleanStop() }
        lock.release()
    }

    private func closeConnections() {
        receipts.withLock { $0 }?.close()
        // The system closes open files if this fails; with WAL nothing is lost.
        try? reader.database.close()
        try? writer.close()
    }

    /// There is no log of transactions any more that could be mistaken for another database's.
    private func rememberCleanStop() {
        let number = seenGeneration.load(ordering: .acquiring)
        var record = files.record(Generation(store: store, number: number))
        record.log = nil
        // If it fails, the file keeps its contents, which are also correct.
        _ = try? GenerationFile(database: writer.path, record)
    }
}

/// The writer's state between commits.
private struct WriterWork {
    var fold: CounterFold
    /// Changes of the last commit.
    var lastCount = 0
    var spent = SpentTokens()
}

// Hand-over of the store to the successor without a moment in which it is unlocked: the successor
// gets the descriptors of the lock and of the socket on which commands call. Commands wait
// meanwhile. If the successor fails, this process continues with the files that it has kept open.
extension SQLiteKeyJournal {
    package func lend() -> StoreLease? {
        watch.pause()
        isLent.store(true, ordering: .releasing)
        return StoreLease(lock: lock.descriptor, calls: watch.descriptor)
    }

    package func takeBack() throws(JournalError) {
        do throws(StoreProblem) {
            // The other process may have written its own note.
            try lock.note(files, database: writer.path)
        } catch {
            throw JournalError(.unusable, "\(error.path) \(error.detail)")
        }
        // Its file of the generation may be in the place of the open one. If this fails, that file
        // keeps a lower number than it could have.
        if let now = try? writer.read({ db in try Generation.current(db) }),
            let file = try? GenerationFile(database: writer.path, files.record(now))
        {
            generation.withLock { $0 = file }
        }
        isLent.store(false, ordering: .releasing)
        watch.goOn()
    }

    package func leave() {
        watch.leave()
        // The successor has the store open now, so that nothing of it is deleted.
        closeConnections()
        lock.leave()
    }
}
