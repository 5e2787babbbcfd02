internal import GRDBSQLite
internal import Glibc
package import KeyStore

/// What a start would report about a database, found without writing anything: for `check`.
///
/// SQLite makes files beside a database that it opens, unless the database is declared immutable
/// (SQLite, "Uniform Resource Identifiers"). A log of transactions is then ignored. So for a
/// database with a log, which a gateway has open or a crash has left, only the files are checked.
package enum StorePreview {
    /// What a start would find where it creates a new store.
    package enum Birthplace: Equatable, Sendable {
        /// A database.
        case taken
        /// No database, and nothing that belongs to one.
        case empty
        /// No database, but a file that a gateway has made beside it: there was one here.
        case left(String)
    }

    /// Whether a start would create a new store at a path.
    package static func birthplace(_ path: String) -> Birthplace {
        let database = StoreFile.resolved(path)
        guard FileIdentity(path: database)?.length ?? 0 == 0 else { return .taken }
        let suffixes = [GenerationFile.suffix, "-wal", ".rollout", StoreLock.suffix]
        let left = suffixes.map { database + $0 }.first(where: StoreFile.exists)
        return left.map { .left($0) } ?? .empty
    }

    /// The first reason for which a start would refuse the database; `nil` when there is none.
    ///
    /// Checked in the order of the start: that the database is not missing where there was one;
    /// that its log is its own; that it is ours and of a known version; that it is not damaged;
    /// that it is not older than the one that was used here. A file that this user can't read is
    /// not judged.
    package static func problem(of path: String, age: StoreAge.Demand = .newest) -> StoreProblem? {
        let database = StoreFile.resolved(path)
        if age == .newest, let problem = StoreAge.problemBeforeOpening(database) { return problem }
        do throws(StoreProblem) {
            try StoreAge.checkPairing(database)
        } catch {
            return error
        }
        guard access(database, R_OK) == 0, FileIdentity(path: database)?.length ?? 0 > 0,
            !hasLog(database)
        else { return nil }
        let problem = content(database, age)
        // A gateway that has started meanwhile may have changed the file.
        return hasLog(database) ? nil : problem
    }

    private static func hasLog(_ database: String) -> Bool {
        FileIdentity(path: database + "-wal").map { $0.length > 0 } ?? false
    }

    private static func content(_ path: String, _ age: StoreAge.Demand) -> StoreProblem? {
        var connection: OpaquePointer?
        // The C border: the connection is closed below, whether it was opened or not.
        defer { sqlite3_close(connection) }
        let flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI
        guard sqlite3_open_v2("file:\(escaped(path))?immutable=1", &connection, flags, nil) == 0,
            let version = row("PRAGMA user_version", connection)?.first.flatMap({ Int($0) }),
            let application = row("PRAGMA application_id", connection)?.first,
            let tables = row("SELECT count(*) FROM sqlite_schema", connection)?.first
        else { return StoreProblem(.damaged, path, "is damaged: it can't be read as a database") }
        if let problem = KeyDatabase.problem(
            application: Int(application) ?? 0,
            tables: Int(tables) ?? 0,
            version: version,
            path
        ) {
            return problem
        }
        let findings = row("PRAGMA quick_check(1)", connection)?.first ?? "it can't be read"
        guard findings == "ok" else {
            return StoreProblem(.damaged, path, "is damaged: \(findings)")
        }
        // Tables of version 1 have no generation: the statement fails.
        guard age == .newest,
            let now = row("SELECT store, \(Generation.next) - 1 FROM state", connection),
            now.count == 2, let number = Int64(now[1])
        else { return nil }
        return StoreAge.problem(Generation(store: now[0], number: number), path)
    }

    /// The first row of a statement's result, as text; `nil` when it fails or has none.
    private static func row(_ sql: String, _ connection: OpaquePointer?) -> [String]? {
        var statement: OpaquePointer?
        // The C border: a column's text is copied before the statement continues or ends.
        defer { sqlite3_finalize(statement) }
        guard sqlite3_prepare_v2(connection, sql, -1, &statement, nil) == SQLITE_OK,
            sqlite3_step(statement) == SQLITE_ROW
        else { return nil }
        return (0..<sqlite3_column_count(statement)).map { column in
            sqlite3_column_text(statement, column).map { String(cString: $0) } ?? ""
        }
    }

    /// A path as a part of a URI.
    private static func escaped(_ path: String) -> String {
        path.replacing("%", with: "%25").replacing("?", with: "%3f").replacing("#", with: "%23")
    }
}
