internal import Cryptography
internal import DeviceKey
internal import Foundation
internal import GRDB
internal import Glibc
package import KeyStore

/// Copies the database of a store into a file, beside a running gateway or without one.
package enum StoreBackup {
    /// The contents of the copy.
    package struct Report: Sendable {
        /// The number of stored keys, without deleted ones.
        package let keys: Int
        package let generation: Int64
        package let bytes: Int64
    }

    /// Writes the copy, durably. A file with that name appears only when it is whole.
    ///
    /// A running gateway first writes the counters of all requests that it has admitted so far.
    /// Checked in this order: that the name is free; that the store can be read; that the gateway
    /// has written; that there is room; that the copy is whole.
    package static func make(ofStore path: String, to file: String) throws(StoreProblem) -> Report {
        guard !StoreFile.exists(file) else {
            throw StoreProblem(.occupied, at: file, "exists already; nothing was written")
        }
        let store = try KeyAdministration(reading: path)
        try write(store.database.path)
        let draft = "\(file).\(getpid()).part"
        try StoreCopy.make(of: store.database, to: draft)
        defer { unlink(draft) }
        try store.close()
        let report = try report(draft)
        // Unlike a rename, a link replaces no other file.
        guard link(draft, file) == 0 else {
            throw StoreProblem(
                errno == EEXIST ? .occupied : .unusable,
                at: file,
                "can't be made: \(StoreFile.lastError)"
            )
        }
        StoreFile.synchroniseFolder(of: file)
        return report
    }

    private static func write(_ database: String) throws(StoreProblem) {
        switch ChangeCall.write(database: database) {
        case .nobody, .answered(.seen): return
        case .answered(.unreadable(let detail)), .answered(.replaced(let detail)),
            .unheard(let detail):
            let text = "has a gateway that does not write what waits: \(detail)"
            throw StoreProblem(.gatewayNotTold, at: database, text)
        }
    }

    private static func report(_ draft: String) throws(StoreProblem) -> Report {
        let copy = KeyAdministration(try KeyDatabase(reading: draft))
        try copy.database.check()
        let report = Report(
            keys: try copy.count(),
            generation: try copy.read { try Generation.current($0).number },
            bytes: FileIdentity(path: draft)?.length ?? 0
        )
        try copy.close()
        return report
    }
}

/// A whole, compact copy of a database in a new file of mode 0600.
///
/// It uses SQLite's `VACUUM INTO`, which reads one state of the database while others write,
/// including its log of transactions.
enum StoreCopy {
    /// - file: must not exist. The written part is removed when the copy fails.
    static func make(of database: KeyDatabase, to file: String) throws(StoreProblem) {
        guard !StoreFile.exists(file) else {
            throw StoreProblem(.occupied, at: file, "exists already; nothing was written")
        }
        try StoreFile.create(file)
        do {
            try database.queue.writeWithoutTransaction { db in
                try db.execute(sql: "VACUUM INTO ?", arguments: [file])
            }
        } catch {
            unlink(file)
            let problem = KeyDatabase.problem(error, file)
            guard problem.reason != .damaged else {
                throw StoreProblem(.damaged, at: database.path, "is damaged: \(problem.detail)")
            }
            throw problem
        }
        try synchronise(file)
    }

    /// Makes the contents of a file survive a power cut.
    static func synchronise(_ file: String) throws(StoreProblem) {
        let descriptor = try StoreFile.open(file)
        defer { Glibc.close(descriptor) }
        guard fsync(descriptor) == 0 else { throw StoreFile.lastProblem(file, "can't be written") }
    }
}

