package import DeviceKey
package import KeyStore

extension PostgreSQLKeyArchive {
    /// The keys that one transaction checks.
    private static let expiryPiece: Int64 = 2_000

    package func revoke(_ keyID: KeyID, _ note: ChangeNote) throws(StoreProblem) -> Revocation {
        switch try status(keyID) {
        case nil, .deleted, .erased: return .unknown
        case .revoked(let second):
            try unlist(keyID, note)
            return .alreadyRevoked(at: second)
        case .active:
            try change(keyID, "revoked_at = $1", KeyChange(.revoked, keyID, keys: 1, note))
            return .revoked
        }
    }

    package func restore(_ keyID: KeyID, _ note: ChangeNote) throws(StoreProblem) -> Restoration {
        switch try status(keyID) {
        case nil, .deleted, .erased: return .unknown
        case .active: return .active
        case .revoked:
            let columns = "revoked_at = nullif($1, $1)"
            try unlist(keyID, nil)
            try change(keyID, columns, KeyChange(.restored, keyID, keys: 1, note))
            return .restored
        }
    }

    package func delete(_ keyID: KeyID, _ note: ChangeNote) throws(StoreProblem) -> Deletion {
        switch try status(keyID) {
        case nil: return .unknown
        case .deleted(let second), .erased(let second, _): return .alreadyDeleted(at: second)
        case .active, .revoked:
            try change(keyID, Self.deletion, KeyChange(.deleted, keyID, keys: 1, note))
            return .deleted
        }
    }

    /// Keeps the row, so that its key id can't be enrolled again, until ``eraseDeleted()`` leaves a
    /// mark.
    static let deletion = deletionOf("$1")

    /// - second: when it is deleted, as SQL.
    static func deletionOf(_ second: String) -> String {
        "deleted_at = \(second), context = NULL, enrolled_at = NULL, last_used_at = NULL"
    }

    /// Deletes a key that is stored, as a list or another store asks for it.
    func deleteStored(_ keyID: KeyID, _ note: ChangeNote) throws(StoreProblem) {
        try change(keyID, Self.deletion, KeyChange(.deleted, keyID, keys: 1, note))
    }

    private func status(_ keyID: KeyID) throws(StoreProblem) -> KeyRecord.Status? {
        let rows = try ask(
            "SELECT k.revoked_at, k.deleted_at FROM keys k" + DatabaseMarks.ofKey,
            DatabaseMarks.values(keyID, try secrets())
        )
        guard let row = rows.first else { return nil }
        return try attempt { () throws(JournalError) in try KeyColumns.status(row, 0, 1) }
    }

    /// Changes a key, notes the change and notifies the gateways, in one transaction.
    private func change(
        _ keyID: KeyID,
        _ columns: String,
        _ change: KeyChange
    ) throws(StoreProblem) {
        var statements = [
            Self.nextRevision,
            DatabaseStatement(
                """
                UPDATE keys SET \(columns), revision = (SELECT revision FROM state)
                WHERE key_id = $2 AND $1 >= 0::bigint
                """,
                [.number(max(change.note.now, 0)), .bytes(keyID.bytes)]
            ),
            Self.note(change),
        ]
        if change.action == .revoked {
            // A list may have revoked it since its state was read. It is the command's now.
            statements.append(
                DatabaseStatement(
                    """
                    UPDATE chains SET listed = NULL
                    WHERE key = (SELECT id FROM keys WHERE key_id = $1) AND listed IS NOT NULL
                    """,
                    [.bytes(keyID.bytes)]
                )
            )
        }
        if change.action == .deleted {
            statements += ["receipts", "renewals", "chains"].map { table in
                DatabaseStatement(
                    "DELETE FROM \(table) WHERE key = (SELECT id FROM keys WHERE key_id = $1)",
                    [.bytes(keyID.bytes)]
                )
            }
        }
        _ = try ask(statements + [Self.trimming, Self.notification])
    }

    /// Locks the one row of the state until the transaction ends, so that revisions are committed
    /// in their order.
    static let nextRevision = DatabaseStatement("UPDATE state SET revision = revision + 1")

    static let notification = DatabaseStatement("NOTIFY \(ChangeFollower.channel)")

    /// Removes the oldest changes from their list.
    static let trimming = DatabaseStatement(
        "DELETE FROM key_changes WHERE id <= (SELECT max(id) FROM key_changes) - $1",
        [.number(Int64(KeyChange.keptMax))]
    )

    static func note(_ change: KeyChange) -> DatabaseStatement {
        let note = change.note
        return DatabaseStatement(
            """
            INSERT INTO key_changes (at, actor, action, key_id, keys, why)
            VALUES ($1, $2, $3, $4, $5, $6)
            """,
            [
                .number(note.now), .text(note.actor), .text(change.action.rawValue),
                .bytes(change.keyID?.bytes), .number(Int64(change.keys)), .text(note.why),
            ]
        )
    }

