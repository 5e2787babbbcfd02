internal import KeyStore

/// The states of receipts, as rows of the table `renewals`. The receipts themselves are in another
/// table, since a scan of the states must not read them.
enum ReceiptColumns {
    private static let all = [
        "created_at", "not_before", "expires_at", "risk_metric", "metric_at", "tried_at",
        "outcome", "due_at", "asked",
    ]

    /// The columns of a state, in the order in which ``state(_:_:from:)`` reads them.
    static let names = all.joined(separator: ", ")

    /// The columns of a state, with the name of the table `renewals` in front.
    static func names(of table: String) -> String {
        all.map { "\(table).\($0)" }.joined(separator: ", ")
    }

    /// The parameters of a state whose first one has this number.
    static func parameters(from first: Int) -> String {
        all.indices.map { "$\(first + $0)" }.joined(separator: ", ")
    }

    static func values(_ state: ReceiptState) -> [DatabaseValue] {
        [
            .number(state.createdAt), .number(state.notBefore), .number(state.expiresAt),
            .number(state.riskMetric.map { Int64($0) }), .number(state.metricAt),
            .number(state.triedAt), .text(state.outcome?.rawValue), .number(state.dueAt),
            .flag(state.isAsked),
        ]
    }

    /// Reads a state whose first column has this place.
    static func state(_ row: DatabaseRow, from first: Int) throws(JournalError) -> ReceiptState {
        var state = ReceiptState()
        state.createdAt = try row.number(first)
        state.notBefore = try row.number(first + 1)
        state.expiresAt = try row.number(first + 2)
        if let number = try row.number(first + 3) {
            guard let metric = UInt32(exactly: number) else {
                throw JournalError.damaged("\(number) is no risk metric")
            }
            state.riskMetric = metric
        }
        state.metricAt = try row.number(first + 4)
        state.triedAt = try row.number(first + 5)
        if let word = row.text(first + 6) {
            guard let outcome = ReceiptState.Outcome(rawValue: word) else {
                throw JournalError.damaged("\(word) is no outcome of a renewal")
            }
            state.outcome = outcome
        }
        state.dueAt = try row.number(first + 7)
        state.isAsked = row.flag(first + 8)
        return state
    }

    /// Writes the changes of a renewal. A receipt replaces only an older one, with its outcome;
    /// another outcome replaces only an earlier one. So the order of two changes does not matter.
    static func statement(_ change: ReceiptChange) -> DatabaseStatement {
        let state = change.state
        guard let receipt = change.receipt else {
            return DatabaseStatement(
                """
                UPDATE renewals SET tried_at = $2, outcome = $3, due_at = $4, asked = false
                WHERE key = $1 AND (tried_at IS NULL OR tried_at <= $2 OR tried_at > $2 + $5)
                """,
                [
                    .number(change.row), .number(state.triedAt), .text(state.outcome?.rawValue),
                    .number(state.dueAt), .number(ReceiptChange.disorderMax),
                ]
            )
        }
        return DatabaseStatement(
            """
            WITH taken AS (
                UPDATE renewals SET created_at = $3, not_before = $4, expires_at = $5,
                    risk_metric = $6, metric_at = $7, tried_at = $8, outcome = $9, due_at = $10,
                    asked = false
                WHERE key = $1 AND (created_at IS NULL OR created_at < $3)
                RETURNING key
            )
            UPDATE receipts r SET receipt = $2 FROM taken t WHERE r.key = t.key
            """,
            [.number(change.row), .bytes(receipt)] + values(state).dropLast()
        )
    }

    /// Counts the states of all receipts in one pass; see ``census(_:)``.
    static func census(at now: Int64) -> DatabaseStatement {
        DatabaseStatement(
            """
            SELECT r.outcome, count(*), count(*) FILTER (WHERE r.due_at <= $1),
                count(*) FILTER (WHERE r.expires_at <= $1), count(r.risk_metric)
            FROM renewals r JOIN keys k ON k.id = r.key
            WHERE k.revoked_at IS NULL GROUP BY r.outcome
            """,
            [.number(now)]
        )
    }

    static func census(_ rows: DatabaseRows) throws(JournalError) -> ReceiptCensus {
        var census = ReceiptCensus()
        for row in rows {
            let count = Int(try row.present(1))
            census.receipts += count
            census.due += Int(try row.present(2))
            census.expired += Int(try row.present(3))
            census.known += Int(try row.present(4))
            guard let word = row.text(0) else {
                census.untried += count
                continue
            }
            guard let outcome = ReceiptState.Outcome(rawValue: word) else {
                throw JournalError.damaged("\(word) is no outcome of a renewal")
            }
            census.outcomes[outcome] = count
        }
        return census
    }
}