/// Replaces a store's database by a backup, while no gateway runs.
///
/// The present database is kept under another name. Its facts that the backup lacks go into the new
/// database: keys, counters, revocations, deletions, receipts, spent tokens and the list of
/// changes. Then nothing is lost, and no admitted assertion or spent token is good again. If it
/// can't be read, these facts are unknown, and all keys lose their anchor (``CounterAnchors``).
package struct StoreRestore {
    /// The result for the present database.
    package enum Present: Sendable {
        /// The new database has all of its facts.
        case merged
        /// It is missing, can't be read, is an older copy itself or another store.
        case lost(String)
    }

    package struct Report: Sendable {
        package let keys: Int
        package let present: Present
        /// The new path of the present database; `nil` when there was none.
        package let kept: String?
    }

    private let file: String
    private let path: String
    private let draft: String
    private let note: ChangeNote

    /// - file: a file of `store backup`, or another copy of a database.
    /// - path: the path of the store.
    package init(of file: String, toStore path: String, _ note: ChangeNote) {
        self.file = StoreFile.resolved(file)
        self.path = StoreFile.resolved(path)
        draft = self.path + ".restored"
        self.note = note
    }

    /// Checked in this order: that no gateway uses the store; that the file is another one, can be
    /// read, is ours and not damaged. Nothing changes until the new database replaces the present
    /// one.
    package func run() throws(StoreProblem) -> Report {
        let lock = try StoreLock(database: path)
        defer { lock.release() }
        guard file != path else {
            throw StoreProblem(.occupied, at: path, "is the store itself; nothing was changed")
        }
        removeDraft()
        defer { removeDraft() }
        let backup = try KeyDatabase(reading: file)
        try backup.check()
        try StoreCopy.make(of: backup, to: draft)
        try? backup.close()
        let new = KeyAdministration(try KeyDatabase(path: draft, creates: false))
        let last = GenerationFile.record(ofDatabase: path)?.generation
        let present = merge(into: new, last)
        let generation = try finish(new, present: present, last: last)
        let count = try new.count()
        try new.close()
        try StoreCopy.synchronise(draft)
        let report = Report(keys: count, present: present, kept: try keepPresent())
        guard rename(draft, path) == 0 else {
            throw StoreFile.lastProblem(path, "can't be replaced")
        }
        StoreFile.synchroniseFolder(of: path)
        _ = try GenerationFile(database: path, GenerationFile.Record(generation: generation))
        return report
    }

    private func removeDraft() {
        for suffix in ["", "-wal", "-shm", GenerationFile.suffix] { unlink(draft + suffix) }
    }

    // MARK: What the present database knows

    private func merge(into new: KeyAdministration, _ last: Generation?) -> Present {
        do {
            if let problem = StoreAge.problemBeforeOpening(path) { return .lost(problem.detail) }
            guard FileIdentity(path: path)?.length ?? 0 > 0 else { return .lost("is not there") }
            try StoreAge.checkPairing(path)
            let present = KeyAdministration(try KeyDatabase(path: path, creates: false))
            try present.database.check()
            let now = try present.read { try Generation.current($0) }
            let isSame = try new.read { try Generation.current($0) }.store == now.store
            try add(present, to: new, isSame: isSame)
            try present.close()
            if let problem = StoreAge.problem(now, path) { return .lost(problem.detail) }
            return isSame ? .merged : .lost("is another store than the backup")
        } catch let problem as StoreProblem {
            return .lost(problem.detail)
        } catch {
            return .lost("\(error)")
        }
    }

    /// Raises and adds; nothing goes down. A partial run does no harm.
    ///
    /// - isSame: whether the backup was made of this store: then its list of changes is the
    ///   beginning of this one's.
    private func add(_ present: KeyAdministration, to new: KeyAdministration, isSame: Bool) throws {
        var all = KeyFilter()
        all.deleted = .included
        var page: [KeyRecord] = []
        try present.forEach(all) { record in
            page.append(record)
            guard page.count == Self.pageCount else { return }
            try Self.add(page, to: new)
            page.removeAll(keepingCapacity: true)
        }
        if !page.isEmpty { try Self.add(page, to: new) }
        try new.deleteMarked(note)
        try present.copySpentTokens(to: new)
        let (changes, second) = try present.read { db in
            let session = SQLiteSession(db)
            let changes = try session.lastChanges(of: nil, limit: KeyChange.keptMax)
            return (changes, try CounterAnchors(db).second)
        }
        try new.write { db in
            if isSame { try db.execute(sql: "DELETE FROM key_changes") }
            try SQLiteSession(db).run(changes.reversed().flatMap(KeyChangeLog.add))
            let sql = "UPDATE state SET anchored_after = max(anchored_after, ?)"
            try db.execute(sql: sql, arguments: [second])
        }
        // After the list of changes, which has the ids of keys that are deleted here alone.
        if try new.eraseDeleted() > 0 { _ = try new.wipe() }
    }

    /// Adds keys, or what they have more; of a receipt the newer one stays, with its metric.
    private static func add(
        _ records: [KeyRecord],
        to new: KeyAdministration
    ) throws(StoreProblem) {
        let outcomes = try new.store(records)
        try new.write { db in
            let find = try db.cachedStatement(sql: "SELECT id FROM keys WHERE key_id = ?")
            for (record, outcome) in zip(records, outcomes) {
                guard case .merged = outcome, let receipt = record.receipt else { continue }
                let key: StatementArguments = [Data(record.keyID.bytes)]
                guard let row = try Int64.fetchOne(find, arguments: key) else { continue }
                let state = record.receiptState
                func apply(_ receipt: [UInt8]?) throws {
                    let id = record.keyID
                    let change = ReceiptChange(row: row, keyID: id, receipt: receipt, state: state)
                    try SQLiteSession(db).apply(change)
                }
                try apply(receipt)
                // Where the receipt is not newer, the result of the last try may be.
                if state.triedAt != nil { try apply(nil) }
            }
        }
    }

    private static let pageCount = 4_096

    /// Makes the new database the newest one.
    private func finish(
        _ new: KeyAdministration,
        present: Present,
        last: Generation?
    ) throws(StoreProblem) -> Generation {
        try new.write { db in
            if case .lost = present { try CounterAnchors.take(now: note.now, db) }
            // An attestation that was deleted since could also be stored again.
            try StoreSecrets.forgetEnrolment(db)
            let count = try Int.fetchOne(db, sql: "SELECT count(*) FROM keys") ?? 0
            let change = KeyChange(.storeRestored, of: nil, keys: count, note)
            try SQLiteSession(db).run(KeyChangeLog.add(change))
            try Generation.keep(last?.number ?? 0, db)
            _ = try Generation.advance(db)
            return try Generation.current(db)
        }
    }

    // MARK: Files

    /// Gives the present database and its log of transactions a second name.
    private func keepPresent() throws(StoreProblem) -> String? {
        guard StoreFile.exists(path) else { return nil }
        let stamp = UnixTime(seconds: note.now).iso8601.filter { $0 != "-" && $0 != ":" }
        let kept = "\(path).before-\(stamp)"
        guard link(path, kept) == 0 else { throw StoreFile.lastProblem(kept, "can't be made") }
        // If the database could be read, there is no log. For the new database it would be
        // another's.
        for suffix in ["-wal", "-shm"] where StoreFile.exists(path + suffix) {
            guard rename(path + suffix, kept + suffix) == 0 else {
                throw StoreProblem(
                    .unusable,
                    at: kept + suffix,
                    "can't be made: \(StoreFile.lastError)"
                )
            }
        }
        return kept
    }
}
