package import KeyStore

/// Makes the tables, and checks that they are of this program's version.
package enum DatabaseTables {
    /// The version of the tables; 0 where there are none.
    static func version(_ connection: DatabaseConnection) throws(DatabaseFault) -> Int64 {
        do throws(DatabaseFault) {
            let select = DatabaseStatement("SELECT version FROM state")
            let deadline = ContinuousClock.now + .seconds(5)
            let row = try connection.run([select], until: deadline).first?.first
            do throws(JournalError) {
                return try row?.present(0) ?? 0
            } catch {
                throw DatabaseFault.lost(error.detail)
            }
        } catch {
            guard case .refused("42P01", _) = error else { throw error }
            return 0
        }
    }

    /// - Throws: that this program can't use tables of this version, with the next step.
    static func check(_ version: Int64) throws(JournalError) {
        guard version != 0 else {
            throw JournalError(
                .unusable,
                "the database has no tables of Portcullis: run portcullis store migrate",
                next: DatabaseHint.next("42P01", "")
            )
        }
        guard version == DatabaseSchema.version else {
            throw JournalError(
                .unusable,
                "the tables are of version \(version), and this program uses version "
                    + "\(DatabaseSchema.version)",
                next: "use the portcullis that made them, or a later one"
            )
        }
    }

    /// Makes the tables where there are none, in one transaction. If two programs make them at the
    /// same time, one is refused without a change, and finds those of the other.
    ///
    /// - Returns: whether it has made them.
    /// - Throws: also where the tables are of another version.
    package static func make(_ settings: PostgreSQLSettings) throws(JournalError) -> Bool {
        let link = DatabaseLink(settings)
        defer { link.close() }
        func found() throws(JournalError) -> Int64 {
            try link.run { (connection) throws(DatabaseFault) in try version(connection) }
        }
        if try found() == 0 {
            // The secret too, so that every standby has it long before the first mark.
            let secret = DatabaseMarks.keep(.drawn(), ErasureSecret.ownName)
            let creation = DatabaseSchema.creation.map { DatabaseStatement($0) }
            do throws(JournalError) {
                _ = try link.ask(creation + [secret])
                return true
            } catch {
                // Unique violation, in PostgreSQL's own tables too; a table or object that exists.
                let others = ["23505", "42P07", "42710"]
                guard others.contains(where: { error.detail.contains("SQLSTATE \($0))") }) else {
                    throw error
                }
            }
        }
        try check(try found())
        return false
    }
}
