internal import Cryptography
internal import Foundation
internal import GRDB
internal import GRDBSQLite
internal import KeyStore
internal import Synchronization

/// A connection to the database, after all checks that the database is ours.
struct KeyDatabase: Sendable {
    /// The path without symbolic links.
    let path: String
    let queue: DatabaseQueue
    private let ending = Ending()

    /// Whether the connection is closed.
    private final class Ending: Sendable {
        let isOver = Mutex(false)
    }

    /// The time that a connection waits for another's transaction.
    private static let busySeconds = 5.0
    /// The most KiB of pages that a connection keeps in memory: for one that writes, since a commit
    /// touches pages all over the index of key ids, and for one that reads everything once.
    private static let (writerCache, readerCache) = (32_768, 2_048)

    /// Opens the database, and makes the tables of an empty one.
    ///
    /// Checked in this order: that it can be opened; that it is a database, ours, and of
    /// this version.
    ///
    /// - `creates`: whether to create a missing one.
    init(path: String, creates: Bool) throws(StoreProblem) {
        guard creates || StoreFile.exists(path) else {
            throw StoreProblem(.missing, at: path, "there is no such file")
        }
        if creates { try StoreFile.create(path) }
        let resolved = StoreFile.resolved(path)
        self.path = resolved
        do {
            queue = try DatabaseQueue(
                path: resolved,
                configuration: Self.configuration(cache: Self.writerCache)
            )
            if let problem = try queue.writeWithoutTransaction({ try Self.setUp($0, resolved) }) {
                throw problem
            }
            if try queue.read(Self.version) == 0 {
                try write { db in
                    // If two processes create the database at once, one of them finds it created.
                    if try Self.version(db) == 0 { try db.execute(sql: KeySchema.creation) }
                }
            }
            try eraseLeftOver()
        } catch {
            throw Self.problem(error, resolved)
        }
    }

    /// Opens another connection, for reading, to an open database.
    init(beside database: KeyDatabase) throws(StoreProblem) {
        path = database.path
        do {
            queue = try DatabaseQueue(
                path: path,
                configuration: Self.configuration(cache: Self.readerCache)
            )
        } catch {
            throw Self.problem(error, path)
        }
    }

    /// Opens a database to read it, and changes nothing in it: its tables stay as they are.
    ///
    /// SQLite creates its missing -wal and -shm beside it.
    init(reading path: String) throws(StoreProblem) {
        guard StoreFile.exists(path) else {
            throw StoreProblem(.missing, at: path, "there is no such file")
        }
        let resolved = StoreFile.resolved(path)
        self.path = resolved
        do {
            var configuration = Self.configuration(cache: Self.readerCache)
            configuration.readonly = true
            queue = try DatabaseQueue(path: resolved, configuration: configuration)
            let problem = try queue.read { (db) -> StoreProblem? in
                if let problem = try Self.problem(db, resolved) { return problem }
                guard try Self.version(db) == 0 else { return nil }
                return StoreProblem(.missing, at: resolved, "has no tables")
            }
            if let problem { throw problem }
        } catch {
            throw Self.problem(error, resolved)
        }
    }

    /// - `cache`: KiB.
    private static func configuration(cache: Int) -> Configuration {
        var configuration = Configuration()
        configuration.label = "portcullis.store.sqlite"
        configuration.busyMode = .timeout(busySeconds)
        configuration.prepareDatabase { db in
            // FULL: in WAL mode, each commit is synchronised before it returns (SQLite, "PRAGMA
            // synchronous"). All are of the connection.
            // secure_delete: removed content is overwritten, so that it is not left in the file.
            try db.execute(
                sql: """
                    PRAGMA synchronous = FULL; PRAGMA cache_size = -\(cache);
                    PRAGMA secure_delete = ON
                    """
            )
        }
        return configuration
    }

    private static func setUp(_ db: Database, _ path: String) throws -> StoreProblem? {
        // First, since the mode is written into the file, which may be another program's.
        if let problem = try Self.problem(db, path) { return problem }
        let mode = try String.fetchOne(db, sql: "PRAGMA journal_mode = WAL")
        guard mode == "wal" else {
            return StoreProblem(.unusable, at: path, "the folder does not allow SQLite's WAL mode")
        }
        return nil
    }

    private static func problem(_ db: Database, _ path: String) throws -> StoreProblem? {
        problem(
            application: try Int.fetchOne(db, sql: "PRAGMA application_id") ?? 0,
            tables: try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_schema") ?? 0,
            version: try version(db),
            path
        )
    }

    /// Why a database is not ours, or of another version; `nil` when it can be used, or has no
    /// tables.
    static func problem(
        application: Int,
        tables: Int,
        version: Int,
        _ path: String
    ) -> StoreProblem? {
        if application != KeySchema.applicationID {
            guard application == 0, tables == 0 else {
                return StoreProblem(.foreign, at: path, "is a database of another program")
            }
        }
        guard version == KeySchema.version || version == 0 && tables == 0 else {
            let detail = "has tables of version \(version); this program uses \(KeySchema.version)"
            return StoreProblem(.otherVersion, at: path, detail)
        }
        return nil
    }

    private static func version(_ db: Database) throws -> Int {
        try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
    }

    /// How thoroughly a database is checked.
    enum Look: String {
        /// Each page by itself: one or two seconds for a million keys.
        case quick = "quick_check"
        /// The indexes against the tables too.
        case whole = "integrity_check"
    }

