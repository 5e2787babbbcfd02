internal import DeviceKey
internal import Signatures

/// The states of receipts, as rows of the table `renewals`. The receipts themselves are in another
/// table, since a scan of the states must not read them.
package enum ReceiptColumns {
    private static let all = [
        "created_at", "not_before", "expires_at", "risk_metric", "metric_at", "tried_at",
        "outcome", "due_at", "asked",
    ]

    /// The columns of a state, in the order in which ``StoredRow/receiptState(from:)`` reads them.
    package static let names = all.joined(separator: ", ")

    /// The columns of a state, with the name of the table `renewals` in front.
    package static func names(of table: String) -> String {
        all.map { "\(table).\($0)" }.joined(separator: ", ")
    }

    /// The parameters of a state whose first one has this number.
    package static func parameters(from first: Int) -> String {
        all.indices.map { "$\(first + $0)" }.joined(separator: ", ")
    }

    package static func values(_ state: ReceiptState) -> [StatementValue] {
        [
            .number(state.createdAt), .number(state.notBefore), .number(state.expiresAt),
            .number(state.riskMetric.map { Int64($0) }), .number(state.metricAt),
            .number(state.triedAt), .text(state.outcome?.rawValue), .number(state.dueAt),
            .flag(state.isAsked),
        ]
    }

    /// The states of active keys, as ``StoredRow/dueReceipt()`` reads them; conditions on `r`
    /// follow.
    package static let selectDue = """
        SELECT r.key, r.due_at, r.expires_at, k.last_used_at, r.tried_at, r.asked, k.environment
        FROM renewals r JOIN keys k ON k.id = r.key
        WHERE k.revoked_at IS NULL AND k.deleted_at IS NULL
        """

    /// Those that an operator has asked for.
    package static func asked(in dialect: TableDialect) -> DatabaseStatement {
        DatabaseStatement(
            selectDue + " AND \(dialect.isSet("r.asked")) AND r.due_at IS NOT NULL LIMIT $1",
            [.number(Int64(askedReceiptsMax))]
        )
    }

    /// The receipt of an active key, as ``StoredRow/keptReceipt()`` reads it.
    ///
    /// - condition: a further one, from its `AND` on.
    package static func selectKept(_ condition: String = "") -> String {
        """
        SELECT k.id, k.key_id, k.public_key, a.app_id, k.environment, c.receipt, \(names(of: "r"))
        FROM keys k JOIN apps a ON a.id = k.app JOIN receipts c ON c.key = k.id
            JOIN renewals r ON r.key = k.id
        WHERE k.id = $1 AND k.revoked_at IS NULL AND k.deleted_at IS NULL\(condition)
        """
    }

    /// Counts the states of all receipts in one pass, as ``ReceiptCensus/add(_:)`` reads it.
    package static func census(at now: Int64) -> DatabaseStatement {
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
}

extension ReceiptCensus {
    /// Adds the receipts with one outcome.
    package mutating func add(_ row: some StoredRow) throws(JournalError) {
        let count = Int(try row.present(1))
        receipts += count
        due += Int(try row.present(2))
        expired += Int(try row.present(3))
        known += Int(try row.present(4))
        if let outcome = try row.outcome(0) { outcomes[outcome] = count } else { untried += count }
    }
}

extension StoredRow {
    package func dueReceipt() throws(JournalError) -> DueReceipt {
        DueReceipt(
            row: try present(0),
            environment: try environment(6),
            dueAt: try present(1),
            expiresAt: try number(2),
            lastUsedAt: try number(3),
            triedAt: try number(4),
            isAsked: flag(5)
        )
    }

    package func keptReceipt() throws(JournalError) -> KeptReceipt {
        KeptReceipt(
            row: try present(0),
            keyID: try keyID(1),
            publicKey: try publicKey(2),
            appID: text(3) ?? "",
            environment: try environment(4),
            receipt: bytes(5) ?? [],
            state: try receiptState(from: 6)
        )
    }

    /// Reads a state whose first column has this place.
    func receiptState(from first: Int) throws(JournalError) -> ReceiptState {
        var state = ReceiptState()
        state.createdAt = try number(first)
        state.notBefore = try number(first + 1)
        state.expiresAt = try number(first + 2)
        if let number = try number(first + 3) {
            guard let metric = UInt32(exactly: number) else {
                throw damaged("\(number) is no risk metric")
            }
            state.riskMetric = metric
        }
        state.metricAt = try number(first + 4)
        state.triedAt = try number(first + 5)
        state.outcome = try outcome(first + 6)
        state.dueAt = try number(first + 7)
        state.isAsked = flag(first + 8)
        return state
    }

    fileprivate func outcome(_ column: Int) throws(JournalError) -> ReceiptState.Outcome? {
        guard let word = text(column) else { return nil }
        guard let outcome = ReceiptState.Outcome(rawValue: word) else {
            throw damaged("\(word) is no outcome of a renewal")
        }
        return outcome
    }
}
