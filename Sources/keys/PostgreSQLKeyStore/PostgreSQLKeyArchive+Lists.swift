internal import DeviceKey
package import KeyStore

extension PostgreSQLKeyArchive {
    package func chains(after row: Int64) throws(StoreProblem) -> ChainPiece {
        let rows = try ask(
            """
            SELECT key, serials, CASE WHEN listed IS NOT NULL THEN
                coalesce((SELECT revoked_at FROM keys WHERE id = key), 0) END
            FROM chains WHERE key > $1 ORDER BY key LIMIT $2
            """,
            [.number(row), .number(Int64(ChainPiece.countMax))]
        )
        return try attempt { () throws(JournalError) in
            let chains = try rows.map { (row) throws(JournalError) in
                StoredChain(
                    row: try row.present(0),
                    serialText: row.text(1) ?? "",
                    listedAt: try row.number(2)
                )
            }
            return ChainPiece(chains)
        }
    }

    package func apply(
        _ changes: [ListedChange],
        now: Int64,
        by actor: String
    ) throws(StoreProblem) -> [ListedKey] {
        let statements = changes.map { change in
            DatabaseStatement(
                change.entry == nil ? Self.delisting : Self.listing,
                [
                    .number(change.row), .number(max(now, 0)), .text(actor), .text(change.why),
                    .text(change.entry),
                ]
            )
        }
        let rows = try ask([Self.nextRevision] + statements + [Self.notification])
        return try attempt { () throws(JournalError) in
            var made: [ListedKey] = []
            for (change, found) in zip(changes, rows.dropFirst()) where found.count == 1 {
                made.append(ListedKey(try KeyColumns.keyID(found[0], 0), change))
            }
            return made
        }
    }

    // $1: the row. $2: the second. $3, $4: author and reason. $5: the entry, or NULL.

    private static let listing = marking(
        "revoked_at = $2",
        where: "revoked_at IS NULL",
        as: .revoked
    )

    /// Only of a key that is still marked: a command may have revoked it since it was read.
    private static let delisting = marking(
        "revoked_at = NULL",
        where: """
            revoked_at IS NOT NULL
                AND EXISTS (SELECT 1 FROM chains WHERE key = $1 AND listed IS NOT NULL)
            """,
        as: .restored
    )

    private static func marking(
        _ change: String,
        where condition: String,
        as action: KeyChange.Action
    ) -> String {
        """
        WITH hit AS (
            UPDATE keys SET \(change), revision = (SELECT revision FROM state)
            WHERE id = $1 AND deleted_at IS NULL AND \(condition)
            RETURNING key_id
        ), mark AS (
            UPDATE chains SET listed = $5 WHERE key = $1 AND EXISTS (SELECT 1 FROM hit)
        ), note AS (
            INSERT INTO key_changes (at, actor, action, key_id, keys, why)
            SELECT $2, $3, '\(action.rawValue)', key_id, 1, $4 FROM hit
        )
        SELECT key_id FROM hit
        """
    }

    /// Takes away the mark of a key that a list has revoked: from now on a command decides.
    ///
    /// - note: of the command that revokes such a key; `nil` for no record.
    func unlist(_ keyID: KeyID, _ note: ChangeNote?) throws(StoreProblem) {
        _ = try ask([
            // After any comparison by a gateway, which locks the state too.
            Self.nextRevision,
            DatabaseStatement(
                """
                WITH hit AS (
                    UPDATE chains SET listed = NULL
                    WHERE key = (SELECT id FROM keys WHERE key_id = $1) AND listed IS NOT NULL
                    RETURNING key
                )
                INSERT INTO key_changes (at, actor, action, key_id, keys, why)
                SELECT $2, $3, 'revoked', $1, 1, $4 FROM hit WHERE $5
                """,
                [
                    .bytes(keyID.bytes), .number(note?.now), .text(note?.actor),
                    .text(note?.why), .flag(note != nil),
                ]
            ),
        ])
    }
}
