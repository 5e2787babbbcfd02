package import DeviceKey
internal import Signatures

/// The marks of erased keys, in the place of the key ids: see ErasureSecret.
package enum DatabaseMarks {
    /// The condition on the rows of `secrets` that are of marks.
    package static let areSecrets =
        "(name = '\(ErasureSecret.ownName)' OR name LIKE '\(ErasureSecret.ownName) %')"

    package static let secretsAsked = DatabaseStatement(
        "SELECT name, secret FROM secrets WHERE \(areSecrets)"
    )

    /// The condition for the row of a key, or of its mark.
    package static func ofKey(in dialect: TableDialect) -> String {
        """
         WHERE k.key_id = $1 OR (k.key_id \(dialect.ids("$2")) AND k.erased_under IS NOT NULL)
        ORDER BY k.deleted_at IS NULL LIMIT 1
        """
    }

    /// The values of ``ofKey(in:)``.
    package static func values(_ keyID: KeyID, _ secrets: ErasureSecrets) -> [StatementValue] {
        [.bytes(keyID.bytes), .manyBytes(secrets.marks(of: keyID).map(\.mark.bytes))]
    }

    /// Keeps a secret unless there is one with this name.
    package static func keep(_ secret: ErasureSecret, _ name: String) -> DatabaseStatement {
        DatabaseStatement(
            "INSERT INTO secrets (name, secret) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING",
            [.text(name), .bytes(secret.bytes)]
        )
    }

    /// The app of all erased keys.
    private static let app = DatabaseStatement(
        "INSERT INTO apps (app_id) VALUES ('') ON CONFLICT (app_id) DO NOTHING"
    )

    private static let publicKey = Array(P256PublicKey.ofErasedKeys.x963.dropFirst())

    /// The mark of a key that was erased elsewhere.
    private static func insert(
        _ mark: KeyID,
        _ name: String,
        at second: Int64
    ) -> DatabaseStatement {
        DatabaseStatement(
            """
            INSERT INTO keys (key_id, public_key, app, environment, is_imported, counter,
                counter_window, deleted_at, revision, erased_under)
            SELECT $1, $2, id, 1, false, 0, 0, $3, (SELECT revision FROM state), $4
            FROM apps WHERE app_id = ''
            ON CONFLICT (key_id) DO NOTHING
            """,
            [.bytes(mark.bytes), .bytes(publicKey), .number(max(second, 0)), .text(name)]
        )
    }

    /// Erases deleted keys, which have no receipts, renewals and chains any more.
    ///
    /// - doubles: rows of marks of the same keys from other stores, in whose place the keys' own
    ///   rows come.
    package static func erasure(
        of keys: [ErasedKey],
        doubles: [Int64],
        in dialect: TableDialect
    ) -> [DatabaseStatement] {
        let emptied = KeyColumns.furtherTables.map { table in
            DatabaseStatement(
                "DELETE FROM \(table) WHERE key \(dialect.numbers("$1"))",
                [.numbers(keys.map(\.row))]
            )
        }
        let marked = keys.map { key in
            DatabaseStatement(
                """
                UPDATE keys SET key_id = $2, public_key = $3,
                    app = (SELECT id FROM apps WHERE app_id = ''), environment = 1, platform = 1,
                    is_imported = false, counter = 0, counter_window = 0, enrolled_at = NULL,
                    last_used_at = NULL, revoked_at = NULL, context = NULL, erased_under = $4
                WHERE id = $1 AND deleted_at IS NOT NULL AND erased_under IS NULL
                """,
                [.number(key.row), .bytes(key.mark.bytes), .bytes(publicKey), .text(key.name)]
            )
        }
        return emptied + [
            DatabaseStatement(
                "UPDATE key_changes SET key_id = NULL WHERE key_id \(dialect.ids("$1"))",
                [.manyBytes(keys.map(\.keyID.bytes))]
            ), app,
            DatabaseStatement(
                "DELETE FROM keys WHERE id \(dialect.numbers("$1")) AND erased_under IS NOT NULL",
                [.numbers(doubles)]
            ),
        ] + marked
    }

    /// Stores the marks of keys that were erased elsewhere; returns those that were there.
    static func store(
        _ records: [KeyRecord],
        _ session: some TableSession
    ) throws(JournalError) -> Set<KeyID> {
        var statements = [type(of: session).nextRevision, app]
        let first = statements.count
        var secrets = try session.secrets()
        for record in records {
            guard case .erased(let second, let secret) = record.status else { continue }
            if secrets.name(of: secret) == nil {
                guard !secrets.isFull else { throw ErasureSecrets.full }
                // A store that has none yet goes on with this one.
                let name = secrets.isEmpty ? ErasureSecret.ownName : secret.foreignName
                try session.run([keep(secret, name)])
                secrets = try session.secrets()
            }
            guard let name = secrets.name(of: secret) else { continue }
            statements.append(insert(record.keyID, name, at: second))
        }
        let counts = try session.run(statements + type(of: session).notification)
        let known = zip(records, counts.dropFirst(first)).filter { $0.1 == 0 }
        return Set(known.map(\.0.keyID))
    }
}

