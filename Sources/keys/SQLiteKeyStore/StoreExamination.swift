internal import GRDB
internal import GRDBSQLite
internal import Glibc
package import KeyStore

/// The findings of `store check` about a database. It changes nothing.
package struct StoreExamination: Sendable {
    /// One finding.
    package struct Finding: Hashable, Sendable {
        /// The raw value is the word before the finding.
        package enum Weight: String, Sendable {
            case fine = "ok"
            case warning
            /// A start or a restore refuses the database, or its contents can't be right.
            case problem
        }

        package let weight: Weight
        package let text: String
    }

    /// Whether the database is the store of a gateway, or a copy that no gateway uses yet.
    package enum Role: Sendable { case store, copy }

    package private(set) var findings: [Finding] = []
    private let path: String
    private let role: Role

    /// Whether there is nothing worse than a warning.
    package var isGood: Bool { !findings.contains { $0.weight == .problem } }

    /// Checks: the start's checks before it opens the database; the tables' version; damage,
    /// indexes included; that all stored data can be read; the log of counters; the generation;
    /// permissions; the disk. After the first failure it skips the checks that depend on it.
    package init(of path: String, as role: Role) {
        self.path = StoreFile.resolved(path)
        self.role = role
        do throws(StoreProblem) {
            try examine()
        } catch {
            add(.problem, "\(error)")
        }
        examinePermissions()
        examineDisk()
    }

    private mutating func add(_ weight: Finding.Weight, _ text: String) {
        findings.append(Finding(weight: weight, text: text))
    }

    private mutating func examine() throws(StoreProblem) {
        let store: KeyAdministration
        switch role {
        case .store:
            if let problem = StoreAge.problemBeforeOpening(path) { throw problem }
            store = try KeyAdministration(reading: path)
        case .copy:
            try examineLog()
            store = KeyAdministration(try KeyDatabase(reading: path))
        }
        try store.database.check(.whole)
        add(.fine, "no damage; tables of version \(KeySchema.version)")
        try examineContent(store)
        try examineGeneration(store)
        try store.close()
    }

    /// A copy of the file alone lacks the last changes, and maybe all, if the log had not been
    /// merged into the database. Checked before the copy is opened, which creates a log.
    private mutating func examineLog() throws(StoreProblem) {
        guard let length = FileIdentity(path: path)?.length,
            !StoreFile.exists(path + "-wal"), isWriteAhead || length == 0
        else { return }
        let advice = "make copies with portcullis store backup"
        // A database has its first page from the beginning, and its tables later.
        guard length > Self.firstPage else {
            throw StoreProblem(
                .incomplete,
                at: path,
                "has no tables: it is a copy without its log (-wal), or was never used"
            )
        }
        add(
            .warning,
            "a copy of the database's file without its log (-wal): if a gateway used it, what was "
                + "written last is missing; \(advice)"
        )
    }

    /// Bytes of a database without a table.
    private static let firstPage: Int64 = 4_096

    /// Whether the file's header says that it has a log beside it (SQLite's file format §1.3.3).
    private var isWriteAhead: Bool {
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { Glibc.close(descriptor) }
        var byte: UInt8 = 0
        return pread(descriptor, &byte, 1, 18) == 1 && byte == 2
    }

    private mutating func examineContent(_ store: KeyAdministration) throws(StoreProblem) {
        var (revoked, count) = (0, 0)
        do {
            try store.forEach { record in
                count += 1
                if record.status != .active { revoked += 1 }
            }
        } catch let problem as StoreProblem {
            throw problem
        } catch {
            throw StoreProblem(.damaged, at: path, "\(error)")
        }
        let (entries, strays, broken, lost) = try store.read { db in
            let rows = try CounterLog.entries(db).keys
            let strays = try rows.filter { row in
                try Int.fetchOne(db, sql: "SELECT 1 FROM keys WHERE id = ?", arguments: [row])
                    == nil
            }
            let broken = try Row.fetchAll(db, sql: "PRAGMA foreign_key_check").count
            let lost = try CounterAnchors(db).lostCount(db)
            return (rows.count, strays.count, broken, lost)
        }
        add(.fine, "keys that can be read: \(count), of them revoked: \(revoked)")
        guard strays == 0, broken == 0 else {
            let detail = "has counters without a key: \(strays), and rows without theirs: \(broken)"
            throw StoreProblem(.damaged, at: path, detail)
        }
        add(.fine, "the log of counters is whole, keys in it: \(entries)")
        if lost > 0 {
            add(
                .warning,
                "keys with the counters of an older copy: \(lost); each is good again with its "
                    + "next challenge"
            )
        }
    }

    private mutating func examineGeneration(_ store: KeyAdministration) throws(StoreProblem) {
        let now = try store.read { try Generation.current($0) }
        switch role {
        case .copy: add(.fine, "a copy of store \(now.store), generation \(now.number)")
        case .store:
            if let problem = StoreAge.problem(now, path) { throw problem }
            let user = StoreLock.holder(ofDatabase: path).map { "; used by \($0.name)" }
            add(.fine, "the newest, generation \(now.number)\(user ?? "; no gateway uses it")")
        }
    }

    private mutating func examinePermissions() {
        for suffix in ["", "-wal", "-shm"] {
            var status = stat()
            guard stat(path + suffix, &status) == 0, status.st_mode & 0o077 != 0 else { continue }
            let file = path + suffix
            add(.warning, "others can use \(file), which has secrets; chmod 600 \(file)")
        }
    }

    private mutating func examineDisk() {
        var disk = statvfs()
        guard let length = FileIdentity(path: path)?.length,
            statvfs(StoreFile.folder(of: path), &disk) == 0
        else { return }
        let (free, overflow) = UInt64(disk.f_bavail).multipliedReportingOverflow(
            by: UInt64(disk.f_frsize)
        )
        let need = UInt64(max(length, 0)) + Self.roomMin
        guard !overflow, free < need else { return }
        let text = "the disk has \(free >> 20) MiB left, and a copy with some days of growth takes "
        add(.warning, text + "\(need >> 20) MiB; make room")
    }

    /// The room that a copy needs besides: the log of transactions grows by it while a copy is
    /// made.
    private static let roomMin: UInt64 = 64 << 20
}

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
    /// that its log is its own; that it is ours and of this version; that it is not damaged;
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
        else {
            return StoreProblem(.damaged, at: path, "is damaged: it can't be read as a database")
        }
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
            return StoreProblem(.damaged, at: path, "is damaged: \(findings)")
        }
        // A database without tables has no generation: the statement fails.
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
