internal import GRDB
package import KeyStore

extension KeyAdministration {
    package func chains(after row: Int64) throws(StoreProblem) -> ChainPiece {
        try read { db in
            let rows = try Row.fetchCursor(
                db.cachedStatement(
                    sql: """
                        SELECT key, serials, CASE WHEN listed IS NOT NULL THEN
                            coalesce((SELECT revoked_at FROM keys WHERE id = key), 0) END
                        FROM chains WHERE key > ? ORDER BY key LIMIT ?
                        """
                ),
                arguments: [row, ChainPiece.countMax]
            )
            return ChainPiece(
                try Array(rows.map { StoredChain(row: $0[0], serialText: $0[1], listedAt: $0[2]) })
            )
        }
    }

    package func apply(
        _ changes: [ListedChange],
        now: Int64,
        by actor: String
    ) throws(StoreProblem) -> [ListedKey] {
        let made = try write { db in
            let revision = try Self.nextRevision(db)
            var made: [ListedKey] = []
            for change in changes {
                let statement = try db.cachedStatement(
                    sql: change.entry == nil ? Self.delisting : Self.listing
                )
                var arguments: StatementArguments = [change.row, revision]
                if change.entry != nil { arguments += [max(now, 0)] }
                guard let row = try Row.fetchOne(statement, arguments: arguments) else { continue }
                let keyID = try KeyColumns.keyID(row, 0)
                try db.cachedStatement(sql: "UPDATE chains SET listed = ? WHERE key = ?")
                    .execute(arguments: [change.entry, change.row])
                let action: KeyChange.Action = change.entry == nil ? .restored : .revoked
                let note = ChangeNote(now: now, by: actor, why: change.why)
                try KeyChangeLog.add(KeyChange(action, keyID, keys: 1, note), db)
                made.append(ListedKey(keyID, change))
            }
            return made
        }
        if !made.isEmpty { try announce() }
        return made
    }

    private static let listing = """
        UPDATE keys SET revoked_at = ?3, revision = ?2
        WHERE id = ?1 AND revoked_at IS NULL AND deleted_at IS NULL
        RETURNING key_id
        """

    /// Only of a key that is still marked: a command may have revoked it since it was read.
    private static let delisting = """
        UPDATE keys SET revoked_at = NULL, revision = ?2
        WHERE id = ?1 AND revoked_at IS NOT NULL AND deleted_at IS NULL
            AND EXISTS (SELECT 1 FROM chains WHERE key = ?1 AND listed IS NOT NULL)
        RETURNING key_id
        """
}
