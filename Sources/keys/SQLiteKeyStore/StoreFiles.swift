internal import Glibc
internal import KeyStore
internal import Synchronization

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
                throw StoreProblem(.replaced, path, "was deleted while it was opened")
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
