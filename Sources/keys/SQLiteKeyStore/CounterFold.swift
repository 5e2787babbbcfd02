internal import DeviceKey
internal import GRDB
internal import KeyStore

/// Merges the log of counters into the rows of keys, piece by piece, between commits.
///
/// Lives on the writer's queue. When the log has grown to its limit, all its entries are read,
/// merged and sorted by row, so that rows of one page are written together. Each piece is its own
/// transaction. The last one removes the blobs that were read. After a crash in between the work is
/// simply repeated.
struct CounterFold {
    /// The default number of entries at which the log is merged: 7 MiB.
    static let entriesMax = 262_144
    /// The least keys of a piece: some milliseconds.
    static let pieceMin = 512

    /// Entries in the log, except those that are being merged.
    private var entryCount: Int
    private var changes: ArraySlice<CounterChange> = []
    /// The newest blob in `changes`; `nil` when no merge runs.
    private var last: Int64?

    private let entriesMax: Int

    init(entryCount: Int, entriesMax: Int) {
        self.entryCount = entryCount
        self.entriesMax = entriesMax
    }

    /// Whether there is work to do.
    var isDue: Bool { last != nil || entryCount >= entriesMax }

    /// This number of entries was added to the log.
    mutating func added(_ count: Int) { entryCount += count }

    /// Does a piece.
    ///
    /// - `added`: entries of the last commit. A piece has at least twice as many, so that a merge
    ///   ends before the log has grown to its limit again.
    mutating func fold(_ database: KeyDatabase, added: Int) throws(JournalError) {
        if last == nil {
            let (entries, newest) = try database.read { db in
                let newest = try CounterLog.last(db)
                return (try CounterLog.entries(through: newest, db), newest)
            }
            changes = entries.values.sorted { $0.row < $1.row }[...]
            last = newest
            entryCount = 0
        }
        guard let last else { return }
        let piece = changes.prefix(max(Self.pieceMin, added * 2))
        let isLast = piece.count == changes.count
        try database.write { db in
            try Self.update(piece, db)
            if isLast { try CounterLog.remove(through: last, db) }
        }
        changes = changes.dropFirst(piece.count)
        if isLast {
            changes = []
            self.last = nil
        }
    }

    private static let sql = """
        UPDATE keys SET \(KeySchema.merge(counter: "?2", window: "?3")),
            last_used_at = CASE WHEN deleted_at IS NULL
                THEN max(coalesce(last_used_at, 0), ?4) END
        WHERE id = ?1
        """

    private static func update(_ changes: ArraySlice<CounterChange>, _ db: Database) throws {
        let statement = try db.cachedStatement(sql: sql)
        for change in changes {
            let counter = Int64(change.counters.highest.rawValue)
            let window = Int64(bitPattern: change.counters.seen)
            statement.setUncheckedArguments([change.row, counter, window, change.usedAt])
            try statement.execute()
        }
    }
}
