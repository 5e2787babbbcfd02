internal import GRDB
internal import Glibc
internal import KeyStore
internal import Synchronization

/// The file beside a database with the database's generation, so that an older copy, an empty file
/// or another store in its place is detected.
///
/// Four lines; the number has 20 digits, so that it can be raised in place without more room:
///
///     generation 00000000000000004711
///     store 6d0f…                         which store
///     database 2049:131                   the database's device and inode at the last start
///     log 2049:140                        the same of -wal; `-` after a clean stop
///
/// It is written after its transaction. So after a crash or a power cut it is older than the
/// database or equal to it, never ahead.
final class GenerationFile: Sendable {
    /// The suffix of the database's path.
    static let suffix = ".generation"
    private static let label = "generation "
    private static let digits = 20
    private static let lengthMax = 512

    /// The contents of the file.
    struct Record: Equatable, Sendable {
        var generation: Generation
        var database: FileIdentity?
        var log: FileIdentity?
    }

    private let path: String
    private let descriptor: Int32
    private let written: Mutex<Int64>

    /// Writes the file again, durably.
    init(database: String, _ record: Record) throws(StoreProblem) {
        path = database + Self.suffix
        let text = """
            \(Self.label)\(Self.number(record.generation.number))
            store \(record.generation.store)
            database \(record.database?.description ?? "-")
            log \(record.log?.description ?? "-")

            """
        // The new file replaces the old one as a whole.
        let draft = path + ".new"
        unlink(draft)
        let descriptor = try StoreFile.open(draft)
        self.descriptor = descriptor
        written = Mutex(record.generation.number)
        guard StoreFile.write(text, to: descriptor, at: 0), fsync(descriptor) == 0,
            rename(draft, path) == 0
        else {
            let problem = StoreFile.lastProblem(path, "can't be written")
            unlink(draft)
            Glibc.close(descriptor)
            throw problem
        }
        StoreFile.synchroniseFolder(of: path)
    }

    /// Opens the file to raise its number, if it is that of this store; `nil` when it is not.
    init?(raising database: String, of store: String) {
        path = database + Self.suffix
        guard let record = Self.record(ofDatabase: database), record.generation.store == store
        else { return nil }
        descriptor = Glibc.open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { return nil }
        written = Mutex(record.generation.number)
    }

    deinit { Glibc.close(descriptor) }

    /// Raises the number; a smaller one than before changes nothing.
    ///
    /// - Throws: `full` or `unusable`. The file then has a lower number than it could, and is still
    ///   correct.
    func raise(to number: Int64) throws(StoreProblem) {
        let isWritten = written.withLock { written in
            guard number > written else { return true }
            let offset = off_t(Self.label.utf8.count)
            let text = Self.number(number)
            guard StoreFile.write(text, to: descriptor, at: offset) else { return false }
            written = number
            return true
        }
        guard isWritten else { throw StoreFile.lastProblem(path, "can't be written") }
    }

    /// The contents of a database's file; `nil` when there is none, or it can't be read.
    static func record(ofDatabase database: String) -> Record? {
        let path = database + suffix
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { return nil }
        defer { Glibc.close(descriptor) }
        let bytes = [UInt8](unsafeUninitializedCapacity: lengthMax) { buffer, count in
            // At most the buffer's count is written.
            count = max(0, pread(descriptor, buffer.baseAddress, buffer.count, 0))
        }
        var values: [Substring: Substring] = [:]
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
            let words = line.split(separator: " ")
            if words.count == 2 { values[words[0]] = words[1] }
        }
        guard let number = values["generation"].flatMap({ Int64($0) }), number >= 0,
            let store = values["store"]
        else { return nil }
        return Record(
            generation: Generation(store: String(store), number: number),
            database: values["database"].flatMap { FileIdentity(text: $0) },
            log: values["log"].flatMap { FileIdentity(text: $0) }
        )
    }

    /// Whether there is a file, readable or not.
    static func exists(ofDatabase database: String) -> Bool { StoreFile.exists(database + suffix) }

    private static func number(_ number: Int64) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, digits - text.count)) + text
    }

}

/// The generation of a store: the store's identity, and a number that each transaction raises.
///
/// While the log of counters has entries, the number of the newest one is the generation; `state`
/// has the generation before the log. So a commit of counters writes no further pages for it.
struct Generation: Equatable, Sendable {
    /// Drawn when the database was created: 32 hexadecimal digits.
    let store: String
    let number: Int64

    /// The number of the next transaction, as SQL.
    static let next = """
        (SELECT max(generation, coalesce((SELECT max(id) FROM counter_log), 0)) + 1 FROM state)
        """

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
        try db.execute(sql: "UPDATE state SET generation = max(generation, ?)", arguments: [number])
    }
}

/// The identity of a file: its device and inode.
///
/// While a process has a file open, no other file has its identity.
struct FileIdentity: Equatable, Sendable, CustomStringConvertible {
    let device: UInt64
    let inode: UInt64
    /// The file's length when it was checked; no part of the identity.
    let length: Int64

    /// The file at a path, without following symbolic links; `nil` when there is none.
    init?(path: String) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        self.init(status)
    }

    init?(descriptor: Int32) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return nil }
        self.init(status)
    }

    private init(_ status: stat) {
        device = UInt64(truncatingIfNeeded: status.st_dev)
        inode = UInt64(truncatingIfNeeded: status.st_ino)
        length = Int64(status.st_size)
    }

    /// Reads ``description``.
    init?(text: some StringProtocol) {
        let words = text.split(separator: ":")
        guard words.count == 2, let device = UInt64(words[0]), let inode = UInt64(words[1]) else {
            return nil
        }
        self.device = device
        self.inode = inode
        length = 0
    }

    static func == (left: Self, right: Self) -> Bool {
        left.device == right.device && left.inode == right.inode
    }

    var description: String { "\(device):\(inode)" }
}

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
            return StoreProblem(.older, at: database, detail + "was used here")
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
            at: log,
            "belongs to the database that was here before, not to this \(database)"
        )
    }

    /// The fault of an open database; `nil` for none.
    static func problem(_ now: Generation, _ database: String) -> StoreProblem? {
        let file = database + GenerationFile.suffix
        guard let record = GenerationFile.record(ofDatabase: database) else {
            if GenerationFile.exists(ofDatabase: database) {
                return StoreProblem(.older, at: database, "may be older: \(file) can't be read")
            }
            // A database that was never used with such a file has no generation yet.
            guard now.number > 0 else { return nil }
            let detail = "may be an older copy: \(file), which says how far it had come, is missing"
            return StoreProblem(.older, at: database, detail)
        }
        guard record.generation.store == now.store else {
            return StoreProblem(.older, at: database, "is another store than the one that was here")
        }
        return now.number < record.generation.number ? olderCopy(now, record, at: database) : nil
    }

    static func olderCopy(
        _ now: Generation,
        _ record: GenerationFile.Record,
        at database: String
    ) -> StoreProblem {
        let detail =
            "is an older copy: generation \(now.number), and \(record.generation.number) was "
            + "reached here"
        return StoreProblem(.older, at: database, detail)
    }
}
