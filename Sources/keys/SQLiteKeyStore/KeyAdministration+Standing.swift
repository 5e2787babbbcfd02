package import DeviceKey
internal import Foundation
internal import GRDB
package import KeyStore

extension KeyAdministration {
    /// The keys that one transaction checks, so that a running gateway can write in between.
    static let expiryPiece = 2_000

    package func revoke(_ keyID: KeyID, _ note: ChangeNote) throws(StoreProblem) -> Revocation {
        try change(keyID) { status, db in
            switch status {
            case nil, .deleted, .erased: return .unknown
            case .revoked(let second):
                if try Self.unlist(keyID, db) {
                    try KeyChangeLog.add(KeyChange(.revoked, keyID, keys: 1, note), db)
                }
                return .alreadyRevoked(at: second)
            case .active:
                try Self.set("revoked_at = ?1", keyID: keyID, note: note, db: db)
                try KeyChangeLog.add(KeyChange(.revoked, keyID, keys: 1, note), db)
                return .revoked
            }
        }
    }

    package func restore(_ keyID: KeyID, _ note: ChangeNote) throws(StoreProblem) -> Restoration {
        try change(keyID) { status, db in
            switch status {
            case nil, .deleted, .erased: return .unknown
            case .active: return .active
            case .revoked:
                try Self.set("revoked_at = NULL", keyID: keyID, note: note, db: db)
                _ = try Self.unlist(keyID, db)
                try KeyChangeLog.add(KeyChange(.restored, keyID, keys: 1, note), db)
                return .restored
            }
        }
    }

    package func delete(_ keyID: KeyID, _ note: ChangeNote) throws(StoreProblem) -> Deletion {
        try change(keyID) { status, db in
            switch status {
            case nil: return .unknown
            case .deleted(let second), .erased(let second, _): return .alreadyDeleted(at: second)
            case .active, .revoked:
                try Self.delete(keyID, note, db)
                try KeyChangeLog.add(KeyChange(.deleted, keyID, keys: 1, note), db)
                return .deleted
            }
        }
    }

    package func expire(
        unusedSince second: Int64,
        behind row: Int64,
        _ note: ChangeNote
    ) throws(StoreProblem) -> ExpiryPiece {
        let piece: ExpiryPiece = try write { db in
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT id, key_id, max(coalesce(enrolled_at, last_used_at),
                        coalesce(last_used_at, enrolled_at))
                    FROM keys WHERE id > ? AND deleted_at IS NULL ORDER BY id LIMIT ?
                    """,
                arguments: [row, Self.expiryPiece]
            )
            let old = rows.filter { row in
                let used: Int64? = row[2]
                return used.map { $0 < second } ?? false
            }
            // The log of counters may say that some of these were used since. It is long, and most
            // pieces have none.
            let newer = old.isEmpty ? [:] : try CounterLog.entries(db)
            var deleted = 0
            for row in old where newer[row[0]]?.usedAt ?? .min < second {
                try Self.delete(try SQLiteKeyColumns.keyID(row, 1), note, db)
                deleted += 1
            }
            if deleted > 0 {
                try KeyChangeLog.add(KeyChange(.expired, nil, keys: deleted, note), db)
            }
            let isLast = rows.count < Self.expiryPiece
            return ExpiryPiece(deleted: deleted, next: isLast ? nil : rows.last?[0])
        }
        if piece.deleted > 0 { try announce() }
        return piece
    }

    package func changes(of keyID: KeyID?, limit: Int) throws(StoreProblem) -> [KeyChange] {
        try read { try KeyChangeLog.last(of: keyID, limit: limit, $0) }
    }

    // MARK: Rows

    /// Calls the closure with a key's current state, and notifies a running gateway, also when
    /// nothing has changed: a gateway may have missed an earlier change.
    ///
    /// - body: its first argument is `nil` for a key that is not stored.
    private func change<Outcome>(
        _ keyID: KeyID,
        _ body: (KeyRecord.Status?, Database) throws -> Outcome
    ) throws(StoreProblem) -> Outcome {
        let outcome = try write { db in try body(Self.status(of: keyID, db), db) }
        try announce()
        return outcome
    }

    private static func status(of keyID: KeyID, _ db: Database) throws -> KeyRecord.Status? {
        let sql = "SELECT revoked_at, deleted_at FROM keys WHERE key_id = ?"
        let mark = try KeyMarks(db).stored(of: keyID, db)
        let row = try Row.fetchOne(db, sql: sql, arguments: [Data((mark ?? keyID).bytes)])
        return row.map { SQLiteKeyColumns.status($0, 0, 1) }
    }

    /// - change: the assignment; `?1` is the second.
    private static func set(
        _ change: String,
        keyID: KeyID,
        note: ChangeNote,
        db: Database
    ) throws {
        let statement = try db.cachedStatement(
            sql: "UPDATE keys SET \(change), revision = ?2 WHERE key_id = ?3 AND ?1 >= 0"
        )
        let revision = try nextRevision(db)
        try statement.execute(arguments: [max(note.now, 0), revision, Data(keyID.bytes)])
    }

    /// Takes away the mark of a key that a list has revoked: from now on a command decides. Returns
    /// whether it had one.
    private static func unlist(_ keyID: KeyID, _ db: Database) throws -> Bool {
        try db.execute(
            sql: """
                UPDATE chains SET listed = NULL
                WHERE key = (SELECT id FROM keys WHERE key_id = ?) AND listed IS NOT NULL
                """,
            arguments: [Data(keyID.bytes)]
        )
        return db.changesCount == 1
    }

    /// Keeps the row, so that its number, key id and counter can't be used again, until
    /// ``eraseDeleted()`` leaves the number and a mark.
    static func delete(_ keyID: KeyID, _ note: ChangeNote, _ db: Database) throws {
        let change = """
            deleted_at = ?1, context = NULL, enrolled_at = NULL, last_used_at = NULL
            """
        try set(change, keyID: keyID, note: note, db: db)
        for table in ["receipts", "renewals", "chains"] {
            try db.cachedStatement(
                sql: "DELETE FROM \(table) WHERE key = (SELECT id FROM keys WHERE key_id = ?)"
            ).execute(arguments: [Data(keyID.bytes)])
        }
    }
}

/// The changes of keys by commands, in the table `key_changes`.
enum KeyChangeLog {
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
            arguments: [db.lastInsertedRowID - Int64(KeyChange.keptMax)]
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
                    row.hasNull(atIndex: 1) ? nil : try SQLiteKeyColumns.keyID(row, 1),
                    keys: row[2],
                    ChangeNote(now: row[3], by: row[4], why: row[5])
                )
            }
        )
    }
}
