internal import CPostgreSQL
internal import KeyStore

/// The rows in a statement's answer.
final class DatabaseRows: RandomAccessCollection {
    fileprivate let result: OpaquePointer

    /// - result: freed with this object.
    init(_ result: OpaquePointer) { self.result = result }

    deinit { PQclear(result) }

    var startIndex: Int { 0 }
    var endIndex: Int { Int(PQntuples(result)) }
    subscript(row: Int) -> DatabaseRow { DatabaseRow(rows: self, row: Int32(row)) }

    /// The number of rows that a statement without an answer has written.
    var changedCount: Int { Int(String(cString: PQcmdTuples(result))) ?? 0 }
}

/// One row. Columns are read by their place, from 0. Where there is no such row, all are NULL.
struct DatabaseRow {
    fileprivate let rows: DatabaseRows
    fileprivate let row: Int32

    private func content(_ column: Int) -> UnsafeRawBufferPointer? {
        let (result, column) = (rows.result, Int32(column))
        guard PQgetisnull(result, row, column) == 0, let start = PQgetvalue(result, row, column)
        else { return nil }
        return UnsafeRawBufferPointer(start: start, count: Int(PQgetlength(result, row, column)))
    }

    /// A `bigint`; `nil` for NULL.
    func number(_ column: Int) throws(JournalError) -> Int64? {
        guard let bytes = content(column) else { return nil }
        guard bytes.count == 8 else {
            throw JournalError.damaged("column \(column) has \(bytes.count) bytes and not 8")
        }
        return Int64(bitPattern: bytes.reduce(0 as UInt64) { $0 << 8 | UInt64($1) })
    }

    /// A `bigint` of a column that is never NULL.
    func present(_ column: Int) throws(JournalError) -> Int64 {
        guard let number = try number(column) else {
            throw JournalError.damaged("column \(column) is NULL")
        }
        return number
    }

    /// A `boolean`; NULL is false.
    func flag(_ column: Int) -> Bool { content(column)?.first == 1 }

    /// A `bytea`; `nil` for NULL.
    func bytes(_ column: Int) -> [UInt8]? { content(column).map { Array($0) } }

    /// A `text`; `nil` for NULL.
    func text(_ column: Int) -> String? {
        content(column).map { String(decoding: $0, as: UTF8.self) }
    }
}
