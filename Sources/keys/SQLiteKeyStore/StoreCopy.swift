internal import GRDB
internal import Glibc
internal import KeyCatalog

/// A whole, compact copy of a database in a new file of mode 0600.
///
/// SQLite's `VACUUM INTO`, which reads one state of the database while others write, its log of
/// transactions included.
enum StoreCopy {
    /// - file: must not exist. What was written of it is removed when the copy fails.
    static func make(of database: KeyDatabase, to file: String) throws(StoreProblem) {
        guard !StoreFile.exists(file) else {
            throw StoreProblem(.occupied, file, "exists already; nothing was written")
        }
        try StoreFile.create(file)
        do {
            try database.queue.writeWithoutTransaction { db in
                try db.execute(sql: "VACUUM INTO ?", arguments: [file])
            }
        } catch {
            unlink(file)
            let problem = KeyDatabase.problem(error, file)
            guard problem.reason != .damaged else {
                throw StoreProblem(.damaged, database.path, "is damaged: \(problem.detail)")
            }
            throw problem
        }
        try synchronise(file)
    }

    /// Makes what is in a file survive a power cut.
    static func synchronise(_ file: String) throws(StoreProblem) {
        let descriptor = try StoreFile.open(file)
        defer { Glibc.close(descriptor) }
        guard fsync(descriptor) == 0 else {
            throw StoreProblem(.unusable, file, "can't be written: \(StoreFile.lastError)")
        }
    }
}
