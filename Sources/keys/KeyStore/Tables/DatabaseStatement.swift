// The tables of a store, once for every database: columns (`KeyColumns`, `ReceiptColumns`,
// `KeyChangeLog`), marks (`DatabaseMarks`), and the `keys` commands over them (`TableArchive`).
//
//     TableArchive ──statements──▶ TableSession (SQLite, PostgreSQL) ──rows──▶ StoredRow
//
// SQL is written in the part that both databases have; `TableDialect` has the rest. A statement
// that only one of them runs, such as one of a batch of the writer, lies with that database.

/// A statement with its values. Its parameters are `$1`, `$2` and so on.
package struct DatabaseStatement: Sendable {
    package let sql: String
    package let values: [StatementValue]

    package init(_ sql: String, _ values: [StatementValue] = []) {
        self.sql = sql
        self.values = values
    }
}

/// The value of a statement's parameter.
package enum StatementValue: Sendable {
    case number(Int64?)
    case flag(Bool)
    case bytes([UInt8]?)
    case text(String?)
    /// Compared by ``TableDialect/numbers(_:)``.
    case numbers([Int64?])
    /// Compared by ``TableDialect/ids(_:)``.
    case manyBytes([[UInt8]])
}

/// What the two databases write differently.
package enum TableDialect: Sendable {
    case postgreSQL, sqlite

    /// The condition that a flag is set, in the words of the indexes on flags.
    package func isSet(_ flag: String) -> String {
        switch self {
        case .postgreSQL: flag
        case .sqlite: "\(flag) = 1"
        }
    }

    /// The rest of a condition: the number is one of the parameter's.
    package func numbers(_ parameter: String) -> String {
        switch self {
        case .postgreSQL: "= ANY (\(parameter))"
        case .sqlite: "IN (SELECT value FROM json_each(\(parameter)))"
        }
    }

    /// The rest of a condition: the id is one of the parameter's. Each has 32 bytes; SQLite has no
    /// lists, and gets them one after the other.
    package func ids(_ parameter: String) -> String {
        switch self {
        case .postgreSQL: "= ANY (\(parameter))"
        case .sqlite:
            """
            IN (WITH RECURSIVE part (n) AS (
                    SELECT 0 UNION ALL
                    SELECT n + 1 FROM part WHERE (n + 2) * 32 <= length(\(parameter)))
                SELECT substr(\(parameter), n * 32 + 1, 32) FROM part)
            """
        }
    }
}

/// One row of an answer. Columns are read by their place, from 0.
package protocol StoredRow {
    /// `nil` for NULL.
    func number(_ column: Int) throws(JournalError) -> Int64?
    /// NULL is false.
    func flag(_ column: Int) -> Bool
    /// `nil` for NULL.
    func bytes(_ column: Int) -> [UInt8]?
    /// `nil` for NULL.
    func text(_ column: Int) -> String?
    /// What is stored can't be right.
    func damaged(_ detail: String) -> JournalError
}

extension StoredRow {
    package func damaged(_ detail: String) -> JournalError { JournalError(.damaged, detail) }

    /// A number of a column that is never NULL.
    package func present(_ column: Int) throws(JournalError) -> Int64 {
        guard let number = try number(column) else { throw damaged("column \(column) is NULL") }
        return number
    }

    /// A text for people, on one line: whatever could end the line, or command a terminal, is
    /// replaced, and at most 512 characters are read. Other processes have written it.
    package func line(_ column: Int) -> String {
        var line = ""
        for scalar in (text(column) ?? "").unicodeScalars.prefix(512) {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate:
                line.unicodeScalars.append("\u{FFFD}")
            default: line.unicodeScalars.append(scalar)
            }
        }
        return line
    }
}

/// Statements on the tables, with their answers.
package protocol TableSession {
    associatedtype Row: StoredRow

    static var dialect: TableDialect { get }
    /// The most keys of one ``store(_:)``, and of one question.
    static var pieceCount: Int { get }
    /// Begins the changes of a transaction. It locks the one row of the state until the transaction
    /// ends, so that revisions are committed in their order.
    static var nextRevision: DatabaseStatement { get }
    /// Ends the changes of a transaction that gateways have to read.
    static var notification: [DatabaseStatement] { get }

    /// Runs statements, in PostgreSQL as one transaction, and reads the rows of each.
    func ask<Value>(
        _ statements: [DatabaseStatement],
        _ read: (Row) throws(JournalError) -> Value
    ) throws(JournalError) -> [[Value]]

    /// Runs statements in the same way; returns the number of rows that each has changed.
    @discardableResult
    func run(_ statements: [DatabaseStatement]) throws(JournalError) -> [Int]

    /// Reads keys by a statement that begins with ``KeyColumns/selectRecord``.
    func records(_ statement: DatabaseStatement) throws(JournalError) -> [KeyRecord]

    /// The uses that are not in the rows of their keys yet.
    func lateUses() throws(JournalError) -> [Int64: CounterChange]

    /// Stores keys of which more than a mark is left.
    func store(_ records: [KeyRecord]) throws(JournalError) -> [StoreOutcome]
}

extension TableSession {
    /// The rows of one statement.
    package func ask<Value>(
        _ sql: String,
        _ values: [StatementValue] = [],
        reading read: (Row) throws(JournalError) -> Value
    ) throws(JournalError) -> [Value] {
        try ask([DatabaseStatement(sql, values)], read).first ?? []
    }
}
