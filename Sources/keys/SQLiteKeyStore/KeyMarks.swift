internal import Cryptography
internal import DeviceKey
internal import Foundation
internal import GRDB
internal import Glibc
package import KeyStore

/// The marks of erased keys, in the place of the key ids: see ErasureSecret.
struct KeyMarks {
    private var secrets: ErasureSecrets
    /// Whether there are marks, so that the rest is left out where there are none.
    private var isUsed: Bool

    /// Reads the secrets of this transaction.
    init(_ db: Database) throws {
        let sql = "SELECT EXISTS (SELECT 1 FROM keys WHERE erased_under IS NOT NULL)"
        isUsed = try Bool.fetchOne(db.cachedStatement(sql: sql)) ?? false
        secrets = isUsed ? try Self.secrets(db) : ErasureSecrets([])
    }

    private static func secrets(_ db: Database) throws -> ErasureSecrets {
        let own = ErasureSecret.ownName
        let sql = "SELECT name, secret FROM secrets WHERE name = ?1 OR name LIKE ?1 || ' %'"
        let rows = try Row.fetchAll(db.cachedStatement(sql: sql), arguments: [own])
        return ErasureSecrets(
            try rows.map { row in
                guard let secret = try SQLiteKeyColumns.secret(row, 1) else {
                    throw JournalError(.damaged, "the secret of marks is not there")
                }
                let name: String = row[0]
                return (name, secret)
            }
        )
    }

    /// The stored mark of a key; `nil` where it is not erased.
    func stored(of keyID: KeyID, _ db: Database) throws -> KeyID? {
        guard isUsed else { return nil }
        let sql = "SELECT 1 FROM keys WHERE key_id = ? AND erased_under IS NOT NULL"
        let select = try db.cachedStatement(sql: sql)
        for (_, mark) in secrets.marks(of: keyID)
        where try Int.fetchOne(select, arguments: [Data(mark.bytes)]) != nil { return mark }
        return nil
    }

    /// Adds the mark of a key that was erased elsewhere; false where it is there.
    mutating func add(
        _ mark: KeyID,
        _ secret: ErasureSecret,
        at second: Int64,
        _ revision: Int64,
        _ db: Database
    ) throws -> Bool {
        if !isUsed { (secrets, isUsed) = (try Self.secrets(db), true) }
        if secrets.name(of: secret) == nil {
            guard !secrets.isFull else { throw ErasureSecrets.full }
            // A store that has none yet goes on with this one.
            let name = secrets.isEmpty ? ErasureSecret.ownName : secret.foreignName
            try Self.keep(secret, name: name, db: db)
            secrets = try Self.secrets(db)
        }
        try db.cachedStatement(
            sql: """
                INSERT INTO keys (key_id, public_key, app, environment, is_imported, counter,
                    counter_window, deleted_at, revision, erased_under)
                VALUES (?, ?, ?, 1, 0, 0, 0, ?, ?, ?) ON CONFLICT (key_id) DO NOTHING
                """
        ).execute(arguments: [
            Data(mark.bytes), Self.publicKey, try SQLiteKeyColumns.appRow("", db), max(second, 0),
            revision, secrets.name(of: secret),
        ])
        return db.changesCount == 1
    }

    private static let publicKey = Data(P256PublicKey.ofErasedKeys.x963.dropFirst())

    private static func keep(_ secret: ErasureSecret, name: String, db: Database) throws {
        try db.execute(
            sql: "INSERT OR IGNORE INTO secrets (name, secret) VALUES (?, ?)",
            arguments: [name, Data(secret.bytes)]
        )
    }

    // MARK: Erasing

    /// The keys that one transaction erases.
    private static let piece = 2_000

    /// Whether there is a deleted key that still has its id.
    static func areDue(_ db: Database) throws -> Bool {
        let sql = """
            SELECT EXISTS (SELECT 1 FROM keys WHERE deleted_at IS NOT NULL AND erased_under IS NULL)
            """
        return try Bool.fetchOne(db, sql: sql) ?? false
    }