    /// Reads the whole database for damage.
    func check(_ look: Look = .quick) throws(StoreProblem) {
        let findings: [String]
        do {
            findings = try queue.writeWithoutTransaction { db in
                // It reads all pages once, and would leave a full cache of them.
                try db.execute(sql: "PRAGMA cache_size = -\(Self.readerCache)")
                defer { try? db.execute(sql: "PRAGMA cache_size = -\(Self.writerCache)") }
                return try String.fetchAll(db, sql: "PRAGMA \(look.rawValue)(3)")
            }
        } catch {
            let problem = Self.problem(error, path)
            guard problem.reason == .damaged else { throw problem }
            throw StoreProblem(.damaged, at: path, "is damaged: \(problem.detail)")
        }
        guard findings == ["ok"] else {
            let detail = "is damaged: " + findings.joined(separator: "; ")
            throw StoreProblem(.damaged, at: path, detail)
        }
    }

    /// Closes the connection, once it is not in use.
    func close() throws {
        try ending.isOver.withLock { isOver in
            isOver = true
            try queue.close()
        }
    }

    /// Calls the closure with the connection unless it is closed: GRDB would give SQLite a freed
    /// one.
    private func use<Value>(_ body: () throws -> Value) throws(JournalError) -> Value {
        var result: Result<Value, any Error> = .failure(
            JournalError(.closed, "the connection is closed")
        )
        ending.isOver.withLock { isOver in
            if !isOver { result = Result { try body() } }
        }
        do {
            return try result.get()
        } catch {
            throw Self.journalError(error)
        }
    }

    /// Runs a transaction that takes the write lock at its beginning.
    ///
    /// The statements that begin and end it are kept compiled. If they were compiled each time, as
    /// by `inTransaction`, they would cost as much as a commit of 64 counters.
    func write<Value>(_ body: (Database) throws -> Value) throws(JournalError) -> Value {
        try use {
            try queue.writeWithoutTransaction { db in
                try db.cachedStatement(sql: "BEGIN IMMEDIATE").execute()
                do {
                    let value = try body(db)
                    try db.cachedStatement(sql: "COMMIT").execute()
                    return value
                } catch {
                    // Some errors, a full disk among them, have already rolled back. The first
                    // error is the one to report.
                    if db.isInsideTransaction { try? db.rollback() }
                    throw error
                }
            }
        }
    }

    /// Reads one state of the database.
    func read<Value>(_ body: (Database) throws -> Value) throws(JournalError) -> Value {
        try use { try queue.read(body) }
    }

    /// Runs a transaction like ``write(_:)``, for code that opens a store.
    func attempt<Value>(_ body: (Database) throws -> Value) throws(StoreProblem) -> Value {
        do throws(JournalError) {
            return try write(body)
        } catch {
            throw StoreProblem(error, path)
        }
    }

    /// Prevents the end of the last connection from deleting the log of transactions.
    func leaveLog() {
        queue.inDatabase { db in
            var isKept: Int32 = 1
            // The C border: SQLite reads one number (SQLite, "Standard File Control Opcodes").
            _ = sqlite3_file_control(
                db.sqliteConnection,
                "main",
                SQLITE_FCNTL_PERSIST_WAL,
                &isKept
            )
        }
    }

    static func journalError(_ error: any Error) -> JournalError {
        if let error = error as? JournalError { return error }
        guard let error = error as? DatabaseError else {
            return JournalError(.unusable, "\(error)")
        }
        let detail = error.message ?? "SQLite error \(error.extendedResultCode.rawValue)"
        // There is no room for the -shm. SQLite reports that as a failing disk.
        if error.extendedResultCode == .SQLITE_IOERR_SHMSIZE { return JournalError(.full, detail) }
        switch error.resultCode {
        case .SQLITE_BUSY, .SQLITE_LOCKED: return JournalError(.busy, detail)
        case .SQLITE_FULL: return JournalError(.full, detail)
        case .SQLITE_CORRUPT, .SQLITE_NOTADB: return JournalError(.damaged, detail)
        case .SQLITE_MISUSE: return JournalError(.closed, detail)
        default: return JournalError(.unusable, detail)
        }
    }

    static func problem(_ error: any Error, _ path: String) -> StoreProblem {
        if let problem = error as? StoreProblem { return problem }
        return StoreProblem(journalError(error), path)
    }
}

/// The secrets that outlast the process. They are only in the database, whose files only their
/// owner can read, and in copies of it.
enum StoreSecrets {
    /// The key of the enrolment challenges' codes, 32 bytes; drawn where there is none.
    static func enrolment(_ db: Database) throws -> [UInt8] {
        let fresh = Data(RandomBytes.make(count: 32))
        try db.execute(
            sql: "INSERT OR IGNORE INTO secrets (name, secret) VALUES ('enrolment', ?)",
            arguments: [fresh]
        )
        let select = "SELECT secret FROM secrets WHERE name = 'enrolment'"
        guard let secret = try Data.fetchOne(db, sql: select), secret.count == 32 else {
            throw JournalError(.damaged, "the secret of the enrolment challenges is not 32 bytes")
        }
        return Array(secret)
    }

    /// Has another one drawn: enrolment challenges from before are no longer good. A restored store
    /// may lack keys that it had, which could be enrolled again with such a challenge, with a
    /// counter of zero.
    static func forgetEnrolment(_ db: Database) throws {
        try db.execute(sql: "DELETE FROM secrets WHERE name = 'enrolment'")
    }
}
