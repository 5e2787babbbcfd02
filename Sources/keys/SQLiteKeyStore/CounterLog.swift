internal import DeviceKey
internal import Foundation
internal import GRDB
internal import KeyStore

/// Counters that were written since the last merge into the rows of their keys: a table of blobs,
/// one for each transaction.
///
/// An entry of a blob is 28 bytes, big-endian:
///
///     offset  bytes  meaning
///     0       8       the key's row
///     8       4       highest counter
///     12      8       window
///     20      8       second of Unix time
///
/// Merging is idempotent and independent of the order of entries. Some keys have many entries.
enum CounterLog {
    private static let entryBytes = 28

    /// Adds the changes of a transaction, at least one. The entry's number is the generation.
    @discardableResult
    static func append(_ changes: [CounterChange], _ db: Database) throws -> Int64 {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(changes.count * entryBytes)
        for change in changes {
            append(UInt64(bitPattern: change.row), to: &bytes)
            append(change.counters.highest.rawValue, to: &bytes)
            append(change.counters.seen, to: &bytes)
            append(UInt64(bitPattern: change.usedAt), to: &bytes)
        }
        let sql = "INSERT INTO counter_log (id, entries) VALUES (\(Generation.next), ?)"
        let statement = try db.cachedStatement(sql: sql)
        statement.setUncheckedArguments([Data(bytes)])
        try statement.execute()
        return db.lastInsertedRowID
    }

    private static func append(_ number: some FixedWidthInteger, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }

    /// Entries in the log.
    static func count(_ db: Database) throws -> Int {
        let sql = "SELECT coalesce(sum(length(entries)), 0) FROM counter_log"
        return (try Int.fetchOne(db, sql: sql) ?? 0) / entryBytes
    }

    /// The number of the newest blob; 0 when the log is empty.
    static func last(_ db: Database) throws -> Int64 {
        try Int64.fetchOne(db, sql: "SELECT coalesce(max(id), 0) FROM counter_log") ?? 0
    }

    /// Removes the blobs up to a number.
    static func remove(through last: Int64, _ db: Database) throws {
        try Generation.keep(last, db)
        try db.execute(sql: "DELETE FROM counter_log WHERE id <= ?", arguments: [last])
    }

    /// All entries after one blob and up to another, one for each key, by row.
    static func entries(
        after first: Int64 = 0,
        through last: Int64 = .max,
        _ db: Database
    ) throws -> [Int64: CounterChange] {
        var merged: [Int64: CounterChange] = [:]
        let sql = "SELECT entries FROM counter_log WHERE id > ? AND id <= ?"
        let rows = try Row.fetchCursor(db, sql: sql, arguments: [first, last])
        while let row = try rows.next() {
            try row.withUnsafeData(atIndex: 0) { data in
                guard let data, data.count % entryBytes == 0 else {
                    throw JournalError(.damaged, "an entry of the log of counters is cut")
                }
                for start in stride(from: 0, to: data.count, by: entryBytes) {
                    let change = entry(data.span, at: start)
                    merged[change.row, default: change].merge(change)
                }
            }
        }
        return merged
    }

    /// Takes the entries of these rows out of the log.
    static func forget(_ rows: Set<Int64>, _ db: Database) throws {
        let blobs = try Row.fetchAll(db, sql: "SELECT id, entries FROM counter_log")
        let update = try db.cachedStatement(sql: "UPDATE counter_log SET entries = ? WHERE id = ?")
        for blob in blobs {
            let bytes: Data = blob[1]
            let starts = stride(from: 0, to: bytes.count, by: entryBytes)
            let kept = starts.filter { start in
                start + entryBytes > bytes.count
                    || !rows.contains(Int64(bitPattern: number(bytes.span, at: start, count: 8)))
            }
            guard kept.count < starts.underestimatedCount else { continue }
            var left = Data()
            for start in kept { left += bytes[start..<min(start + entryBytes, bytes.count)] }
            let id: Int64 = blob[0]
            try update.execute(arguments: [left, id])
        }
    }

    private static func entry(_ bytes: Span<UInt8>, at start: Int) -> CounterChange {
        CounterChange(
            row: Int64(bitPattern: number(bytes, at: start, count: 8)),
            counters: CounterState(
                highest: SignCounter(rawValue: UInt32(number(bytes, at: start + 8, count: 4))),
                seen: number(bytes, at: start + 12, count: 8)
            ),
            usedAt: Int64(bitPattern: number(bytes, at: start + 20, count: 8))
        )
    }

    private static func number(_ bytes: Span<UInt8>, at start: Int, count: Int) -> UInt64 {
        var number: UInt64 = 0
        for index in start..<(start + count) { number = number << 8 | UInt64(bytes[index]) }
        return number
    }
}

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
        WHERE id = ?1 AND erased_under IS NULL
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

/// The keys of a restored store whose counters may be too low.
///
/// When an older copy is accepted, that second is stored in `state.anchored_after`. A key that was
/// neither enrolled nor used after it has the counters of the copy: its anchor is lost. Its next
/// use needs a challenge. That use is written with its second like any use, so the key is held from
/// then on. The border is not before any second in the copy, so that a fast clock makes no key of
/// the copy look held.
struct CounterAnchors: Equatable, Sendable {
    /// Second of Unix time; 0 when no older copy was accepted.
    let second: Int64

    init(second: Int64) { self.second = second }

    /// Reads the current border.
    init(_ db: Database) throws {
        second = try Int64.fetchOne(db, sql: "SELECT anchored_after FROM state") ?? 0
    }

    /// - lastKnown: the last time the key was enrolled or used; `nil` for unknown.
    func anchor(lastKnown: Int64?) -> CounterAnchor {
        second == 0 || lastKnown ?? .min > second ? .held : .lost
    }

    /// Removes the anchor of all keys in the database.
    ///
    /// - now: second of Unix time. A key that is used within this second is held again.
    static func take(now: Int64, _ db: Database) throws {
        let logged = try CounterLog.entries(db).values.map(\.usedAt).max() ?? 0
        try db.execute(
            sql: """
                UPDATE state SET anchored_after = max(anchored_after, 1, ?1, ?2, (
                    SELECT coalesce(max(max(
                        coalesce(last_used_at, 0), coalesce(enrolled_at, 0))), 0) FROM keys))
                """,
            arguments: [now - 1, logged]
        )
    }

    /// The number of keys without an anchor.
    func lostCount(_ db: Database) throws -> Int {
        guard second > 0 else { return 0 }
        let newer = try CounterLog.entries(db)
        let rows = try Int64.fetchCursor(
            db,
            sql: """
                SELECT id FROM keys WHERE deleted_at IS NULL
                    AND max(coalesce(last_used_at, 0), coalesce(enrolled_at, 0)) <= ?
                """,
            arguments: [second]
        )
        var count = 0
        while let row = try rows.next() {
            if newer[row]?.usedAt ?? .min <= second { count += 1 }
        }
        return count
    }
}
