internal import DeviceKey
internal import Foundation
internal import GRDB
package import KeyStore
internal import Synchronization

/// Reads the rows of keys on a connection of its own.
///
/// A successor uses it to read a store ahead, while its predecessor still writes there.
package final class SQLiteKeyReader: KeySource {
    /// The place up to which the rows were read.
    private struct Mark {
        /// The revision of commands' changes, and of single keys that were written: see
        /// ``KeyJournal/beginTrail()``.
        let revision: JournalRevision
        /// The generation of the log of counters; later entries have higher numbers.
        let generation: Int64
    }

    /// Rows of one batch.
    private static let batchCount = 4_096

    let database: KeyDatabase
    private let identity: FileIdentity?
    private let apps = Mutex(AppRows())
    private let mark = Mutex<Mark?>(nil)
    /// Whether another process writes: then each ``load(apps:into:)`` continues where the last one
    /// ended.
    private let isAhead: Bool

    init(_ database: KeyDatabase, isAhead: Bool = false) {
        self.database = database
        self.isAhead = isAhead
        identity = FileIdentity(path: database.path)
    }

    /// Opens a database that another process uses, and checks it for damage. `nil` when there is
    /// none at the path, or it has no tables: a writer has to open it first.
    package convenience init?(ahead path: String) throws(StoreProblem) {
        let database: KeyDatabase
        do throws(StoreProblem) {
            database = try KeyDatabase(reading: path)
        } catch {
            guard error.reason == .missing else { throw error }
            return nil
        }
        self.init(database, isAhead: true)
        try database.check()
    }

    /// - Throws: `replaced` when another file is at the path now.
    func checkIdentity() throws(StoreProblem) {
        guard let identity, FileIdentity(path: database.path) == identity else {
            throw StoreProblem(.replaced, database.path, "was replaced while it was opened")
        }
    }

    package func load(
        apps: AppNumbers,
        into body: ([KeyRow]) -> Void
    ) throws(JournalError) -> JournalRevision {
        self.apps.withLock { $0 = AppRows(numbers: apps) }
        return try mark.withLock { (mark) throws(JournalError) in
            let before = isAhead ? mark : nil
            let reached = try database.read { db in
                let newer = try CounterLog.entries(after: before?.generation ?? 0, db)
                let anchors = try CounterAnchors(db)
                if let before {
                    try self.fetchChanged(db, anchors, since: before.revision, into: body)
                    try self.fetch(newer, db, anchors, into: body)
                } else {
                    let sql = SQLiteKeyColumns.select + " WHERE deleted_at IS NULL"
                    try self.fetch(db, anchors, sql: sql, arguments: []) { rows in
                        guard !newer.isEmpty else { return body(rows) }
                        body(
                            rows.map { row in
                                newer[row.row].map { row.merged($0, anchors) } ?? row
                            }
                        )
                    }
                }
                return Mark(
                    revision: try Self.revision(db),
                    generation: try Generation.current(db).number
                )
            }
            mark = reached
            return reached.revision
        }
    }

    /// The rows that were changed after this revision. Returns the new revision, and the generation
    /// of the database.
    func changes(
        since revision: JournalRevision,
        into body: ([KeyRow]) -> Void
    ) throws(JournalError) -> (JournalRevision, Generation) {
        try database.read { db in
            try self.fetchChanged(db, try CounterAnchors(db), since: revision, into: body)
            return (try Self.revision(db), try Generation.current(db))
        }
    }

    private static func revision(_ db: Database) throws -> JournalRevision {
        let statement = try db.cachedStatement(sql: "SELECT revision FROM state")
        return JournalRevision(try Int64.fetchOne(statement) ?? 0)
    }

    private func fetchChanged(
        _ db: Database,
        _ anchors: CounterAnchors,
        since revision: JournalRevision,
        into body: ([KeyRow]) -> Void
    ) throws {
        // The second condition lets SQLite use the index, which has only such rows.
        let sql = SQLiteKeyColumns.select + " WHERE revision > ? AND revision > 0"
        try fetch(db, anchors, sql: sql, arguments: [revision.number], into: body)
    }

    /// The rows of the log's entries, with these counters.
    private func fetch(
        _ entries: [Int64: CounterChange],
        _ db: Database,
        _ anchors: CounterAnchors,
        into body: ([KeyRow]) -> Void
    ) throws {
        let statement = try db.cachedStatement(sql: SQLiteKeyColumns.select + " WHERE id = ?")
        for entry in entries.values {
            guard let row = try Row.fetchOne(statement, arguments: [entry.row]) else { continue }
            body([try key(row, db, anchors).merged(entry, anchors)])
        }
    }

    private func fetch(
        _ db: Database,
        _ anchors: CounterAnchors,
        sql: String,
        arguments: StatementArguments,
        into body: ([KeyRow]) -> Void
    ) throws {
        var rows: [KeyRow] = []
        rows.reserveCapacity(Self.batchCount)
        let cursor = try Row.fetchCursor(db, sql: sql, arguments: arguments)
        while let row = try cursor.next() {
            rows.append(try key(row, db, anchors))
            if rows.count == Self.batchCount {
                body(rows)
                rows.removeAll(keepingCapacity: true)
            }
        }
        if !rows.isEmpty { body(rows) }
    }

    /// Reads a row of ``SQLiteKeyColumns/select``.
    func key(_ row: Row, _ db: Database, _ anchors: CounterAnchors) throws -> KeyRow {
        let app: Int64 = row[3]
        return KeyRow(
            row: row[0],
            keyID: try SQLiteKeyColumns.keyID(row, 1),
            platform: try SQLiteKeyColumns.platform(row, 13),
            publicKey: try SQLiteKeyColumns.publicKey(row, 2),
            app: try apps.withLock { try $0.number(of: app, db) },
            environment: try SQLiteKeyColumns.environment(row, 4),
            counters: try SQLiteKeyColumns.counters(row, 5, 6),
            standing: SQLiteKeyColumns.status(row, 7, 11).standing,
            context: try SQLiteKeyColumns.context(row, 8),
            risk: SQLiteKeyColumns.risk(row, 9, 10),
            anchor: anchors.anchor(lastKnown: row[12]),
            erasure: try SQLiteKeyColumns.secret(row, 14)
        )
    }
}

extension KeyRow {
    /// The row merged with newer or older counters.
    fileprivate func merged(_ change: CounterChange, _ anchors: CounterAnchors) -> KeyRow {
        guard erasure == nil else { return self }
        var state = counters
        state.merge(change.counters)
        return KeyRow(
            row: row,
            keyID: keyID,
            platform: platform,
            publicKey: publicKey,
            app: app,
            environment: environment,
            counters: state,
            standing: standing,
            context: context,
            risk: risk,
            anchor: anchor == .held ? .held : anchors.anchor(lastKnown: change.usedAt)
        )
    }
}

/// The numbers of App IDs in the database, mapped to those of the table.
private struct AppRows {
    let numbers: AppNumbers
    private var known: [Int64: AppNumber] = [:]

    init(numbers: AppNumbers = AppNumbers()) { self.numbers = numbers }

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
