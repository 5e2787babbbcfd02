internal import Cryptography
internal import DeviceKey
package import KeyStore

extension PostgreSQLKeyArchive {
    package func store(_ records: [KeyRecord]) throws(StoreProblem) -> [StoreOutcome] {
        var outcomes: [StoreOutcome] = []
        for start in stride(from: 0, to: records.count, by: Self.pieceCount) {
            let piece = records[start...].prefix(Self.pieceCount)
            let marks = piece.filter(\.isErased)
            let known = marks.isEmpty ? [] : try storeMarks(marks)
            var others = try store(piece: piece.filter { !$0.isErased })[...]
            for record in piece {
                if record.isErased {
                    outcomes.append(known.contains(record.keyID) ? .merged : .inserted)
                } else if let other = others.popFirst() {
                    outcomes.append(other)
                }
            }
        }
        return outcomes
    }

    package func spentTokens(
        after last: SpentToken?,
        limit: Int
    ) throws(StoreProblem) -> [SpentToken] {
        let rows = try ask([TokenStatement.page(after: last, limit: limit)])
        return try attempt { () throws(JournalError) in try TokenStatement.tokens(rows[0]) }
    }

    package func spend(_ tokens: [SpentToken]) throws(StoreProblem) {
        guard !tokens.isEmpty else { return }
        _ = try ask([TokenStatement.statement(tokens)])
    }

    /// Stores keys in one transaction.
    private func store(piece records: [KeyRecord]) throws(StoreProblem) -> [StoreOutcome] {
        guard !records.isEmpty else { return [] }
        let secrets = try secrets()
        var statements = [Self.nextRevision]
        for record in records {
            statements += KeyColumns.insert(
                record,
                secrets,
                revision: "(SELECT revision FROM state)"
            )
            statements += [Self.identity(of: record.keyID, secrets)]
            if case .deleted(let second) = record.status {
                statements += [Self.burial(record, at: second)]
            } else {
                statements += [Self.merge(record)]
            }
        }
        let rows = try ask(statements + [Self.notification])
        return try attempt { () throws(JournalError) in
            var outcomes: [StoreOutcome] = []
            for (index, record) in records.enumerated() {
                // For each record: the app, the key, the stored row, the merge.
                let first = 1 + 4 * index
                guard let stored = try Self.identity(rows[first + 2]) else {
                    throw JournalError(
                        .busy,
                        "the marks of another store have come meanwhile",
                        next: "run the command again; it goes on where it was"
                    )
                }
                let isSame =
                    record.status.standing == .deleted
                    ? stored.isOf(record) : stored.difference(from: record) == nil
                if rows[first + 1].count == 1 {
                    outcomes.append(.inserted)
                } else if !isSame {
                    outcomes.append(.differs(stored))
                } else {
                    outcomes.append(.merged)
                }
            }
            return outcomes
        }
    }

    /// Adds a record's further facts to a stored key, if it is the same key. What a list said of it
    /// comes with the revocation alone: where this store has revoked the key already, it may have
    /// another reason.
    private static func merge(_ record: KeyRecord) -> DatabaseStatement {
        let revokedAt: Int64? = if case .revoked(let second) = record.status { second } else { nil }
        let isSame = """
            k.key_id = $1 AND a.app_id = $8 AND k.public_key = $9 AND k.environment = $10
            AND k.platform = $13 AND k.deleted_at IS NULL
            """
        let counters = CounterColumns.merge("k.counter", "k.counter_window", with: "$2", "$3")
        return DatabaseStatement(
            """
            WITH chain AS (
                INSERT INTO chains (key, serials, certificates_issued, listed)
                SELECT k.id, $11, $12, CASE WHEN k.revoked_at IS NULL THEN $14 END
                FROM keys k JOIN apps a ON a.id = k.app
                WHERE $11 IS NOT NULL AND \(isSame)
                ON CONFLICT (key) DO NOTHING
            ), mark AS (
                UPDATE chains c SET listed = $14 FROM keys k JOIN apps a ON a.id = k.app
                WHERE c.key = k.id AND $14 IS NOT NULL AND k.revoked_at IS NULL AND \(isSame)
            )
            UPDATE keys k SET \(counters),
                enrolled_at = coalesce(k.enrolled_at, $4),
                last_used_at = CASE WHEN k.last_used_at >= $5 THEN k.last_used_at
                    ELSE coalesce($5, k.last_used_at) END,
                revoked_at = coalesce(k.revoked_at, $6),
                context = coalesce(k.context, $7),
                revision = (SELECT revision FROM state)
            FROM apps a
            WHERE a.id = k.app AND \(isSame)
            """,
            [
                .bytes(record.keyID.bytes), .number(Int64(record.counters.highest.rawValue)),
                .number(Int64(bitPattern: record.counters.seen)), .number(record.enrolledAt),
                .number(record.lastUsedAt), .number(revokedAt), .bytes(record.context),
                .text(record.appID), .bytes(Array(record.publicKey.x963.dropFirst())),
                .number(Int64(record.environment.number)), .text(record.chain?.serialText),
                .number(record.chain?.certificatesIssued.map { Int64($0) }),
                .number(Int64(record.platform.number)),
                .text(revokedAt == nil ? nil : record.chain?.listed),
            ]
        )
    }

    /// Deletes a key that was deleted elsewhere, if it is the same key.
    private static func burial(_ record: KeyRecord, at second: Int64) -> DatabaseStatement {
        DatabaseStatement(
            """
            WITH gone AS (
                UPDATE keys k SET \(deletion), revision = (SELECT revision FROM state)
                FROM apps a
                WHERE k.key_id = $2 AND a.id = k.app AND a.app_id = $3 AND k.public_key = $4
                    AND k.environment = $5 AND k.platform = $6 AND k.deleted_at IS NULL
                RETURNING k.id
            ), receipt AS (
                DELETE FROM receipts WHERE key IN (SELECT id FROM gone)
            ), chain AS (
                DELETE FROM chains WHERE key IN (SELECT id FROM gone)
            )
            DELETE FROM renewals WHERE key IN (SELECT id FROM gone)
            """,
            [
                .number(max(second, 0)), .bytes(record.keyID.bytes), .text(record.appID),
                .bytes(Array(record.publicKey.x963.dropFirst())),
                .number(Int64(record.environment.number)),
                .number(Int64(record.platform.number)),
            ]
        )
    }
}
