internal import KeyStore

/// Checks whether a database is at least as new as the last known one.
package enum StoreAge {
    /// The treatment of a database that is older, empty, missing or another.
    package enum Demand: Sendable {
        /// The start refuses it.
        case newest
        /// The start accepts it, and later changes are lost.
        case any
    }

    /// The fault of files that are not open yet; `nil` for none.
    static func problemBeforeOpening(_ database: String) -> StoreProblem? {
        guard let record = GenerationFile.record(ofDatabase: database) else { return nil }
        guard let now = FileIdentity(path: database), now.length > 0 else {
            let detail = "is missing or empty, and generation \(record.generation.number) of it "
            return StoreProblem(.older, database, detail + "was used here")
        }
        return nil
    }

    /// Refuses a log of transactions that belongs to an earlier database: SQLite would write it
    /// over this one ("How To Corrupt An SQLite Database File", section 1.4).
    ///
    /// A clean stop leaves no log, so a crash has left the noted one.
    static func checkPairing(_ database: String) throws(StoreProblem) {
        let log = database + "-wal"
        guard let record = GenerationFile.record(ofDatabase: database),
            let before = record.database, let logBefore = record.log,
            let logNow = FileIdentity(path: log), logNow == logBefore, logNow.length > 0,
            // SQLite itself deletes a log beside an empty database.
            let now = FileIdentity(path: database), now.length > 0, now != before
        else { return }
        throw StoreProblem(
            .mispaired,
            log,
            "belongs to the database that was here before, not to this \(database)"
        )
    }

    /// The fault of an open database; `nil` for none.
    static func problem(_ now: Generation, _ database: String) -> StoreProblem? {
        let file = database + GenerationFile.suffix
        guard let record = GenerationFile.record(ofDatabase: database) else {
            if GenerationFile.exists(ofDatabase: database) {
                return StoreProblem(.older, database, "may be older: \(file) can't be read")
            }
            // A database that was never used with such a file has no generation yet.
            guard now.number > 0 else { return nil }
            let detail = "may be an older copy: \(file), which says how far it had come, is missing"
            return StoreProblem(.older, database, detail)
        }
        guard record.generation.store == now.store else {
            return StoreProblem(.older, database, "is another store than the one that was here")
        }
        return now.number < record.generation.number ? olderCopy(now, record, database) : nil
    }

    static func olderCopy(
        _ now: Generation,
        _ record: GenerationFile.Record,
        _ database: String
    ) -> StoreProblem {
        let detail =
            "is an older copy: generation \(now.number), and \(record.generation.number) was "
            + "reached here"
        return StoreProblem(.older, database, detail)
    }
}