/// A key that is to be erased.
package struct ErasedKey: Sendable {
    package let row: Int64
    package let keyID: KeyID
    /// The mark, and the name of its secret.
    package let mark: KeyID
    package let name: String

    package init(row: Int64, keyID: KeyID, mark: KeyID, name: String) {
        (self.row, self.keyID, self.mark, self.name) = (row, keyID, mark, name)
    }
}

extension StoredRow {
    /// A row of `secrets`.
    package func namedSecret() throws(JournalError) -> (name: String, secret: ErasureSecret) {
        guard let secret = try secret(1) else { throw damaged("the secret of marks is not there") }
        return (text(0) ?? "", secret)
    }

    /// The number of a row, and its key id.
    package func rowAndKeyID() throws(JournalError) -> (row: Int64, keyID: KeyID) {
        (try present(0), try keyID(1))
    }
}

extension TableSession {
    /// The secrets of marks.
    package func secrets() throws(JournalError) -> ErasureSecrets {
        let asked = try ask([DatabaseMarks.secretsAsked]) { (row) throws(JournalError) in
            try row.namedSecret()
        }
        return ErasureSecrets(asked.first ?? [])
    }

    /// The rows of those of these marks that are stored.
    private func stored(_ marks: [KeyID]) throws(JournalError) -> [KeyID: Int64] {
        guard !marks.isEmpty else { return [:] }
        let ids = Self.dialect.ids("$1")
        let found = try ask(
            "SELECT id, key_id FROM keys WHERE key_id \(ids) AND erased_under IS NOT NULL",
            [.manyBytes(marks.map(\.bytes))]
        ) { (row) throws(JournalError) in try row.rowAndKeyID() }
        return Dictionary(found.map { ($0.keyID, $0.row) }) { first, _ in first }
    }

    /// Erases some deleted keys.
    ///
    /// - beginning: the statements with which the transaction begins.
    /// - Returns: their rows; empty when none is left.
    package func eraseSome(_ beginning: [DatabaseStatement]) throws(JournalError) -> [Int64] {
        let found = try ask(
            """
            SELECT id, key_id FROM keys
            WHERE deleted_at IS NOT NULL AND erased_under IS NULL ORDER BY id LIMIT 1000
            """
        ) { (row) throws(JournalError) in try row.rowAndKeyID() }
        guard !found.isEmpty else { return [] }
        try run([DatabaseMarks.keep(.drawn(), ErasureSecret.ownName)])
        let secrets = try secrets()
        let marks = found.map { secrets.marks(of: $0.keyID) }
        let stored = try stored(marks.flatMap { $0.map(\.mark) })
        var (keys, doubles): ([ErasedKey], [Int64]) = ([], [])
        for ((row, keyID), marks) in zip(found, marks) {
            guard let own = marks.first else { continue }
            // Where another store has erased the key too, one mark is enough.
            let known = marks.filter { stored[$0.mark] != nil }
            doubles += known.compactMap { stored[$0.mark] }
            let (name, mark) = known.first ?? own
            keys.append(ErasedKey(row: row, keyID: keyID, mark: mark, name: name))
        }
        try run(beginning + DatabaseMarks.erasure(of: keys, doubles: doubles, in: Self.dialect))
        return keys.map(\.row)
    }

    /// The keys of a piece of the rows of which a mark is stored, and the row after which the next
    /// piece begins.
    func marked(after row: Int64) throws(JournalError) -> (keys: [KeyID], next: Int64?) {
        let piece = 1_000
        let secrets = try secrets()
        guard !secrets.isEmpty else { return ([], nil) }
        let found = try ask(
            "SELECT id, key_id FROM keys WHERE id > $1 AND deleted_at IS NULL ORDER BY id LIMIT $2",
            [.number(row), .number(Int64(piece))]
        ) { (row) throws(JournalError) in try row.rowAndKeyID() }
        let marks = found.map { secrets.marks(of: $0.keyID).map(\.mark) }
        let stored = try stored(marks.flatMap(\.self))
        let keys = zip(found, marks).filter { $0.1.contains { stored[$0] != nil } }.map(\.0.keyID)
        return (keys, found.count < piece ? nil : found.last?.row)
    }
}
