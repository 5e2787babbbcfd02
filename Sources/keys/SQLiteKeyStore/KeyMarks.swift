internal import DeviceKey
internal import GRDB
package import KeyStore

/// The marks of erased keys in one transaction: see ErasureSecret. Most stores have none, and then
/// nothing is looked up.
struct KeyMarks {
    private let secrets: ErasureSecrets

    /// Reads the secrets of this transaction.
    init(_ session: SQLiteSession) throws(JournalError) {
        let sql = "SELECT 1 FROM keys WHERE erased_under IS NOT NULL LIMIT 1"
        let isUsed = try !session.ask(sql) { (row) throws(JournalError) in row.flag(0) }.isEmpty
        secrets = isUsed ? try session.secrets() : ErasureSecrets([])
    }

    /// The stored mark of a key; `nil` where it is not erased.
    func stored(of keyID: KeyID, _ session: SQLiteSession) throws(JournalError) -> KeyID? {
        for (_, mark) in secrets.marks(of: keyID) {
            let found = try session.ask(
                "SELECT 1 FROM keys WHERE key_id = $1 AND erased_under IS NOT NULL",
                [.bytes(mark.bytes)]
            ) { (row) throws(JournalError) in row.flag(0) }
            if !found.isEmpty { return mark }
        }
        return nil
    }

    /// Whether there is a deleted key that still has its id.
    fileprivate static func areDue(_ db: Database) throws -> Bool {
        let sql = """
            SELECT EXISTS (SELECT 1 FROM keys WHERE deleted_at IS NOT NULL AND erased_under IS NULL)
            """
        return try Bool.fetchOne(db, sql: sql) ?? false
    }

    /// Erases some deleted keys.
    ///
    /// - Returns: their number; 0 when none is left.
    fileprivate static func erase(_ db: Database) throws -> Int {
        let rows = try SQLiteSession(db).eraseSome([])
        if !rows.isEmpty { try CounterLog.forget(Set(rows), db) }
        return rows.count
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
