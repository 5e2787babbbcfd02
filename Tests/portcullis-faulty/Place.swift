/// Where the process may end, or something fails.
enum Place: String {
    /// Before a transaction of the writer begins.
    case beforeCommit = "before-commit"
    /// Behind it: it is on disk, and nobody has been told.
    case afterCommit = "after-commit"
    /// Between the acknowledgement and the work that is left to do.
    case beforeSettling = "before-settling"
    /// In a write to the log of transactions (`-wal`): of a commit or of a fold of the counters.
    case logWrite = "log-write"
    /// In a write to the database's own file: of a checkpoint.
    case databaseWrite = "database-write"
    /// In a read of the store. The process goes on: that fails.
    case read
    /// Where a socket is to be watched. The process goes on: that fails.
    case registration
}
