internal import Foundation
internal import GRDB
internal import KeyStore

/// The states of receipts, as rows of the table `renewals`. The receipts themselves are in another
/// table, since a scan of the states must not read them: they take a page each.
enum ReceiptColumns {
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
