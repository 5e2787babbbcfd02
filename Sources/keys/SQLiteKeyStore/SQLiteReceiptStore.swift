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

    private func ask<Value>(
        _ body: (SQLiteSession) throws(JournalError) -> Value
    ) throws(JournalError) -> Value {
        try database.read { db in try body(SQLiteSession(db)) }
    }

    func forEachDue(at now: Int64, _ body: (DueReceipt) -> Void) throws(JournalError) {
        try ask { (session) throws(JournalError) in
            let late = try session.lateUses()
            let sql = ReceiptColumns.selectDue + " AND r.due_at <= $1"
            _ = try session.ask(sql, [.number(now)]) { (row) throws(JournalError) in
                var due = try row.dueReceipt()
                if let used = late[due.row]?.usedAt {
                    due.lastUsedAt = max(due.lastUsedAt ?? .min, used)
                }
                body(due)
            }
        }
    }

    func forEachAsked(_ body: (DueReceipt) -> Void) throws(JournalError) {
        try ask { (session) throws(JournalError) in
            let asked = ReceiptColumns.asked(in: .sqlite)
            _ = try session.ask([asked]) { (row) throws(JournalError) in
                body(try row.dueReceipt())
            }
        }
    }

    func receipt(ofRow row: Int64) throws(JournalError) -> KeptReceipt? {
        try ask { (session) throws(JournalError) in
            let kept = try session.ask(ReceiptColumns.selectKept(), [.number(row)]) {
                (row) throws(JournalError) in try row.keptReceipt()
            }
            return kept.first
        }
    }

    func census(at now: Int64) throws(JournalError) -> ReceiptCensus {
        try ask { (session) throws(JournalError) in try session.census(at: now) }
    }
}
