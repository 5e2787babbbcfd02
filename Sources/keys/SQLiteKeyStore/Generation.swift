internal import GRDB
internal import KeyStore

/// How far a store has come: which store it is, and a number that each transaction raises.
///
/// The number of the newest entry of the log of counters is the generation as long as the log has
/// one; `state` has the generation of what came before. So a commit of counters writes no more
/// pages for it.
struct Generation: Equatable, Sendable {
    /// Drawn when the database was made: 32 hexadecimal digits.
    let store: String
    let number: Int64

    /// The number of the next transaction, as SQL.
    static let next = """
        (SELECT max(generation, coalesce((SELECT max(id) FROM counter_log), 0)) + 1 FROM state)
        """

    /// How far the database has come.
    static func current(_ db: Database) throws -> Generation {
        let statement = try db.cachedStatement(sql: "SELECT store, \(next) - 1 FROM state")
        guard let row = try Row.fetchOne(statement) else {
            throw JournalError(.damaged, "the table of the state is empty")
        }
        return Generation(store: row[0], number: row[1])
    }

    /// Raises the number for a transaction that adds nothing to the log of counters.
    static func advance(_ db: Database) throws -> Int64 {
        let sql = "UPDATE state SET generation = \(next) RETURNING generation"
        guard let number = try Int64.fetchOne(db.cachedStatement(sql: sql)) else {
            throw JournalError(.damaged, "the table of the state is empty")
        }
        return number
    }

    /// Keeps the number when entries of the log are removed.
    static func keep(_ number: Int64, _ db: Database) throws {
        try db.execute(
            sql: "UPDATE state SET generation = max(generation, ?)",
            arguments: [number]
        )
    }
}
