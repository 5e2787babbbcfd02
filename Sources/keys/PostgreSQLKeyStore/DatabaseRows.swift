internal import CPostgreSQL
package import KeyStore

/// Values as PostgreSQL gets them.
extension StatementValue {
    /// The number of its type in PostgreSQL (catalog `pg_type`; these never change).
    var type: Oid {
        switch self {
        case .number: 20
        case .flag: 16
        case .bytes: 17
        case .text: 25
        case .numbers: 1016
        case .manyBytes: 1001
        }
    }

    /// Whether the value is sent as bytes and not as text.
    var isBinary: Bool {
        switch self {
        case .number, .flag, .bytes, .text: true
        case .numbers, .manyBytes: false
        }
    }

    /// The sent bytes; `nil` for NULL. Text ends with a zero, which the database does not count.
    var encoded: [UInt8]? {
        switch self {
        case .number(let number): number.map { withUnsafeBytes(of: $0.bigEndian) { Array($0) } }
        case .flag(let flag): [flag ? 1 : 0]
        case .bytes(let bytes): bytes
        case .text(let text): text.map { Array($0.utf8) }
        case .numbers(let numbers):
            Array("{\(numbers.map { $0.map(String.init) ?? "NULL" }.joined(separator: ","))}".utf8)
                + [0]
        case .manyBytes(let all):
            Array("{\(all.map(Self.literal).joined(separator: ","))}".utf8) + [0]
        }
    }

    /// Bytes as an element of an array: `"\\x00ff"`.
    private static func literal(_ bytes: [UInt8]) -> String {
        let digits = bytes.map { byte in
            String(byte >> 4, radix: 16) + String(byte & 15, radix: 16)
        }
        return "\"\\\\x\(digits.joined())\""
    }
}

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
package struct DatabaseRow: StoredRow {
    fileprivate let rows: DatabaseRows
    fileprivate let row: Int32

    private func content(_ column: Int) -> UnsafeRawBufferPointer? {
        let (result, column) = (rows.result, Int32(column))
        guard PQgetisnull(result, row, column) == 0, let start = PQgetvalue(result, row, column)
        else { return nil }
        return UnsafeRawBufferPointer(start: start, count: Int(PQgetlength(result, row, column)))
    }

    /// A `bigint`; `nil` for NULL.
    package func number(_ column: Int) throws(JournalError) -> Int64? {
        guard let bytes = content(column) else { return nil }
        guard bytes.count == 8 else {
            throw JournalError.damaged("column \(column) has \(bytes.count) bytes and not 8")
        }
        return Int64(bitPattern: bytes.reduce(0 as UInt64) { $0 << 8 | UInt64($1) })
    }

    /// A `boolean`; NULL is false.
    package func flag(_ column: Int) -> Bool { content(column)?.first == 1 }

    /// A `bytea`; `nil` for NULL.
    package func bytes(_ column: Int) -> [UInt8]? { content(column).map { Array($0) } }

    /// A `text`; `nil` for NULL.
    package func text(_ column: Int) -> String? {
        content(column).map { String(decoding: $0, as: UTF8.self) }
    }

    package func damaged(_ detail: String) -> JournalError { .damaged(detail) }

    /// The name of a gateway; `nil` where it is none.
    func gatewayName(_ column: Int) -> String? {
        text(column).flatMap { GatewayName.isValid($0) ? $0 : nil }
    }
}
