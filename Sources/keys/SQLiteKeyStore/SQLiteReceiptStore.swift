internal import Foundation
internal import GRDB
internal import KeyStore

/// The receipts in the database, over their own connection: a scan of a million takes some seconds,
/// and the gateway must not wait that long.
final class SQLiteReceiptStore: ReceiptStore {
    private let database: KeyDatabase

    init(beside writer: KeyDatabase) throws(StoreProblem) {
        database = try KeyDatabase(beside: writer)
    }

    /// Ends its use, after the journal was closed: the last connection removes the log.
    func close() {
        // The system closes open files if this fails; nothing is written here.
        try? database.close()
    }

    func forEachDue(at now: Int64, _ body: (DueReceipt) -> Void) throws(JournalError) {
        try database.read { db in
            // The last uses that are not in the rows of their keys yet.
            let newer = try CounterLog.entries(db)
            let sql = Self.select + " AND r.due_at <= ?"
            let rows = try Row.fetchCursor(db, sql: sql, arguments: [now])
            while let row = try rows.next() {
                var due = try Self.due(row)
                if let used = newer[due.row]?.usedAt {
                    due.lastUsedAt = max(due.lastUsedAt ?? .min, used)
                }
                body(due)
            }
        }
    }

    func forEachAsked(_ body: (DueReceipt) -> Void) throws(JournalError) {
        try database.read { db in
            let sql = Self.select + " AND r.asked = 1 AND r.due_at IS NOT NULL LIMIT ?"
            let rows = try Row.fetchCursor(db, sql: sql, arguments: [askedReceiptsMax])
            while let row = try rows.next() { body(try Self.due(row)) }
        }
    }

    private static let select = """
        SELECT r.key, r.due_at, r.expires_at, k.last_used_at, r.tried_at, r.asked, k.environment
        FROM renewals r JOIN keys k ON k.id = r.key
        WHERE k.revoked_at IS NULL
        """

    private static func due(_ row: Row) throws -> DueReceipt {
        DueReceipt(
            row: row[0],
            environment: try SQLiteKeyColumns.environment(row, 6),
            dueAt: row[1],
            expiresAt: row[2],
            lastUsedAt: row[3],
            triedAt: row[4],
            isAsked: row[5]
        )
    }

    func receipt(ofRow row: Int64) throws(JournalError) -> KeptReceipt? {
        try database.read { db in
            let select = try db.cachedStatement(
                sql: """
                    SELECT k.key_id, k.public_key, a.app_id, k.environment, c.receipt,
                        \(SQLiteReceiptColumns.names(of: "r"))
                    FROM keys k JOIN apps a ON a.id = k.app JOIN receipts c ON c.key = k.id
                        JOIN renewals r ON r.key = k.id
                    WHERE k.id = ? AND k.revoked_at IS NULL
                    """
            )
            return try Row.fetchOne(select, arguments: [row]).map { found in
                let receipt: Data = found[4]
                return KeptReceipt(
                    row: row,
                    keyID: try SQLiteKeyColumns.keyID(found, 0),
                    publicKey: try SQLiteKeyColumns.publicKey(found, 1),
                    appID: found[2],
                    environment: try SQLiteKeyColumns.environment(found, 3),
                    receipt: Array(receipt),
                    state: try SQLiteReceiptColumns.state(found, from: 5)
                )
            }
        }
    }

    func census(at now: Int64) throws(JournalError) -> ReceiptCensus {
        try database.read { try ReceiptCensus($0, at: now) }
    }
}

extension ReceiptCensus {
    /// Counts the states of all receipts in one pass.
    init(_ db: Database, at now: Int64) throws {
        self.init()
        let rows = try Row.fetchCursor(
            db,
            sql: """
                SELECT r.outcome, count(*), count(*) FILTER (WHERE r.due_at <= ?1),
                    count(*) FILTER (WHERE r.expires_at <= ?1), count(r.risk_metric)
                FROM renewals r JOIN keys k ON k.id = r.key
                WHERE k.revoked_at IS NULL GROUP BY r.outcome
                """,
            arguments: [now]
        )
        while let row = try rows.next() {
            let count: Int = row[1]
            receipts += count
            due += row[2]
            expired += row[3]
            known += row[4]
            let word: String? = row[0]
            guard let word else {
                untried += count
                continue
            }
            guard let outcome = ReceiptState.Outcome(rawValue: word) else {
                throw JournalError(.damaged, "\(word) is no outcome of a renewal")
            }
            outcomes[outcome] = count
        }
    }
}

