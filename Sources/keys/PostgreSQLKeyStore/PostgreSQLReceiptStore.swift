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

    private static let select = """
        SELECT r.key, r.due_at, r.expires_at, k.last_used_at, r.tried_at, r.asked, k.environment
        FROM renewals r JOIN keys k ON k.id = r.key
        WHERE k.revoked_at IS NULL AND k.deleted_at IS NULL
        """

    func forEachDue(at now: Int64, _ body: (DueReceipt) -> Void) throws(JournalError) {
        var (dueAt, row) = (Int64.min, Int64.min)
        while true {
            let rows = try ask(
                DatabaseStatement(
                    Self.select + """
                         AND r.due_at <= $1 AND (r.due_at, r.key) > ($2, $3)
                        ORDER BY r.due_at, r.key LIMIT $4
                        """,
                    [.number(now), .number(dueAt), .number(row), .number(Self.pieceCount)]
                )
            )
            for found in rows {
                let due = try Self.due(found)
                (dueAt, row) = (due.dueAt, due.row)
                body(due)
            }
            guard rows.count == Self.pieceCount else { return }
        }
    }

    func forEachAsked(_ body: (DueReceipt) -> Void) throws(JournalError) {
        let rows = try ask(
            DatabaseStatement(
                Self.select + " AND r.asked AND r.due_at IS NOT NULL LIMIT $1",
                [.number(Int64(askedReceiptsMax))]
            )
        )
        for row in rows { body(try Self.due(row)) }
    }

    private static func due(_ row: DatabaseRow) throws(JournalError) -> DueReceipt {
        DueReceipt(
            row: try row.present(0),
            environment: try KeyColumns.environment(row, 6),
            dueAt: try row.present(1),
            expiresAt: try row.number(2),
            lastUsedAt: try row.number(3),
            triedAt: try row.number(4),
            isAsked: row.flag(5)
        )
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
                """
                SELECT k.key_id, k.public_key, a.app_id, k.environment, c.receipt,
                    \(ReceiptColumns.names(of: "r"))
                FROM keys k JOIN apps a ON a.id = k.app JOIN receipts c ON c.key = k.id
                    JOIN renewals r ON r.key = k.id
                WHERE k.id = $1 AND k.revoked_at IS NULL AND k.deleted_at IS NULL
                    AND r.leased_by = $2
                """,
                [.number(row), .number(holder)]
            )
        )
        guard let found = rows.first, let receipt = found.bytes(4) else { return nil }
        return KeptReceipt(
            row: row,
            keyID: try KeyColumns.keyID(found, 0),
            publicKey: try KeyColumns.publicKey(found, 1),
            appID: found.text(2) ?? "",
            environment: try KeyColumns.environment(found, 3),
            receipt: receipt,
            state: try ReceiptColumns.state(found, from: 5)
        )
    }

    func census(at now: Int64) throws(JournalError) -> ReceiptCensus {
        try ReceiptColumns.census(try ask(ReceiptColumns.census(at: now)))
    }

    /// The other gateways read changes each second. A notification would cost more than it brings.
    func announce(_ rows: [Int64]) throws(JournalError) {
        _ = try ask(
            PostgreSQLKeyArchive.nextRevision,
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
