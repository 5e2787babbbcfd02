internal import KeyStore

/// The receipts in the database, over their own connection: scanning all of them takes longer than
/// a use may wait.
///
/// One gateway at a time has a receipt, for some minutes: see ``Lease``.
final class PostgreSQLReceiptStore: ReceiptStore {
    /// The time for which a gateway has a receipt that it has asked for. A call to Apple takes at
    /// most half a minute. If the gateway dies meanwhile, the others don't wait much longer.
    private enum Lease {
        static let seconds: Int64 = 300
        static let now = "extract(epoch FROM now())::bigint"
    }

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
                UPDATE renewals SET leased_by = $2, leased_until = \(Lease.now) + $3
                WHERE key = $1 AND (leased_by = $2 OR leased_until <= \(Lease.now))
                """,
                [.number(row), .number(holder), .number(Lease.seconds)]
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
