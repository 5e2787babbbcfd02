internal import KeyStore

/// The receipts in the database, over their own connection: scanning all of them takes longer than
/// a use may wait.
///
/// One gateway at a time has a receipt, for some minutes: see ``leaseSeconds``.
final class PostgreSQLReceiptStore: ReceiptStore {
    /// The seconds for which a gateway has a receipt that it has asked for. A call to Apple takes
    /// half a minute at most. If the gateway dies meanwhile, the others don't wait much longer.
    private static let leaseSeconds: Int64 = 300

    private static let statementTimeout = Duration.seconds(30)
    private static let pieceCount: Int64 = 4_096

    private let link: DatabaseLink
    /// Identifies this gateway.
    private let holder = Int64.random(in: 1...Int64.max)

    init(_ settings: PostgreSQLSettings) {
        var settings = settings
        settings.statementTimeout = max(settings.statementTimeout, Self.statementTimeout)
        link = DatabaseLink(settings)
    }

    var tally: LinkTally { link.tally }

    func look() { link.look() }

    func close() { link.close() }

    private func ask(_ statements: DatabaseStatement...) throws(JournalError) -> DatabaseRows {
        guard let rows = try link.ask(statements).last else {
            throw JournalError.damaged("a statement without an answer")
        }
        return rows
    }

    func forEachDue(at now: Int64, _ body: (DueReceipt) -> Void) throws(JournalError) {
        var (dueAt, row) = (Int64.min, Int64.min)
        while true {
            let rows = try ask(
                DatabaseStatement(
                    ReceiptColumns.selectDue + """
                         AND r.due_at <= $1 AND (r.due_at, r.key) > ($2, $3)
                        ORDER BY r.due_at, r.key LIMIT $4
                        """,
                    [.number(now), .number(dueAt), .number(row), .number(Self.pieceCount)]
                )
            )
            for found in rows {
                let due = try found.dueReceipt()
                (dueAt, row) = (due.dueAt, due.row)
                body(due)
            }
            guard rows.count == Self.pieceCount else { return }
        }
    }

    func forEachAsked(_ body: (DueReceipt) -> Void) throws(JournalError) {
        let rows = try ask(ReceiptColumns.asked(in: .postgreSQL))
        for row in rows { body(try row.dueReceipt()) }
    }

    /// The receipt of a key; `nil` also when another gateway has it.
    func receipt(ofRow row: Int64) throws(JournalError) -> KeptReceipt? {
        let rows = try ask(
            DatabaseStatement(
                """
                UPDATE renewals SET leased_by = $2, leased_until = \(FleetDatabase.now) + $3
                WHERE key = $1 AND (leased_by = $2 OR leased_until <= \(FleetDatabase.now))
                """,
                [.number(row), .number(holder), .number(Self.leaseSeconds)]
            ),
            DatabaseStatement(
                ReceiptColumns.selectKept(" AND r.leased_by = $2"),
                [.number(row), .number(holder)]
            )
        )
        return try rows.first?.keptReceipt()
    }

    func census(at now: Int64) throws(JournalError) -> ReceiptCensus {
        try DatabaseSession(link: link).census(at: now)
    }

    /// The other gateways read changes each second. A notification would cost more than it brings.
    func announce(_ rows: [Int64]) throws(JournalError) {
        _ = try ask(
            DatabaseSession.nextRevision,
            DatabaseStatement(
                """
                WITH told AS (
                    SELECT id FROM keys WHERE id = ANY ($1) AND deleted_at IS NULL
                    ORDER BY id FOR UPDATE
                )
                UPDATE keys k SET revision = (SELECT revision FROM state)
                FROM told WHERE k.id = told.id
                """,
                [.numbers(rows.map { $0 })]
            )
        )
    }
}

extension DatabaseStatement {
    /// Writes the changes of a renewal. A receipt replaces only an older one, with its outcome;
    /// another outcome replaces only an earlier one. So the order of two changes does not matter.
    static func renewal(_ change: ReceiptChange) -> DatabaseStatement {
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
            [.number(change.row), .bytes(receipt)] + ReceiptColumns.values(state).dropLast()
        )
    }
}
