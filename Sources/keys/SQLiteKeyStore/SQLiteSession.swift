internal import DeviceKey
internal import Foundation
internal import GRDB
package import KeyStore
internal import Signatures

/// A row of SQLite's.
package struct SQLiteRow: StoredRow {
    private let row: Row

    init(_ row: Row) { self.row = row }

    package func number(_ column: Int) -> Int64? { row[column] }

    package func flag(_ column: Int) -> Bool {
        let flag: Bool? = row[column]
        return flag ?? false
    }

    package func bytes(_ column: Int) -> [UInt8]? {
        let data: Data? = row[column]
        return data.map { Array($0) }
    }

    package func text(_ column: Int) -> String? { row[column] }
}

extension DatabaseStatement {
    /// The statement with SQLite's sign of numbered parameters. With the other one SQLite numbers
    /// them in the order in which they come.
    fileprivate var text: String {
        let (from, to) = (UInt8(ascii: "$"), UInt8(ascii: "?"))
        return String(decoding: sql.utf8.map { $0 == from ? to : $0 }, as: UTF8.self)
    }

    fileprivate var arguments: StatementArguments {
        StatementArguments(
            values.map { (value) -> (any DatabaseValueConvertible)? in
                switch value {
                case .number(let number): number
                case .flag(let flag): flag
                case .bytes(let bytes): bytes.map { Data($0) }
                case .text(let text): text
                case .numbers(let numbers):
                    "[\(numbers.map { $0.map(String.init) ?? "null" }.joined(separator: ","))]"
                case .manyBytes(let all): Data(all.joined())
                }
            }
        )
    }
}

