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

    /// The columns of a key, with the last time at which it was enrolled or used.
    static let select = KeyColumns.selectRow(
        with: """
            , max(coalesce(k.last_used_at, k.enrolled_at), coalesce(k.enrolled_at, k.last_used_at))
            """
    )

    /// Rows of one batch.
    private static let batchCount = 4_096

    let database: KeyDatabase
    private let identity: FileIdentity?
    private let apps = Mutex(AppNumbers())
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
            throw StoreProblem(.replaced, at: database.path, "was replaced while it was opened")
        }
    }

    package func load(
        apps: AppNumbers,
        into body: ([KeyRow]) -> Void
    ) throws(JournalError) -> JournalRevision {
        self.apps.withLock { $0 = apps }
        return try mark.withLock { (mark) throws(JournalError) in
            let before = isAhead ? mark : nil
            let reached = try database.read { db in
                let newer = try CounterLog.entries(after: before?.generation ?? 0, db)
                let anchors = try CounterAnchors(db)
                let session = SQLiteSession(db)
                if let before {
                    try self.fetchChanged(session, anchors, since: before.revision, into: body)
                    for entry in newer.values {
                        let one = DatabaseStatement(
                            Self.select + " WHERE k.id = $1",
                            [.number(entry.row)]
                        )
                        try self.fetch(one, in: session, anchors) { rows in
                            body(rows.map { $0.merged(entry, anchors) })
                        }
                    }
                } else {
                    let all = DatabaseStatement(Self.select + " WHERE k.deleted_at IS NULL")
                    try self.fetch(all, in: session, anchors) { rows in
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
            let anchors = try CounterAnchors(db)
            try self.fetchChanged(SQLiteSession(db), anchors, since: revision, into: body)
            return (try Self.revision(db), try Generation.current(db))
        }
    }

    private static func revision(_ db: Database) throws -> JournalRevision {
        let statement = try db.cachedStatement(sql: "SELECT revision FROM state")
        return JournalRevision(try Int64.fetchOne(statement) ?? 0)
    }

    private func fetchChanged(
        _ session: SQLiteSession,
        _ anchors: CounterAnchors,
        since revision: JournalRevision,
        into body: ([KeyRow]) -> Void
    ) throws(JournalError) {
        // The second condition lets SQLite use the index, which has only such rows.
        let changed = DatabaseStatement(
            Self.select + " WHERE k.revision > $1 AND k.revision > 0",
            [.number(revision.number)]
        )
        try fetch(changed, in: session, anchors, into: body)
    }

    /// Gives the rows in batches.
    private func fetch(
        _ statement: DatabaseStatement,
        in session: SQLiteSession,
        _ anchors: CounterAnchors,
        into body: ([KeyRow]) -> Void
    ) throws(JournalError) {
        var rows: [KeyRow] = []
        _ = try session.ask([statement]) { (row) throws(JournalError) in
            rows.append(try key(row, anchors))
            if rows.count == Self.batchCount {
                body(rows)
                rows.removeAll(keepingCapacity: true)
            }
        }
        if !rows.isEmpty { body(rows) }
    }

    /// Reads a row of ``select``.
    func key(_ row: SQLiteRow, _ anchors: CounterAnchors) throws(JournalError) -> KeyRow {
        try row.keyRow(
            apps: apps.withLock { $0 },
            anchor: anchors.anchor(lastKnown: row.number(14))
        )
    }
}

extension KeyRow {
    /// The row merged with newer or older counters.
    fileprivate func merged(_ change: CounterChange, _ anchors: CounterAnchors) -> KeyRow {
        guard erasure == nil else { return self }
        var row = self
        row.counters.merge(change.counters)
        if anchor == .lost { row.anchor = anchors.anchor(lastKnown: change.usedAt) }
        return row
    }
}
