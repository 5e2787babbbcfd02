internal import GRDB
package import KeyStore

/// The `keys` commands on a SQLite file, with or without a running gateway.
///
/// A call that changes keys returns after a running gateway was notified.
package final class KeyAdministration: TableArchive {
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
            throw StoreProblem(.replaced, at: file, detail + "; nothing was changed")
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

    package func query<Value>(
        _ body: (SQLiteSession) throws(JournalError) -> Value
    ) throws(StoreProblem) -> Value {
        try read { db in try body(SQLiteSession(db)) }
    }

    package func update<Value>(
        _ body: (SQLiteSession) throws(JournalError) -> Value
    ) throws(StoreProblem) -> Value {
        try write { db in try body(SQLiteSession(db)) }
    }

    package func spentTokens(
        after last: SpentToken?,
        limit: Int
    ) throws(StoreProblem) -> [SpentToken] {
        try read { try SpentTokens.page(after: last, limit: limit, $0) }
    }

    package func spend(_ tokens: [SpentToken]) throws(StoreProblem) {
        guard !tokens.isEmpty else { return }
        _ = try write { db in
            _ = try Generation.advance(db)
            return try SpentTokens.spend(tokens, db)
        }
        try announce()
    }

    /// Notifies a running gateway that keys have changed, and waits until it has read that.
    package func announce() throws(StoreProblem) {
        switch ChangeCall.changed(database: database.path) {
        case .nobody: try raiseGeneration()
        case .answered(.seen): break
        case .answered(.unreadable(let detail)):
            let text =
                "is changed, but the running gateway can't read it (\(detail)): until it can, no "
                + "key gets a pass, and rules with on_error: forward forward"
            throw StoreProblem(.gatewayNotTold, at: database.path, text)
        case .answered(.replaced(let detail)):
            let text = "is changed, but the running gateway uses other files: \(detail)"
            throw StoreProblem(.replaced, at: database.path, text)
        case .unheard(let detail):
            let gateway = StoreLock.holder(ofDatabase: database.path)?.name ?? "just ended"
            let text =
                "is changed, but the running gateway (\(gateway)) does not confirm it: \(detail)"
            throw StoreProblem(.gatewayNotTold, at: database.path, text)
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
            throw StoreAge.olderCopy(now, record, at: database.path)
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