/// Statements on the tables, within a transaction.
package struct SQLiteSession: TableSession {
    private let db: Database

    init(_ db: Database) { self.db = db }

    package static var dialect: TableDialect { .sqlite }
    package static var pieceCount: Int { 1 << 20 }
    package static let nextRevision = DatabaseStatement(
        "UPDATE state SET revision = revision + 1, generation = \(Generation.next)"
    )
    /// A command calls the gateway: see `ChangeCall`.
    package static var notification: [DatabaseStatement] { [] }
    /// The revision of this transaction, as SQL.
    private static let revision = "(SELECT revision FROM state)"

    private func attempt<Value>(_ body: () throws -> Value) throws(JournalError) -> Value {
        do {
            return try body()
        } catch {
            throw KeyDatabase.journalError(error)
        }
    }

    package func ask<Value>(
        _ statements: [DatabaseStatement],
        _ read: (SQLiteRow) throws(JournalError) -> Value
    ) throws(JournalError) -> [[Value]] {
        try attempt {
            try statements.map { statement in
                let rows = try GRDB.Row.fetchCursor(
                    db.cachedStatement(sql: statement.text),
                    arguments: statement.arguments
                )
                var found: [Value] = []
                while let row = try rows.next() { found.append(try read(SQLiteRow(row))) }
                return found
            }
        }
    }

    @discardableResult
    package func run(_ statements: [DatabaseStatement]) throws(JournalError) -> [Int] {
        try attempt {
            try statements.map { statement in
                try db.cachedStatement(sql: statement.text)
                    .execute(arguments: statement.arguments)
                return db.changesCount
            }
        }
    }

    package func records(_ statement: DatabaseStatement) throws(JournalError) -> [KeyRecord] {
        let late = try lateUses()
        let anchors = try attempt { try CounterAnchors(db) }
        let found = try ask([statement]) { (row) throws(JournalError) in
            var record = try row.keyRecord()
            guard !record.isErased else { return record }
            if let change = late[try row.present(0)] {
                record.counters.merge(change.counters)
                // A deleted key has no times.
                if record.status.standing != .deleted {
                    record.lastUsedAt = max(record.lastUsedAt ?? 0, change.usedAt)
                }
            }
            let lastKnown = [record.enrolledAt, record.lastUsedAt].compactMap(\.self).max()
            record.anchor = anchors.anchor(lastKnown: lastKnown)
            return record
        }
        return found.first ?? []
    }

    /// The log of counters.
    package func lateUses() throws(JournalError) -> [Int64: CounterChange] {
        try attempt { try CounterLog.entries(db) }
    }

    // MARK: Storing

    /// Stores a key with its receipt unless its key id exists; returns whether it stored the key.
    ///
    /// - revision: as SQL.
    func insert(_ record: KeyRecord, revision: String) throws(JournalError) -> Bool {
        precondition(record.status.standing != .deleted, "SQLiteSession: a deleted key")
        let counts = try run([
            KeyColumns.insertApp(record.appID),
            DatabaseStatement(
                KeyColumns.insert(revision: revision) + " ON CONFLICT (key_id) DO NOTHING",
                KeyColumns.values(record)
            ),
        ])
        guard counts.last == 1 else { return false }
        let row = StatementValue.number(db.lastInsertedRowID)
        if let chain = record.chain {
            try run([
                DatabaseStatement(
                    """
                    INSERT INTO chains (key, serials, certificates_issued, listed)
                    VALUES ($1, $2, $3, $4)
                    """,
                    [row] + KeyColumns.values(chain)
                )
            ])
        }
        if let receipt = record.receipt {
            try run([
                DatabaseStatement(
                    "INSERT INTO receipts (key, receipt) VALUES ($1, $2)",
                    [row, .bytes(receipt)]
                ),
                DatabaseStatement(
                    """
                    INSERT INTO renewals (key, \(ReceiptColumns.names))
                    VALUES ($1, \(ReceiptColumns.parameters(from: 2)))
                    """,
                    [row] + ReceiptColumns.values(record.receiptState)
                ),
            ])
        }
        return true
    }

    package func store(_ records: [KeyRecord]) throws(JournalError) -> [StoreOutcome] {
        try run([Self.nextRevision])
        let marks = try KeyMarks(self)
        // In the order of the index, which is then written page after page; the first of two lines
        // of one key goes first.
        let prefixes = records.map(\.keyID.digest.firstWord)
        let order = records.indices.sorted { (prefixes[$0], $0) < (prefixes[$1], $1) }
        var outcomes = [StoreOutcome](repeating: .inserted, count: records.count)
        for index in order { outcomes[index] = try store(records[index], marks) }
        return outcomes
    }

    private func store(
        _ record: KeyRecord,
        _ marks: KeyMarks
    ) throws(JournalError) -> StoreOutcome {
        if let mark = try marks.stored(of: record.keyID, self) {
            guard record.status.standing != .deleted else { return .merged }
            return .differs(try identity(of: mark))
        }
        if case .deleted(let second) = record.status { return try bury(record, at: second) }
        if try insert(record, revision: Self.revision) { return .inserted }
        let stored = try identity(of: record.keyID)
        guard stored.difference(from: record) == nil else { return .differs(stored) }
        try merge(record, into: stored)
        return .merged
    }

    /// Stores a key as a deleted one.
    private func bury(_ record: KeyRecord, at second: Int64) throws(JournalError) -> StoreOutcome {
        var living = record
        living.status = .active
        let isNew = try insert(living, revision: Self.revision)
        if !isNew {
            let stored = try identity(of: record.keyID)
            guard stored.isOf(record) else { return .differs(stored) }
            guard stored.standing != .deleted else { return .merged }
        }
        try run(KeyColumns.delete(record.keyID, at: second))
        return isNew ? .inserted : .merged
    }

    private func identity(of keyID: KeyID) throws(JournalError) -> KeyIdentity {
        let sql = KeyColumns.selectIdentity + " WHERE k.key_id = $1"
        let found = try ask(sql, [.bytes(keyID.bytes)]) { (row) throws(JournalError) in
            try row.keyIdentity()
        }
        guard let identity = found.first else {
            throw JournalError(.damaged, "a key is in an index and nowhere else")
        }
        return identity
    }

    private static let merge = """
        UPDATE keys SET \(KeySchema.merge(counter: "$2", window: "$3")),
            enrolled_at = coalesce(enrolled_at, $4),
            last_used_at = nullif(max(coalesce(last_used_at, -1), coalesce($5, -1)), -1),
            revoked_at = coalesce(revoked_at, $6), context = coalesce(context, $7),
            revision = \(revision)
        WHERE key_id = $1
        """

    /// Adds a record's further facts to the stored key. What a list said of it comes with the
    /// revocation alone: where this store has revoked the key already, it may have another reason.
    private func merge(_ record: KeyRecord, into stored: KeyIdentity) throws(JournalError) {
        let key = StatementValue.bytes(record.keyID.bytes)
        var statements = [
            DatabaseStatement(
                Self.merge,
                [
                    key, .number(Int64(record.counters.highest.rawValue)),
                    .number(Int64(bitPattern: record.counters.seen)), .number(record.enrolledAt),
                    .number(record.lastUsedAt), .number(record.revokedAt), .bytes(record.context),
                ]
            )
        ]
        if let chain = record.chain {
            statements.append(
                DatabaseStatement(
                    """
                    INSERT INTO chains (key, serials, certificates_issued)
                    SELECT id, $2, $3 FROM keys WHERE key_id = $1 ON CONFLICT (key) DO NOTHING
                    """,
                    [key] + KeyColumns.values(chain).dropLast()
                )
            )
            if stored.standing == .active, record.revokedAt != nil, chain.listed != nil {
                statements.append(
                    DatabaseStatement(
                        """
                        UPDATE chains SET listed = $2
                        WHERE key = (SELECT id FROM keys WHERE key_id = $1)
                        """,
                        [key, .text(chain.listed)]
                    )
                )
            }
        }
        try run(statements)
    }

    /// Writes the changes of a renewal. A receipt replaces only an older one, with its outcome;
    /// another outcome replaces only an earlier one. So the order of two changes does not matter.
    func apply(_ change: ReceiptChange) throws(JournalError) {
        let (row, state) = (StatementValue.number(change.row), change.state)
        if let receipt = change.receipt {
            let taken = DatabaseStatement(
                """
                UPDATE renewals SET created_at = $2, not_before = $3, expires_at = $4,
                    risk_metric = $5, metric_at = $6
                WHERE key = $1 AND (created_at IS NULL OR created_at < $2)
                """,
                [row] + ReceiptColumns.values(state).prefix(5)
            )
            guard try run([taken]).first == 1 else { return }
            try run([
                DatabaseStatement(
                    "UPDATE receipts SET receipt = $2 WHERE key = $1",
                    [row, .bytes(receipt)]
                )
            ])
        }
        try run([
            DatabaseStatement(
                """
                UPDATE renewals SET tried_at = $2, outcome = $3, due_at = $4, asked = 0
                WHERE key = $1
                    AND ($5 OR tried_at IS NULL OR tried_at <= $2 OR tried_at > $2 + $6)
                """,
                [
                    row, .number(state.triedAt), .text(state.outcome?.rawValue),
                    .number(state.dueAt), .flag(change.receipt != nil),
                    .number(ReceiptChange.disorderMax),
                ]
            )
        ])
    }
}
