internal import Cryptography
internal import DeviceKey
package import KeyStore

/// The marks of erased keys, in the place of the key ids: see ErasureSecret.
enum DatabaseMarks {
    /// The condition on the rows of `secrets` that are of marks.
    static let areSecrets =
        "(name = '\(ErasureSecret.ownName)' OR name LIKE '\(ErasureSecret.ownName) %')"

    static let secretsAsked = DatabaseStatement(
        "SELECT name, secret FROM secrets WHERE \(areSecrets)"
    )

    static func secrets(_ rows: DatabaseRows) throws(JournalError) -> ErasureSecrets {
        ErasureSecrets(
            try rows.map { (row) throws(JournalError) in
                guard let secret = try KeyColumns.secret(row, 1) else {
                    throw JournalError.damaged("the secret of marks is not there")
                }
                return (row.text(0) ?? "", secret)
            }
        )
    }

    private static let isOfKey =
        "k.key_id = $1 OR (k.key_id = ANY ($2) AND k.erased_under IS NOT NULL)"

    /// The condition for the row of a key, or of its mark.
    static let ofKey = " WHERE \(isOfKey) ORDER BY k.deleted_at IS NULL LIMIT 1"

    /// The values of ``ofKey``.
    static func values(_ keyID: KeyID, _ secrets: ErasureSecrets) -> [DatabaseValue] {
        [.bytes(keyID.bytes), .manyBytes(secrets.marks(of: keyID).map(\.mark.bytes))]
    }

    /// The row of a key that was to be enrolled. Where the key was erased in that moment, its new
    /// row had waited for the erasure, and did not see it. It is deleted here.
    static func enrolled(_ keyID: KeyID, _ secrets: ErasureSecrets) -> DatabaseStatement {
        DatabaseStatement(
            """
            WITH late AS (
                UPDATE keys k SET \(PostgreSQLKeyArchive.deletionOf("e.deleted_at")) FROM keys e
                WHERE k.key_id = $1 AND k.deleted_at IS NULL AND e.key_id = ANY ($2)
                    AND e.erased_under IS NOT NULL
            )
            \(KeyColumns.select)\(ofKey)
            """,
            values(keyID, secrets)
        )
    }

    /// Erases deleted keys, which have no receipts, renewals and chains any more.
    ///
    /// - doubles: rows of marks of the same keys from other stores, in whose place the keys' own
    ///   rows come.
    static func erasure(
        of keys: [ErasedKey],
        doubles: [Int64]
    ) -> [DatabaseStatement] {
        let rows = DatabaseValue.numbers(keys.map(\.row))
        let emptied = ["receipts", "renewals", "chains"].map { table in
            DatabaseStatement("DELETE FROM \(table) WHERE key = ANY ($1)", [rows])
        }
        let names = Set(keys.map(\.name)).sorted()
        let marked = names.map { name in
            let keys = keys.filter { $0.name == name }
            return DatabaseStatement(
                """
                UPDATE keys k SET key_id = m.mark, public_key = $3,
                    app = (SELECT id FROM apps WHERE app_id = ''), environment = 1, platform = 1,
                    is_imported = false, counter = 0, counter_window = 0, enrolled_at = NULL,
                    last_used_at = NULL, revoked_at = NULL, context = NULL, erased_under = $4
                FROM unnest($1::bigint[], $2::bytea[]) AS m (key, mark)
                WHERE k.id = m.key AND k.deleted_at IS NOT NULL AND k.erased_under IS NULL
                """,
                [
                    .numbers(keys.map(\.row)), .manyBytes(keys.map(\.mark.bytes)),
                    .bytes(publicKey), .text(name),
                ]
            )
        }
        return emptied + [
            DatabaseStatement(
                "UPDATE key_changes SET key_id = NULL WHERE key_id = ANY ($1)",
                [.manyBytes(keys.map(\.keyID.bytes))]
            ),
            app,
            DatabaseStatement(
                "DELETE FROM keys WHERE id = ANY ($1) AND erased_under IS NOT NULL",
                [.numbers(doubles.map { $0 })]
            ),
        ] + marked
    }

    /// The app of all erased keys.
    static let app = DatabaseStatement(
        "INSERT INTO apps (app_id) VALUES ('') ON CONFLICT (app_id) DO NOTHING"
    )

    static let publicKey = Array(P256PublicKey.ofErasedKeys.x963.dropFirst())

    /// The mark of a key that was erased elsewhere. Answers a row if it was stored.
    static func insert(_ mark: KeyID, _ name: String, at second: Int64) -> DatabaseStatement {
        DatabaseStatement(
            """
            INSERT INTO keys (key_id, public_key, app, environment, is_imported, counter,
                counter_window, deleted_at, revision, erased_under)
            SELECT $1, $2, id, 1, false, 0, 0, $3, (SELECT revision FROM state), $4
            FROM apps WHERE app_id = ''
            ON CONFLICT (key_id) DO NOTHING RETURNING id
            """,
            [.bytes(mark.bytes), .bytes(publicKey), .number(max(second, 0)), .text(name)]
        )
    }

