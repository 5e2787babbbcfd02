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

    private static func entry(_ bytes: Span<UInt8>, at start: Int) -> CounterChange {
        CounterChange(
            row: Int64(bitPattern: number(bytes, start, 8)),
            counters: CounterState(
                highest: SignCounter(rawValue: UInt32(number(bytes, start + 8, 4))),
                seen: number(bytes, start + 12, 8)
            ),
            usedAt: Int64(bitPattern: number(bytes, start + 20, 8))
        )
    }

    private static func number(_ bytes: Span<UInt8>, _ start: Int, _ count: Int) -> UInt64 {
        var number: UInt64 = 0
        for index in start..<(start + count) { number = number << 8 | UInt64(bytes[index]) }
        return number
    }
}
