internal import DeviceKey
internal import GRDB
internal import KeyStore

/// Brings the rows of keys up to date with the log of counters, piece by piece, between commits.
///
/// Lives on the writer's queue. When the log has grown to its limit, all its entries are read,
/// merged and put in the order of the rows, so that those that share a page are written together;
/// each piece is a transaction of its own. The last one removes the blobs that were read. A crash
/// in between costs nothing but to do it again.
struct CounterFold {
    /// Entries at which the log is folded by default: 7 MiB.
    static let entriesMax = 262_144
    /// Keys of a piece at least: some milliseconds.
    static let pieceMin = 512

    /// Entries in the log, those that are being folded left out.
    private var entryCount: Int
    private var changes: ArraySlice<CounterChange> = []
    /// The newest blob that `changes` comes from; `nil` when nothing is being folded.
    private var last: Int64?

    private let entriesMax: Int

    init(entryCount: Int, entriesMax: Int) {
        self.entryCount = entryCount
        self.entriesMax = entriesMax
    }

    /// Whether there is something to do.
    var isDue: Bool { last != nil || entryCount >= entriesMax }

    /// This number of entries was added to the log.
    mutating func added(_ count: Int) { entryCount += count }

    /// Does a piece.
    ///
    /// - `added`: entries of the last commit. A piece is at least twice as many, so that a
    ///   fold is over before the log has grown to its limit again.
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