    /// Keeps a secret unless there is one with this name.
    static func keep(_ secret: ErasureSecret, _ name: String) -> DatabaseStatement {
        DatabaseStatement(
            "INSERT INTO secrets (name, secret) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING",
            [.text(name), .bytes(secret.bytes)]
        )
    }
}

/// A key that is to be erased.
struct ErasedKey {
    let row: Int64
    let keyID: KeyID
    /// The mark, and the name of its secret.
    var mark: KeyID
    var name: String
}

extension PostgreSQLKeyArchive {
    /// The keys that one transaction erases.
    private static let erasurePiece: Int64 = 1_000

    /// The secrets of marks.
    func secrets() throws(StoreProblem) -> ErasureSecrets {
        let rows = try ask([DatabaseMarks.secretsAsked])
        return try attempt { () throws(JournalError) in try DatabaseMarks.secrets(rows[0]) }
    }

    package func eraseDeleted() throws(StoreProblem) -> Int {
        var count = 0
        while true {
            let rows = try ask(
                """
                SELECT id, key_id FROM keys
                WHERE deleted_at IS NOT NULL AND erased_under IS NULL ORDER BY id LIMIT $1
                """,
                [.number(Self.erasurePiece)]
            )
            guard rows.count > 0 else { return count }
            let (keys, doubles) = try erased(rows)
            // After another command that does the same, which locks the state too.
            _ = try ask([Self.nextRevision] + DatabaseMarks.erasure(of: keys, doubles: doubles))
            count += keys.count
        }
    }

    /// The marks of keys. Where another store has erased a key too, one mark is enough.
    private func erased(
        _ rows: DatabaseRows
    ) throws(StoreProblem) -> (keys: [ErasedKey], doubles: [Int64]) {
        _ = try ask([DatabaseMarks.keep(.drawn(), ErasureSecret.ownName)])
        let secrets = try secrets()
        let ids = try attempt { () throws(JournalError) in
            try rows.map { (row) throws(JournalError) in
                (try row.present(0), try KeyColumns.keyID(row, 1))
            }
        }
        let marks = ids.map { secrets.marks(of: $0.1) }
        let stored = try storedMarks(marks.flatMap { $0.map(\.mark) })
        var (keys, doubles): ([ErasedKey], [Int64]) = ([], [])
        for ((row, keyID), marks) in zip(ids, marks) {
            guard let own = marks.first else { continue }
            let known = marks.filter { stored[$0.mark] != nil }
            doubles += known.compactMap { stored[$0.mark] }
            let (name, mark) = known.first ?? own
            keys.append(ErasedKey(row: row, keyID: keyID, mark: mark, name: name))
        }
        return (keys, doubles)
    }

    /// The rows of those of these marks that are stored.
    private func storedMarks(_ marks: [KeyID]) throws(StoreProblem) -> [KeyID: Int64] {
        let rows = try ask(
            "SELECT key_id, id FROM keys WHERE key_id = ANY ($1) AND erased_under IS NOT NULL",
            [.manyBytes(marks.map(\.bytes))]
        )
        return try attempt { () throws(JournalError) in
            var found: [KeyID: Int64] = [:]
            for row in rows { found[try KeyColumns.keyID(row, 0)] = try row.present(1) }
            return found
        }
    }

    /// Stores the marks of keys that were erased elsewhere; returns those that were there.
    func storeMarks(_ records: [KeyRecord]) throws(StoreProblem) -> Set<KeyID> {
        var statements = [Self.nextRevision, DatabaseMarks.app]
        let first = statements.count
        var secrets = try secrets()
        for record in records {
            guard case .erased(let second, let secret) = record.status else { continue }
            if secrets.name(of: secret) == nil {
                guard !secrets.isFull else {
                    return try attempt { () throws(JournalError) in throw ErasureSecrets.full }
                }
                // A store that has none yet goes on with this one.
                let name = secrets.isEmpty ? ErasureSecret.ownName : secret.foreignName
                _ = try ask([DatabaseMarks.keep(secret, name)])
                secrets = try self.secrets()
            }
            guard let name = secrets.name(of: secret) else { continue }
            statements.append(DatabaseMarks.insert(record.keyID, name, at: second))
        }
        let rows = try ask(statements + [Self.notification])
        return Set(
            zip(records, rows.dropFirst(first)).filter { $0.1.isEmpty }.map(\.0.keyID)
        )
    }

    package func deleteMarked(_ note: ChangeNote) throws(StoreProblem) {
        var last: Int64 = 0
        let secrets = try secrets()
        while true {
            let rows = try ask(
                """
                SELECT id, key_id FROM keys WHERE id > $1 AND deleted_at IS NULL
                ORDER BY id LIMIT $2
                """,
                [.number(last), .number(Self.erasurePiece)]
            )
            let ids = try attempt { () throws(JournalError) in
                try rows.map { (row) throws(JournalError) in
                    (try row.present(0), try KeyColumns.keyID(row, 1))
                }
            }
            let stored = try storedMarks(ids.flatMap { secrets.marks(of: $0.1).map(\.mark) })
            for (_, keyID) in ids
            where secrets.marks(of: keyID).contains(where: { stored[$0.mark] != nil }) {
                try deleteStored(keyID, note)
            }
            guard let end = ids.last, ids.count == Self.erasurePiece else { return }
            last = end.0
        }
    }
}
