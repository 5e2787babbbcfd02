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
            environment: try KeyColumns.environment(row, 6),
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
                        \(ReceiptColumns.names(of: "r"))
                    FROM keys k JOIN apps a ON a.id = k.app JOIN receipts c ON c.key = k.id
                        JOIN renewals r ON r.key = k.id
                    WHERE k.id = ? AND k.revoked_at IS NULL
                    """
            )
            return try Row.fetchOne(select, arguments: [row]).map { found in
                let receipt: Data = found[4]
                return KeptReceipt(
                    row: row,
                    keyID: try KeyColumns.keyID(found, 0),
                    publicKey: try KeyColumns.publicKey(found, 1),
                    appID: found[2],
                    environment: try KeyColumns.environment(found, 3),
                    receipt: Array(receipt),
                    state: try ReceiptColumns.state(found, from: 5)
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
