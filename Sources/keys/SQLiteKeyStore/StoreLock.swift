internal import Glibc
internal import KeyStore
internal import Synchronization

/// The lock that keeps a second gateway from a database. It is held until it is released or this
/// object is deinitialised.
///
/// The file names the holder and the files that it has open (``StoreFiles``). Commands read it
/// without the lock.
final class StoreLock: Sendable {
    /// The suffix of the database's path.
    static let suffix = ".lock"
    /// The most bytes of a note: a process and four identities of at most 41 bytes.
    private static let noteMax = 256

    /// The descriptor of the lock; the successor can get it.
    let descriptor: Int32
    private let isReleased = Atomic(false)

    /// The pause between two tries to take the lock, and the most tries. A command that looks for a
    /// gateway has it for some microseconds (``holder(ofDatabase:)``).
    private static let pauseMilliseconds: Int32 = 5
    private static let triesMax = 20

    /// - Throws: `locked` when another gateway has it.
    init(database: String) throws(StoreProblem) {
        let descriptor = try StoreFile.open(database + Self.suffix)
        guard Self.isTaken(descriptor) else {
            let holder = Self.note(descriptor).map { "process \($0.process)" } ?? "a process"
            Glibc.close(descriptor)
            throw StoreProblem(.locked, at: database, "is used by another gateway, \(holder)")
        }
        ftruncate(descriptor, 0)
        self.descriptor = descriptor
    }

    private static func isTaken(_ descriptor: Int32) -> Bool {
        for _ in 0..<triesMax {
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return true }
            poll(nil, 0, pauseMilliseconds)
        }
        return false
    }

    /// The lock of another process, which has given its descriptor: both hold it until both have
    /// closed theirs (flock(2)).
    init(lent descriptor: Int32) { self.descriptor = descriptor }

    deinit { release() }

    /// Gives the lock back. Idempotent.
    func release() {
        guard !isReleased.exchange(true, ordering: .acquiringAndReleasing) else { return }
        ftruncate(descriptor, 0)
        Glibc.close(descriptor)
    }

    /// Leaves the lock and its note to the process that has its lease. Idempotent.
    func leave() {
        guard !isReleased.exchange(true, ordering: .acquiringAndReleasing) else { return }
        Glibc.close(descriptor)
    }

    /// Writes down the files that this process has open.
    ///
    /// - Throws: `full` or `unusable`.
    func note(_ files: StoreFiles, database: String) throws(StoreProblem) {
        let text = "\(getpid()) \(files.texts.joined(separator: " "))\n"
        // The note of another process of this gateway may be longer.
        guard StoreFile.write(text, to: descriptor, at: 0),
            ftruncate(descriptor, off_t(text.utf8.count)) == 0
        else {
            let path = database + Self.suffix
            throw StoreFile.lastProblem(path, "can't be written")
        }
    }

    private struct Note {
        let process: String
        let files: [String]
    }

    private static func note(_ descriptor: Int32) -> Note? {
        let text = [UInt8](unsafeUninitializedCapacity: noteMax) { buffer, count in
            // At most the buffer's count is written.
            count = max(0, pread(descriptor, buffer.baseAddress, buffer.count, 0))
        }
        let words = String(decoding: text, as: UTF8.self).split { $0 == " " || $0 == "\n" }
        guard words.count == 1 + StoreFiles.suffixes.count else { return nil }
        return Note(process: String(words[0]), files: words.dropFirst().map(String.init))
    }

    /// The known facts of a gateway that runs on a database.
    struct Holder {
        /// Its process id; `nil` while it starts or stops.
        let process: String?
        /// The identities of its files; empty while it starts or stops.
        let files: [String]

        var name: String { process.map { "process \($0)" } ?? "still starting" }
    }

    /// The gateway that runs on a database; `nil` when there is none.
    static func holder(ofDatabase database: String) -> Holder? {
        let descriptor = Glibc.open(database + suffix, O_RDONLY | O_CLOEXEC)
        // A lock that can't be opened may be held.
        guard descriptor >= 0 else {
            return errno == ENOENT ? nil : Holder(process: nil, files: [])
        }
        // Closing releases the lock, if the test below has taken it.
        defer { Glibc.close(descriptor) }
        // The note of a gateway that crashed means nothing: its lock is free.
        guard flock(descriptor, LOCK_SH | LOCK_NB) != 0 else { return nil }
        let note = note(descriptor)
        return Holder(process: note?.process, files: note?.files ?? [])
    }
}

/// The files that a gateway has open, compared with those at their paths.
///
/// When its files are moved, deleted or replaced, SQLite continues with the open ones ("How To
/// Corrupt An SQLite Database File", section 4.1). Commands would then open other files, and the
/// gateway would not see their changes. So the gateway writes and answers nothing until the paths
/// lead to the same files again.
final class StoreFiles: Sendable {
    /// The suffixes of the database's path, in the order in which differences are reported.
    static let suffixes = ["", logSuffix, indexSuffix, StoreLock.suffix]
    private static let logSuffix = "-wal"
    private static let indexSuffix = "-shm"

    private struct File {
        let suffix: String
        let path: String
        let identity: FileIdentity
    }

    private let files: [File]
    /// The greatest length of the index of the log of transactions so far. SQLite maps it, so
    /// access to a truncated part would end the process. SQLite itself never shortens it while it
    /// is in use.
    private let indexLength = Atomic<Int64>(0)

    /// Notes the files of a database that is open and has been written.
    init(database: String) throws(StoreProblem) {
        var files: [File] = []
        for suffix in Self.suffixes {
            let path = database + suffix
            guard let identity = FileIdentity(path: path) else {
                throw StoreProblem(.replaced, at: path, "was deleted while it was opened")
            }
            files.append(File(suffix: suffix, path: path, identity: identity))
        }
        self.files = files
    }

    /// The identities that others compare, one for each suffix.
    var texts: [String] { files.map(\.identity.description) }

    func record(_ generation: Generation) -> GenerationFile.Record {
        let database = files.first { $0.suffix.isEmpty }?.identity
        let log = files.first { $0.suffix == Self.logSuffix }?.identity
        return GenerationFile.Record(generation: generation, database: database, log: log)
    }

    /// Whether the log of transactions at its path is the open one.
    var ownsLog: Bool {
        files.allSatisfy {
            $0.suffix != Self.logSuffix || FileIdentity(path: $0.path) == $0.identity
        }
    }

    /// - Throws: `replaced`, with the first file that is another or is missing.
    func check() throws(JournalError) {
        if let difference { throw JournalError(.replaced, difference) }
    }

    /// The first file that is another or is missing, and its state; `nil` when all are the same.
    var difference: String? {
        for file in files {
            guard let now = FileIdentity(path: file.path), now == file.identity else {
                return "\(file.path) was deleted or replaced"
            }
            guard file.suffix == Self.indexSuffix else { continue }
            let length = indexLength.load(ordering: .relaxed)
            guard now.length >= length else {
                // Zeros are no index, and SQLite makes a new one from the log. By its path, since
                // closing a descriptor of the file would release the locks that SQLite holds on it.
                let isMended = truncate(file.path, off_t(length)) == 0
                return "\(file.path) was cut" + (isMended ? " and is made anew" : "")
            }
            indexLength.max(now.length, ordering: .relaxed)
        }
        return nil
    }

    /// The file that a command would open instead of one of these; `nil` when all are the same.
    static func difference(_ texts: [String], _ database: String) -> String? {
        for (suffix, text) in zip(suffixes, texts)
        where FileIdentity(path: database + suffix)?.description != text {
            return database + suffix
        }
        return nil
    }
}
