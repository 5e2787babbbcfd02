internal import DeviceKey
internal import Foundation
internal import GRDB
internal import KeyStore

/// The changes of keys by commands, in the table `key_changes`.
enum KeyChangeLog {
    /// The most changes that are kept; the oldest are removed.
    static let countMax = 100_000

    static func add(_ change: KeyChange, _ db: Database) throws {
        let note = change.note
        if change.keyID == nil {
            // The pieces of one run are one change.
            try db.execute(
                sql: """
                    UPDATE key_changes SET keys = keys + ?
                    WHERE id = (SELECT max(id) FROM key_changes)
                        AND key_id IS NULL AND action = ? AND at = ? AND actor = ?
                    """,
                arguments: [change.keys, change.action.rawValue, note.now, note.actor]
            )
            if db.changesCount > 0 { return }
        }
        try db.execute(
            sql: """
                INSERT INTO key_changes (at, actor, action, key_id, keys, why)
                VALUES (?, ?, ?, ?, ?, ?)
                """,
            arguments: [
                note.now, note.actor, change.action.rawValue,
                change.keyID.map { Data($0.bytes) }, change.keys, note.why,
            ]
        )
        try db.execute(
            sql: "DELETE FROM key_changes WHERE id <= ?",
            arguments: [db.lastInsertedRowID - Int64(countMax)]
        )
    }

    /// The newest first.
    static func last(of keyID: KeyID?, limit: Int, _ db: Database) throws -> [KeyChange] {
        let condition = keyID == nil ? "?1 IS NULL" : "key_id = ?1"
        let rows = try Row.fetchCursor(
            db,
            sql: """
                SELECT action, key_id, keys, at, actor, why FROM key_changes
                WHERE \(condition) ORDER BY id DESC LIMIT ?2
                """,
            arguments: [keyID.map { Data($0.bytes) }, limit]
        )
        return try Array(
            rows.map { row in
                let word: String = row[0]
                guard let action = KeyChange.Action(rawValue: word) else {
                    throw JournalError(.damaged, "\(word) is no change of a key")
                }
                return KeyChange(
                    action,
                    row.hasNull(atIndex: 1) ? nil : try KeyColumns.keyID(row, 1),
                    keys: row[2],
                    ChangeNote(now: row[3], by: row[4], why: row[5])
                )
            }
        )
    }
}
