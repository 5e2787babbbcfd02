internal import GRDB
internal import Glibc
internal import KeyStore

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
        if role == .copy { try examineLog() }
        if role == .store {
            if let problem = StoreAge.problemBeforeOpening(path) { throw problem }
        }
        let store: KeyAdministration
        switch role {
        case .store: store = try KeyAdministration(reading: path)
        case .copy: store = KeyAdministration(try KeyDatabase(reading: path))
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
                path,
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
            throw StoreProblem(.damaged, path, "\(error)")
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
            throw StoreProblem(.damaged, path, detail)
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