/// The states of receipts, as rows of the table `renewals`. The receipts themselves are in another
/// table, since a scan of the states must not read them: they take a page each.
enum SQLiteReceiptColumns {
    /// The columns of a state, in the order in which ``state(_:from:)`` reads them.
    static let names = """
        created_at, not_before, expires_at, risk_metric, metric_at, tried_at, outcome, due_at, asked
        """

    /// The columns of a state, with the name of the table `renewals` in front.
    static func names(of table: String) -> String {
        names.split(separator: ", ").map { "\(table).\($0)" }.joined(separator: ", ")
    }

    /// Reads a state whose first column has this index.
    static func state(_ row: Row, from first: Int) throws -> ReceiptState {
        var state = ReceiptState()
        state.createdAt = row[first]
        state.notBefore = row[first + 1]
        state.expiresAt = row[first + 2]
        let metric: Int64? = row[first + 3]
        state.riskMetric = try metric.map { number in
            guard let metric = UInt32(exactly: number) else {
                throw JournalError(.damaged, "\(number) is no risk metric")
            }
            return metric
        }
        state.metricAt = row[first + 4]
        state.triedAt = row[first + 5]
        let outcome: String? = row[first + 6]
        state.outcome = try outcome.map { word in
            guard let outcome = ReceiptState.Outcome(rawValue: word) else {
                throw JournalError(.damaged, "\(word) is no outcome of a renewal")
            }
            return outcome
        }
        state.dueAt = row[first + 7]
        state.isAsked = row[first + 8] ?? false
        return state
    }

    private static func arguments(_ state: ReceiptState) -> [(any DatabaseValueConvertible)?] {
        [
            state.createdAt, state.notBefore, state.expiresAt, state.riskMetric.map { Int64($0) },
            state.metricAt, state.triedAt, state.outcome?.rawValue, state.dueAt, state.isAsked,
        ]
    }

    /// Stores the receipt of a key that has none.
    static func insert(
        _ receipt: [UInt8],
        _ state: ReceiptState,
        ofRow row: Int64,
        _ db: Database
    ) throws {
        try db.cachedStatement(sql: "INSERT INTO receipts (key, receipt) VALUES (?, ?)")
            .execute(arguments: [row, Data(receipt)])
        let insert = try db.cachedStatement(
            sql: """
                INSERT INTO renewals (key, \(names)) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """
        )
        insert.setUncheckedArguments(StatementArguments([row] + arguments(state)))
        try insert.execute()
    }

    /// Writes the changes of a renewal. A receipt replaces only an older one, with its outcome;
    /// another outcome replaces only an earlier one. So the order of two changes does not matter.
    static func apply(_ change: ReceiptChange, _ db: Database) throws {
        if let receipt = change.receipt {
            guard try take(change.state, ofRow: change.row, db) else { return }
            try db.cachedStatement(sql: "UPDATE receipts SET receipt = ?2 WHERE key = ?1")
                .execute(arguments: [change.row, Data(receipt)])
        }
        let update = try db.cachedStatement(
            sql: """
                UPDATE renewals SET tried_at = ?2, outcome = ?3, due_at = ?4, asked = 0
                WHERE key = ?1
                    AND (?5 OR tried_at IS NULL OR tried_at <= ?2 OR tried_at > ?2 + ?6)
                """
        )
        update.setUncheckedArguments([
            change.row, change.state.triedAt, change.state.outcome?.rawValue, change.state.dueAt,
            change.receipt != nil, ReceiptChange.disorderMax,
        ])
        try update.execute()
    }

    /// Writes the state of a newer receipt; `false` where the stored one is as new.
    private static func take(_ state: ReceiptState, ofRow row: Int64, _ db: Database) throws -> Bool
    {
        let update = try db.cachedStatement(
            sql: """
                UPDATE renewals SET created_at = ?2, not_before = ?3, expires_at = ?4,
                    risk_metric = ?5, metric_at = ?6
                WHERE key = ?1 AND (created_at IS NULL OR created_at < ?2)
                """
        )
        update.setUncheckedArguments([
            row, state.createdAt, state.notBefore, state.expiresAt,
            state.riskMetric.map { Int64($0) }, state.metricAt,
        ])
        try update.execute()
        return db.changesCount == 1
    }
}
