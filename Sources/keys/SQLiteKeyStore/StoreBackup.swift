internal import GRDB
internal import Glibc
package import KeyStore

/// Copies the database of a store into a file, beside a running gateway or without one.
package enum StoreBackup {
    /// The contents of the copy.
    package struct Report: Sendable {
        /// The number of stored keys, without deleted ones.
        package let keys: Int
        package let generation: Int64
        package let bytes: Int64
    }

    /// Writes the copy, durably. A file with that name appears only when it is whole.
    ///
    /// A running gateway first writes the counters of all requests that it has admitted so far.
    /// Checked in this order: that the name is free; that the store can be read; that the gateway
    /// has written; that there is room; that the copy is whole.
    package static func make(ofStore path: String, to file: String) throws(StoreProblem) -> Report {
        guard !StoreFile.exists(file) else {
            throw StoreProblem(.occupied, file, "exists already; nothing was written")
        }
        let store = try KeyAdministration(reading: path)
        try write(store.database.path)
        let draft = "\(file).\(getpid()).part"
        try StoreCopy.make(of: store.database, to: draft)
        defer { unlink(draft) }
        try store.close()
        let report = try report(draft)
        // Unlike a rename, a link replaces no other file.
        guard link(draft, file) == 0 else {
            throw StoreProblem(
                errno == EEXIST ? .occupied : .unusable,
                file,
                "can't be made: \(StoreFile.lastError)"
            )
        }
        StoreFile.synchroniseFolder(of: file)
        return report
    }

    private static func write(_ database: String) throws(StoreProblem) {
        switch ChangeCall.write(database: database) {
        case .nobody, .answered(.seen): return
        case .answered(.unreadable(let detail)), .answered(.replaced(let detail)),
            .unheard(let detail):
            let text = "has a gateway that does not write what waits: \(detail)"
            throw StoreProblem(.gatewayNotTold, database, text)
        }
    }

    private static func report(_ draft: String) throws(StoreProblem) -> Report {
        let copy = KeyAdministration(try KeyDatabase(reading: draft))
        try copy.database.check()
        let report = Report(
            keys: try copy.count(),
            generation: try copy.read { try Generation.current($0).number },
            bytes: FileIdentity(path: draft)?.length ?? 0
        )
        try copy.close()
        return report
    }
}

/// A whole, compact copy of a database in a new file of mode 0600.
///
/// It uses SQLite's `VACUUM INTO`, which reads one state of the database while others write,
/// including its log of transactions.
enum StoreCopy {
    /// - file: must not exist. The written part is removed when the copy fails.
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

    /// Makes the contents of a file survive a power cut.
    static func synchronise(_ file: String) throws(StoreProblem) {
        let descriptor = try StoreFile.open(file)
        defer { Glibc.close(descriptor) }
        guard fsync(descriptor) == 0 else { throw StoreFile.lastProblem(file, "can't be written") }
    }
}
