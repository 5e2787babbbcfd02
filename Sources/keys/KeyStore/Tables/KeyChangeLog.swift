package import DeviceKey

/// The changes of keys by commands, in the table `key_changes`.
package enum KeyChangeLog {
    /// The statements that note a change, and remove the oldest ones.
    package static func add(_ change: KeyChange) -> [DatabaseStatement] {
        let note = change.note
        return [
            DatabaseStatement(
                """
                INSERT INTO key_changes (at, actor, action, key_id, keys, why)
                VALUES ($1, $2, $3, $4, $5, $6)
                """,
                [
                    .number(note.now), .text(note.actor), .text(change.action.rawValue),
                    .bytes(change.keyID?.bytes), .number(Int64(change.keys)), .text(note.why),
                ]
            ), trimming,
        ]
    }

    /// The condition that a row was changed in this transaction, which has raised the revision.
    static let isChanged = "revision > 0 AND revision = (SELECT revision FROM state)"

    /// Notes that a list has changed a key, if it has in this transaction.
    static func add(_ action: KeyChange.Action, ofRow row: Int64, _ note: ChangeNote)
        -> DatabaseStatement
    {
        DatabaseStatement(
            """
            INSERT INTO key_changes (at, actor, action, key_id, keys, why)
            SELECT $2, $3, $4, key_id, 1, $5 FROM keys WHERE id = $1 AND \(isChanged)
            """,
            [
                .number(row), .number(note.now), .text(note.actor), .text(action.rawValue),
                .text(note.why),
            ]
        )
    }

    /// Notes that a piece of the keys has expired, in the row of the piece before, if there is one:
    /// the pieces of one run are one change.
    static func addExpired(_ note: ChangeNote) -> [DatabaseStatement] {
        let isOfRun = """
            id = (SELECT max(id) FROM key_changes) AND key_id IS NULL AND action = $3 AND at = $1
            AND actor = $2
            """
        let values: [StatementValue] = [
            .number(note.now), .text(note.actor), .text(KeyChange.Action.expired.rawValue),
        ]
        return [
            DatabaseStatement(
                """
                INSERT INTO key_changes (at, actor, action, keys, why)
                SELECT $1, $2, $3, 0, $4
                WHERE EXISTS (SELECT 1 FROM keys WHERE \(isChanged))
                    AND NOT EXISTS (SELECT 1 FROM key_changes WHERE \(isOfRun))
                """,
                values + [.text(note.why)]
            ),
            DatabaseStatement(
                """
                UPDATE key_changes SET keys = keys + (SELECT count(*) FROM keys WHERE \(isChanged))
                WHERE \(isOfRun)
                """,
                values
            ), trimming,
        ]
    }

    static let trimming = DatabaseStatement(
        "DELETE FROM key_changes WHERE id <= (SELECT max(id) FROM key_changes) - $1",
        [.number(Int64(KeyChange.keptMax))]
    )
}

extension TableSession {
    /// The newest first.
    package func lastChanges(of keyID: KeyID?, limit: Int) throws(JournalError) -> [KeyChange] {
        try ask(
            """
            SELECT action, key_id, keys, at, actor, why FROM key_changes
            WHERE \(keyID == nil ? "$1 IS NULL" : "key_id = $1")
            ORDER BY id DESC LIMIT $2
            """,
            [.bytes(keyID?.bytes), .number(Int64(limit))]
        ) { (row) throws(JournalError) in try row.keyChange() }
    }
}

extension StoredRow {
    fileprivate func keyChange() throws(JournalError) -> KeyChange {
        let word = text(0) ?? ""
        guard let action = KeyChange.Action(rawValue: word) else {
            throw damaged("\(word) is no change of a key")
        }
        let why = text(5) == nil ? nil : line(5)
        let note = ChangeNote(now: try present(3), by: line(4), why: why)
        let keyID = bytes(1) == nil ? nil : try keyID(1)
        return KeyChange(action, of: keyID, keys: Int(try present(2)), note)
    }
}
