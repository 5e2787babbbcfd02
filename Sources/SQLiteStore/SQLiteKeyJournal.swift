internal import AppAttest
internal import Cryptography
internal import Foundation
internal import GRDB
package import Store
internal import Synchronization

/// The gateway's journal in SQLite.
package final class SQLiteKeyJournal: KeyJournal {
    /// Rows of one batch of `load` and `changes`.
    private static let batchCount = 4_096

    private let lock: StoreLock
    private let writer: KeyDatabase
    private let reader: KeyDatabase
    private let signal: ChangeSignal
    private let apps = Mutex(AppRows())
    /// Only the writer's queue comes here.
    private let work: Mutex<WriterWork>
    /// The revision that the table has been given.
    private let servedRevision = Atomic<Int64>(0)

    /// Opens the database, makes it where it is missing, and checks it as a whole.
    ///
    /// Checked in this order: that the file can be opened or made; that no other gateway uses it;
    /// that it is a database, ours, and of a known version; that it is not damaged.
    package convenience init(path: String) throws(StoreProblem) {
        try self.init(path: path, foldedAt: CounterFold.entriesMax)
    }

    /// - `entriesMax`: how many entries of the log of counters are folded.
    package init(path: String, foldedAt entriesMax: Int) throws(StoreProblem) {
        try StoreFile.create(path)
        let resolved = StoreFile.resolved(path)
        lock = try StoreLock(database: resolved)
        writer = try KeyDatabase(path: resolved, creates: false)
        try writer.check()
        reader = try KeyDatabase(beside: writer)
        do throws(JournalError) {
            let count = try writer.read { try CounterLog.count($0) }
            let fold = CounterFold(entryCount: count, entriesMax: entriesMax)
            work = Mutex(WriterWork(fold: fold))
        } catch {
            throw StoreProblem(error, resolved)
        }
        signal = try ChangeSignal(database: resolved)
        lock.note(changes: signal.identity)
    }

    package var changeCount: UInt64 { signal.count }

    package func load(
        apps: AppNumbers,
        into body: ([KeyRow]) -> Void
    ) throws(JournalError) -> JournalRevision {
        self.apps.withLock { $0.numbers = apps }
        return try reader.read { db in
            let newer = try CounterLog.entries(db)
            try self.fetch(db, sql: KeyColumns.select, arguments: []) { rows in
                guard !newer.isEmpty else { return body(rows) }
                body(rows.map { row in newer[row.row].map(row.merged) ?? row })
            }
            return try self.revision(db)
        }
    }

    package func changes(
        since revision: JournalRevision,
        into body: ([KeyRow]) -> Void
    ) throws(JournalError) -> JournalRevision {
        try reader.read { db in
            // The second condition is what lets SQLite use the index, which is of such rows only.
            let sql = KeyColumns.select + " WHERE revision > ? AND revision > 0"
            try self.fetch(db, sql: sql, arguments: [revision.number], into: body)
            return try self.revision(db)
        }
    }

    private func revision(_ db: Database) throws -> JournalRevision {
        let number = try Self.revisionNumber(db)
        servedRevision.store(number, ordering: .releasing)
        return JournalRevision(number)
    }

    private static func revisionNumber(_ db: Database) throws -> Int64 {
        let statement = try db.cachedStatement(sql: "SELECT revision FROM state")
        return try Int64.fetchOne(statement) ?? 0
    }

    private func fetch(
        _ db: Database,
        sql: String,
        arguments: StatementArguments,
        into body: ([KeyRow]) -> Void
    ) throws {
        var rows: [KeyRow] = []
        rows.reserveCapacity(Self.batchCount)
        let cursor = try Row.fetchCursor(db, sql: sql, arguments: arguments)
        while let row = try cursor.next() {
            rows.append(try key(row, db))
            if rows.count == Self.batchCount {
                body(rows)
                rows.removeAll(keepingCapacity: true)
            }
        }
        if !rows.isEmpty { body(rows) }
    }

    private func key(_ row: Row, _ db: Database) throws -> KeyRow {
        let app: Int64 = row[3]
        return KeyRow(
            row: row[0],
            keyID: try KeyColumns.keyID(row, 1),
            publicKey: try KeyColumns.publicKey(row, 2),
            app: try apps.withLock { try $0.number(of: app, db) },
            environment: try KeyColumns.environment(row, 4),
            counters: try KeyColumns.counters(row, 5, 6),
            isRevoked: !row.hasNull(atIndex: 7)
        )
    }

    // MARK: Writing

    package func commit(_ batch: JournalBatch) throws(JournalError) -> [EnrolledRow] {
        let seenVersion = work.withLock(\.seenVersion)
        let (rows, version, revision) = try writer.write { db in
            try CounterLog.append(batch.changes, db)
            let rows = try batch.enrolments.map { try self.enrol($0, db) }
            let version = KeyDatabase.dataVersion(db)
            let isOurs = version != nil && version == seenVersion
            return (rows, version, isOurs ? nil : try Self.revisionNumber(db))
        }
        work.withLock { work in
            work.lastCount = batch.changes.count
            work.fold.added(batch.changes.count)
            work.seenVersion = version
        }
        // A command has changed keys, and the table was not told so: the file of changes was
        // replaced. To raise our own word makes the next lookup read them.
        if let revision, revision > servedRevision.load(ordering: .acquiring) { signal.raise() }
        return rows
    }

    package func settle() throws(JournalError) {
        try work.withLock { (work) throws(JournalError) in
            guard work.fold.isDue else { return }
            try work.fold.fold(writer, added: work.lastCount)
        }
    }

    private func enrol(_ record: KeyRecord, _ db: Database) throws -> EnrolledRow {
        let isNew = try KeyColumns.insert(record, revision: 0, db)
        let sql = KeyColumns.select + " WHERE key_id = ?"
        guard let row = try Row.fetchOne(db, sql: sql, arguments: [Data(record.keyID.octets)])
        else { throw JournalError(.damaged, "a key that was inserted is not there") }
        return EnrolledRow(key: try key(row, db), isNew: isNew)
    }

    package func close() {
        // What is open when this fails is closed by the system; nothing is lost with WAL.
        try? reader.queue.close()
        try? writer.queue.close()
        lock.release()
    }
}

extension KeyRow {
    /// The row with counters that are newer, or older.
    fileprivate func merged(_ change: CounterChange) -> KeyRow {
        var state = counters
        state.merge(change.counters)
        return KeyRow(
            row: row,
            keyID: keyID,
            publicKey: publicKey,
            app: app,
            environment: environment,
            counters: state,
            isRevoked: isRevoked
        )
    }
}

/// What the writer keeps between commits.
private struct WriterWork {
    var fold: CounterFold
    /// Changes of the last commit.
    var lastCount = 0
    /// The data version whose revision was looked at.
    var seenVersion: UInt32?
}

/// The numbers of App IDs in the database, as those of the table.
private struct AppRows {
    var numbers = AppNumbers()
    private var known: [Int64: AppNumber] = [:]

    mutating func number(of row: Int64, _ db: Database) throws -> AppNumber {
        if let number = known[row] { return number }
        let sql = "SELECT app_id FROM apps WHERE id = ?"
        guard let appID = try String.fetchOne(db, sql: sql, arguments: [row]) else {
            throw JournalError(.damaged, "a key is of an app that is not there")
        }
        let number = numbers.number(of: appID)
        known[row] = number
        return number
    }
}
