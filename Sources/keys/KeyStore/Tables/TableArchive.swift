package import DeviceKey

/// A store whose keys are in the tables, for the `keys` commands: all that is not specific to one
/// database. Its own parts are how a transaction runs, and how gateways learn of it.
package protocol TableArchive: KeyArchive {
    associatedtype Session: TableSession

    /// Reads one state; PostgreSQL reads one with each question.
    func query<Value>(
        _ body: (Session) throws(JournalError) -> Value
    ) throws(StoreProblem) -> Value

    /// Changes keys: SQLite in one transaction, PostgreSQL in one with each call of the session.
    func update<Value>(
        _ body: (Session) throws(JournalError) -> Value
    ) throws(StoreProblem) -> Value

    /// Notifies running gateways that keys have changed, where statements don't.
    func announce() throws(StoreProblem)
}

extension TableArchive {
    package func scan(
        _ filter: KeyFilter,
        after last: KeyID?,
        limit: Int
    ) throws(StoreProblem) -> KeyPage {
        let (condition, values) = filter.condition(from: 3)
        let statement = DatabaseStatement(
            """
            \(KeyColumns.selectRecord) WHERE k.key_id > $1 AND \(condition)
            ORDER BY k.key_id LIMIT $2
            """,
            // All key ids are 32 bytes, so all follow the empty one.
            [.bytes(last?.bytes ?? []), .number(Int64(limit))] + values
        )
        let page = try query { (session) throws(JournalError) in try session.records(statement) }
        return KeyPage(
            records: page.filter(filter.admits),
            next: page.count == limit ? page.last?.keyID : nil
        )
    }

    package func record(_ keyID: KeyID) throws(StoreProblem) -> KeyRecord? {
        try query { (session) throws(JournalError) in
            try session.records(
                DatabaseStatement(
                    KeyColumns.selectRecord + DatabaseMarks.ofKey(in: Session.dialect),
                    DatabaseMarks.values(keyID, try session.secrets())
                )
            ).first
        }
    }

    package func keyIDs(
        loggedAs name: String,
        deleted: KeyFilter.Deleted
    ) throws(StoreProblem) -> [KeyID] {
        let column = deleted == .included ? "erased_under" : "deleted_at"
        let page: Int64 = 10_000
        return try query { (session) throws(JournalError) in
            var found: [KeyID] = []
            var last: Int64? = 0
            while let row = last {
                let keys = try session.ask(
                    """
                    SELECT id, key_id FROM keys WHERE id > $1 AND \(column) IS NULL
                    ORDER BY id LIMIT $2
                    """,
                    [.number(row), .number(page)]
                ) { (row) throws(JournalError) in try row.rowAndKeyID() }
                found += keys.map(\.keyID).filter { $0.logName.hasPrefix(name) }
                last = keys.count < page ? nil : keys.last?.row
            }
            return found
        }
    }

    package func count() throws(StoreProblem) -> Int {
        try query { (session) throws(JournalError) in
            let sql = "SELECT count(*) FROM keys WHERE deleted_at IS NULL"
            let counts = try session.ask(sql) { (row) throws(JournalError) in try row.present(0) }
            return Int(counts.first ?? 0)
        }
    }

    package func identities(of keyIDs: [KeyID]) throws(StoreProblem) -> [KeyID: KeyIdentity] {
        try query { (session) throws(JournalError) in
            let secrets = try session.secrets()
            var identities: [KeyID: KeyIdentity] = [:]
            for piece in pieces(of: keyIDs) {
                let asked = piece.map { keyID in
                    DatabaseStatement.identity(of: keyID, secrets, in: Session.dialect)
                }
                let found = try session.ask(asked) { (row) throws(JournalError) in
                    try row.keyIdentity()
                }
                for (keyID, rows) in zip(piece, found) { identities[keyID] = rows.first }
            }
            return identities
        }
    }

    private func pieces<Item>(of items: [Item]) -> [ArraySlice<Item>] {
        stride(from: 0, to: items.count, by: Session.pieceCount).map { start in
            items[start...].prefix(Session.pieceCount)
        }
    }

    package func store(_ records: [KeyRecord]) throws(StoreProblem) -> [StoreOutcome] {
        let outcomes = try update { (session) throws(JournalError) in
            var outcomes: [StoreOutcome] = []
            for piece in pieces(of: records) {
                let marks = piece.filter(\.isErased)
                let known = marks.isEmpty ? [] : try DatabaseMarks.store(marks, session)
                let others = piece.filter { !$0.isErased }
                var stored = others.isEmpty ? [] : try session.store(others)[...]
                for record in piece {
                    if record.isErased {
                        outcomes.append(known.contains(record.keyID) ? .merged : .inserted)
                    } else if let other = stored.popFirst() {
                        outcomes.append(other)
                    }
                }
            }
            return outcomes
        }
        try announce()
        return outcomes
    }

    package func receiptCensus(at now: Int64) throws(StoreProblem) -> ReceiptCensus {
        try query { (session) throws(JournalError) in try session.census(at: now) }
    }

    package func changes(of keyID: KeyID?, limit: Int) throws(StoreProblem) -> [KeyChange] {
        try query { (session) throws(JournalError) in
            try session.lastChanges(of: keyID, limit: limit)
        }
    }

    package func deleteMarked(_ note: ChangeNote) throws(StoreProblem) {
        var last: Int64? = 0
        while let behind = last {
            let (keys, next) = try query { (session) throws(JournalError) in
                try session.marked(after: behind)
            }
            if !keys.isEmpty {
                try update { (session) throws(JournalError) in
                    for keyID in keys {
                        try session.change(KeyChange(.deleted, of: keyID, keys: 1, note))
                    }
                }
            }
            last = next
        }
        try announce()
    }
}

extension DatabaseStatement {
    /// Asks for what never changes of a key, or of its mark.
    package static func identity(
        of keyID: KeyID,
        _ secrets: ErasureSecrets,
        in dialect: TableDialect
    ) -> DatabaseStatement {
        DatabaseStatement(
            KeyColumns.selectIdentity + DatabaseMarks.ofKey(in: dialect),
            DatabaseMarks.values(keyID, secrets)
        )
    }
}

extension TableSession {
    /// The state of all receipts.
    package func census(at now: Int64) throws(JournalError) -> ReceiptCensus {
        var census = ReceiptCensus()
        _ = try ask([ReceiptColumns.census(at: now)]) { (row) throws(JournalError) in
            try census.add(row)
        }
        return census
    }
}
