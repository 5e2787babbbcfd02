internal import CPostgreSQL

/// The value of a statement's parameter.
enum DatabaseValue {
    case number(Int64?)
    case flag(Bool)
    case bytes([UInt8]?)
    case text(String?)
    case numbers([Int64?])
    case manyBytes([[UInt8]])

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

/// A statement with its values. Its parameters are `$1`, `$2` and so on.
struct DatabaseStatement {
    let sql: String
    let values: [DatabaseValue]

    init(_ sql: String, _ values: [DatabaseValue] = []) {
        self.sql = sql
        self.values = values
    }
}