    package func expire(
        unusedSince second: Int64,
        behind row: Int64,
        _ note: ChangeNote
    ) throws(StoreProblem) -> ExpiryPiece {
        let piece = try ask(
            """
            SELECT id FROM keys WHERE id > $1 AND deleted_at IS NULL ORDER BY id LIMIT $2
            """,
            [.number(row), .number(Self.expiryPiece)]
        )
        let looked = piece.count
        let last = try attempt { () throws(JournalError) in
            looked == 0 ? row : try piece[looked - 1].present(0)
        }
        let rows = try ask([
            Self.nextRevision,
            DatabaseStatement(
                """
                WITH old AS (
                    UPDATE keys SET \(Self.deletion), revision = (SELECT revision FROM state)
                    WHERE id > $2 AND id <= $3 AND deleted_at IS NULL
                        AND coalesce(last_used_at, enrolled_at) < $4
                        AND coalesce(enrolled_at, last_used_at) < $4
                    RETURNING id
                ), receipt AS (
                    DELETE FROM receipts WHERE key IN (SELECT id FROM old)
                ), renewal AS (
                    DELETE FROM renewals WHERE key IN (SELECT id FROM old)
                ), chain AS (
                    DELETE FROM chains WHERE key IN (SELECT id FROM old)
                ), note AS (
                    INSERT INTO key_changes (at, actor, action, key_id, keys, why)
                    SELECT $5, $6, '\(KeyChange.Action.expired.rawValue)', NULL::bytea, count(*), $7
                    FROM old HAVING count(*) > 0
                )
                SELECT count(*) FROM old
                """,
                [
                    .number(max(note.now, 0)), .number(row), .number(last), .number(second),
                    .number(note.now), .text(note.actor), .text(note.why),
                ]
            ),
            Self.trimming, Self.notification,
        ])
        let deleted = Int(
            try attempt { () throws(JournalError) in try rows[1][0].present(0) }
        )
        return ExpiryPiece(deleted: deleted, next: looked < Self.expiryPiece ? nil : last)
    }

    package func changes(of keyID: KeyID?, limit: Int) throws(StoreProblem) -> [KeyChange] {
        let rows = try ask(
            """
            SELECT action, key_id, keys, at, actor, why FROM key_changes
            WHERE $1::bytea IS NULL OR key_id = $1 ORDER BY id DESC LIMIT $2
            """,
            [.bytes(keyID?.bytes), .number(Int64(limit))]
        )
        return try attempt { () throws(JournalError) in
            try rows.map { (row) throws(JournalError) in
                let word = row.text(0) ?? ""
                guard let action = KeyChange.Action(rawValue: word) else {
                    throw JournalError.damaged("\(word) is no change of a key")
                }
                let keyID = row.bytes(1) == nil ? nil : try KeyColumns.keyID(row, 1)
                let note = ChangeNote(
                    now: try row.present(3),
                    by: row.line(4),
                    why: row.text(5) == nil ? nil : row.line(5)
                )
                let keys = Int(try row.present(2))
                return KeyChange(action, keyID, keys: keys, note)
            }
        }
    }

    package func askRenewal(of keyID: KeyID, now: Int64) throws(StoreProblem) -> RenewalRequest {
        let rows = try ask(
            """
            SELECT k.revoked_at, r.key, r.not_before FROM keys k
                LEFT JOIN renewals r ON r.key = k.id
            WHERE k.key_id = $1 AND k.deleted_at IS NULL
            """,
            [.bytes(keyID.bytes)]
        )
        guard let row = rows.first else { return .unknown }
        let (revoked, key, notBefore) = try attempt { () throws(JournalError) in
            (try row.number(0), try row.number(1), try row.number(2))
        }
        guard revoked == nil else { return .revoked }
        guard let key else { return .withoutReceipt }
        if let notBefore, notBefore > now { return .tooEarly(until: notBefore) }
        _ = try ask([
            Self.nextRevision,
            DatabaseStatement(
                "UPDATE renewals SET due_at = 0, asked = true WHERE key = $1",
                [.number(key)]
            ),
            DatabaseStatement(
                "UPDATE keys SET revision = (SELECT revision FROM state) WHERE id = $1",
                [.number(key)]
            ),
            Self.notification,
        ])
        return .asked
    }

    // MARK: Lists of revoked certificates

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
        let rows = try ask(
            [Self.nextRevision] + statements + [Self.trimming, Self.notification]
        )
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
            Self.trimming,
        ])
    }
}
