package import DeviceKey
internal import Foundation
internal import GRDB
package import KeyStore

/// The `keys` commands on a SQLite file, with or without a running gateway.
///
/// A call that changes keys returns after a running gateway was notified.
package final class KeyAdministration: KeyArchive {
    let database: KeyDatabase

    /// Checked in this order: that a running gateway has the files at these paths open; that the
    /// log of transactions is this database's; then the checks of any database.
    ///
    /// - `creates`: whether to create a missing database, for an import.
    package convenience init(path: String, creates: Bool = false) throws(StoreProblem) {
        try Self.checkFiles(path)
        self.init(try KeyDatabase(path: path, creates: creates))
    }

    /// Opens the store to read it: nothing in it is changed, including its tables.
    package convenience init(reading path: String) throws(StoreProblem) {
        try Self.checkFiles(path)
        self.init(try KeyDatabase(reading: path))
    }

    init(_ database: KeyDatabase) { self.database = database }

    private static func checkFiles(_ path: String) throws(StoreProblem) {
        // Opening another database beside the files of a running gateway would damage both.
        let resolved = StoreFile.resolved(path)
        if let gateway = StoreLock.holder(ofDatabase: resolved),
            let file = StoreFiles.difference(gateway.files, resolved)
        {
            let detail = "is not the file that the running gateway (\(gateway.name)) has open"
            throw StoreProblem(.replaced, file, detail + "; nothing was changed")
        }
        try StoreAge.checkPairing(resolved)
    }

    /// Ends the use of the database; deinitialisation does it too.
    package func close() throws(StoreProblem) {
        do {
            try database.close()
        } catch {
            throw KeyDatabase.problem(error, database.path)
        }
    }

    // MARK: Reading

    package func scan(
        _ filter: KeyFilter,
        after last: KeyID?,
        limit: Int
    ) throws(StoreProblem) -> KeyPage {
        let page = try read { try Self.page($0, filter, after: last, limit: limit) }
        // The log of counters may say that a key was used since.
        return KeyPage(
            records: page.filter(filter.admits),
            next: page.count == limit ? page.last?.keyID : nil
        )
    }

    private static func page(
        _ db: Database,
        _ filter: KeyFilter,
        after last: KeyID?,
        limit: Int
    ) throws -> [KeyRecord] {
        let (newer, anchors) = (try CounterLog.entries(db), try CounterAnchors(db))
        let (condition, arguments) = filter.condition
        // All key ids are 32 bytes, so all follow the empty one.
        let start: StatementArguments = [Data(last?.bytes ?? [])]
        let sql = """
            \(SQLiteKeyColumns.selectRecord) WHERE k.key_id > ? AND \(condition)
            ORDER BY k.key_id LIMIT ?
            """
        let rows = try Row.fetchCursor(db, sql: sql, arguments: start + arguments + [limit])
        return try Array(rows.map { try SQLiteKeyColumns.record($0, newer, anchors) })
    }

    package func record(_ keyID: KeyID) throws(StoreProblem) -> KeyRecord? {
        try read { db in
            let mark = try KeyMarks(db).stored(of: keyID, db)
            return try Row.fetchOne(
                db,
                sql: SQLiteKeyColumns.selectRecord + " WHERE k.key_id = ?",
                arguments: [Data((mark ?? keyID).bytes)]
            ).map { try SQLiteKeyColumns.record($0, CounterLog.entries(db), CounterAnchors(db)) }
        }
    }

    package func keyIDs(
        loggedAs name: String,
        deleted: KeyFilter.Deleted
    ) throws(StoreProblem) -> [KeyID] {
        let condition = deleted == .included ? "erased_under" : "deleted_at"
        return try read { db in
            var found: [KeyID] = []
            let sql = "SELECT key_id FROM keys WHERE \(condition) IS NULL"
            let rows = try Row.fetchCursor(db, sql: sql)
            while let row = try rows.next() {
                let keyID = try SQLiteKeyColumns.keyID(row, 0)
                if keyID.logName.hasPrefix(name) { found.append(keyID) }
            }
            return found
        }
    }

    package func count() throws(StoreProblem) -> Int {
        try read {
            try Int.fetchOne($0, sql: "SELECT count(*) FROM keys WHERE deleted_at IS NULL") ?? 0
        }
    }

    // MARK: Changing

    package func askRenewal(of keyID: KeyID, now: Int64) throws(StoreProblem) -> RenewalRequest {
        let outcome: RenewalRequest = try write { db in
            let select = """
                SELECT k.id, k.revoked_at, r.key, r.not_before FROM keys k
                    LEFT JOIN renewals r ON r.key = k.id
                WHERE k.key_id = ? AND k.deleted_at IS NULL
                """
            let key = Data(keyID.bytes)
            guard let row = try Row.fetchOne(db, sql: select, arguments: [key]) else {
                return .unknown
            }
            let id: Int64 = row[0]
            guard row.hasNull(atIndex: 1) else { return .revoked }
            guard !row.hasNull(atIndex: 2) else { return .withoutReceipt }
            let notBefore: Int64? = row[3]
            if let notBefore, notBefore > now { return .tooEarly(until: notBefore) }
            try db.execute(
                sql: "UPDATE renewals SET due_at = 0, asked = 1 WHERE key = ?",
                arguments: [id]
            )
            try db.execute(
                sql: "UPDATE keys SET revision = ? WHERE id = ?",
                arguments: [try Self.nextRevision(db), id]
            )
            return .asked
        }
        if outcome == .asked { try announce() }
        return outcome
    }

    package func receiptCensus(at now: Int64) throws(StoreProblem) -> ReceiptCensus {
        try read { try ReceiptCensus($0, at: now) }
    }

    /// The revision of the changes of this transaction.
    static func nextRevision(_ db: Database) throws -> Int64 {
        _ = try Generation.advance(db)
        let sql = "UPDATE state SET revision = revision + 1 RETURNING revision"
        guard let revision = try Int64.fetchOne(db, sql: sql) else {
            throw JournalError(.damaged, "the table of the state is empty")
        }
        return revision
    }

    /// Notifies a running gateway that keys have changed, and waits until it has read that.
    func announce() throws(StoreProblem) {
        switch ChangeCall.changed(database: database.path) {
        case .nobody: try raiseGeneration()
        case .answered(.seen): break
        case .answered(.unreadable(let detail)):
            let text =
                "is changed, but the running gateway can't read it (\(detail)): until it can, no "
                + "key gets a pass, and rules with on_error: forward forward"
            throw StoreProblem(.gatewayNotTold, database.path, text)
        case .answered(.replaced(let detail)):
            let text = "is changed, but the running gateway uses other files: \(detail)"
            throw StoreProblem(.replaced, database.path, text)
        case .unheard(let detail):
            let gateway = StoreLock.holder(ofDatabase: database.path)?.name ?? "just ended"
            let text =
                "is changed, but the running gateway (\(gateway)) does not confirm it: \(detail)"
            throw StoreProblem(.gatewayNotTold, database.path, text)
        }
    }

    /// Creates the file of the generation for a database that was never used with one. Refuses an
    /// older copy: changes to it would raise its generation until it looks like the newest.
    private func prepareGeneration() throws(StoreProblem) {
        // The file is read first: a running gateway raises it only after the database.
        if let record = GenerationFile.record(ofDatabase: database.path) {
            let now = try read { try Generation.current($0) }
            // The next start reports another store.
            guard record.generation.store == now.store, now.number < record.generation.number
            else { return }
            throw StoreAge.olderCopy(now, record, database.path)
        }
        guard !GenerationFile.exists(ofDatabase: database.path) else { return }
        let now = try read { try Generation.current($0) }
        guard now.number == 0 else { return }
        _ = try GenerationFile(database: database.path, GenerationFile.Record(generation: now))
    }

    /// Raises the generation like a gateway that reads the change. The file of another store is not
    /// changed: the next start reports it.
    private func raiseGeneration() throws(StoreProblem) {
        let now = try read { try Generation.current($0) }
        let file = GenerationFile(raising: database.path, of: now.store)
        try file?.raise(to: now.number)
    }

    func read<Value>(_ body: (Database) throws -> Value) throws(StoreProblem) -> Value {
        do throws(JournalError) {
            return try database.read(body)
        } catch {
            throw StoreProblem(error, database.path)
        }
    }

    func write<Value>(_ body: (Database) throws -> Value) throws(StoreProblem) -> Value {
        try prepareGeneration()
        do throws(JournalError) {
            return try database.write(body)
        } catch {
            throw StoreProblem(error, database.path)
        }
    }
}

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
                let keyID = try SQLiteKeyColumns.keyID(row, 0)
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