    /// Erases some deleted keys.
    ///
    /// - Returns: their number; 0 when none is left.
    static func erase(_ db: Database) throws -> Int {
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT id, key_id FROM keys
                WHERE deleted_at IS NOT NULL AND erased_under IS NULL ORDER BY id LIMIT ?
                """,
            arguments: [piece]
        )
        guard !rows.isEmpty else { return 0 }
        try keep(.drawn(), name: ErasureSecret.ownName, db: db)
        let secrets = try secrets(db)
        let app = try SQLiteKeyColumns.appRow("", db)
        for row in rows {
            try erase(row: row[0], try SQLiteKeyColumns.keyID(row, 1), secrets, app: app, db)
        }
        try CounterLog.forget(Set(rows.map { $0[0] as Int64 }), db)
        return rows.count
    }

    private static func erase(
        row: Int64,
        _ keyID: KeyID,
        _ secrets: ErasureSecrets,
        app: Int64,
        _ db: Database
    ) throws {
        for table in ["receipts", "renewals", "chains"] {
            try db.cachedStatement(sql: "DELETE FROM \(table) WHERE key = ?")
                .execute(arguments: [row])
        }
        try db.cachedStatement(sql: "UPDATE key_changes SET key_id = NULL WHERE key_id = ?")
            .execute(arguments: [Data(keyID.bytes)])
        let marks = secrets.marks(of: keyID)
        guard var (name, mark) = marks.first else {
            throw JournalError(.damaged, "there is no secret of marks")
        }
        // Where another store has erased the key too, one mark is enough.
        let find = try db.cachedStatement(
            sql: "SELECT id FROM keys WHERE key_id = ? AND erased_under IS NOT NULL"
        )
        for other in marks {
            let arguments: StatementArguments = [Data(other.mark.bytes)]
            guard let double = try Int64.fetchOne(find, arguments: arguments) else { continue }
            (name, mark) = other
            try db.cachedStatement(sql: "DELETE FROM keys WHERE id = ?").execute(arguments: [double]
            )
        }
        try db.cachedStatement(
            sql: """
                UPDATE keys SET key_id = ?2, public_key = ?3, app = ?4, environment = 1,
                    platform = 1, is_imported = 0, counter = 0, counter_window = 0,
                    enrolled_at = NULL, last_used_at = NULL, revoked_at = NULL, context = NULL,
                    erased_under = ?5
                WHERE id = ?1
                """
        ).execute(arguments: [row, Data(mark.bytes), publicKey, app, name])
    }
}

extension KeyAdministration {
    package func eraseDeleted() throws(StoreProblem) -> Int {
        guard try read({ try KeyMarks.areDue($0) }) else { return 0 }
        // Uses that were admitted before the deletion may still wait for the writer. If it does not
        // answer, the log of counters has them until it is merged.
        _ = ChangeCall.write(database: database.path)
        var (erased, count) = (0, 0)
        repeat {
            count = try write { db in
                let count = try KeyMarks.erase(db)
                if count > 0 { _ = try Generation.advance(db) }
                return count
            }
            erased += count
        } while count > 0
        if erased > 0 { try announce() }
        return erased
    }

    package func deleteMarked(_ note: ChangeNote) throws(StoreProblem) {
        var last: Int64? = 0
        while let behind = last {
            let (keys, next) = try read { db in try Self.marked(after: behind, db) }
            if !keys.isEmpty {
                try write { db in for keyID in keys { try Self.delete(keyID, note, db) } }
            }
            last = next
        }
        try announce()
    }

    /// The keys of a piece of the rows of which a mark is stored, and the row after which the next
    /// piece begins.
    private static func marked(
        after row: Int64,
        _ db: Database
    ) throws -> (keys: [KeyID], next: Int64?) {
        let marks = try KeyMarks(db)
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT id, key_id FROM keys WHERE id > ? AND deleted_at IS NULL
                ORDER BY id LIMIT ?
                """,
            arguments: [row, expiryPiece]
        )
        var found: [KeyID] = []
        for row in rows {
            let keyID = try SQLiteKeyColumns.keyID(row, 1)
            if try marks.stored(of: keyID, db) != nil { found.append(keyID) }
        }
        return (found, rows.count < expiryPiece ? nil : rows.last?[0])
    }

    package func wipe() throws(StoreProblem) -> String? {
        database.rewrite(besideGateway: StoreLock.holder(ofDatabase: database.path) != nil)
    }
}

extension KeyDatabase {
    /// The largest file that is rewritten while requests may wait for it.
    private static let rewrittenMax: Int64 = 256 << 20

    /// Erases the keys that are deleted and still have their ids: those of a command that was
    /// killed.
    func eraseLeftOver() throws {
        guard try queue.read(KeyMarks.areDue) else { return }
        while try write({ db in try KeyMarks.erase(db) }) > 0 {}
        // Where it fails, the next deletion does it.
        _ = rewrite(besideGateway: true)
    }

    /// Writes the whole file again. SQLite moves rows from page to page and leaves copies of them
    /// in the unused parts of pages, which `secure_delete` does not reach.
    ///
    /// - besideGateway: whether requests may wait for it.
    /// - Returns: why it was not possible; `nil` where it was.
    func rewrite(besideGateway: Bool) -> String? {
        let length = FileIdentity(path: path)?.length ?? 0
        guard length <= Self.rewrittenMax || !besideGateway else {
            return "the file has \(length >> 20) MiB, too many to rewrite beside a gateway"
        }
        do {
            let isBusy: Int? = try queue.writeWithoutTransaction { db in
                try db.execute(sql: "VACUUM")
                return try Row.fetchOne(db, sql: "PRAGMA wal_checkpoint(TRUNCATE)")?[0]
            }
            return isBusy == 0 ? nil : "another program reads the database"
        } catch {
            return Self.journalError(error).detail
        }
    }
}
