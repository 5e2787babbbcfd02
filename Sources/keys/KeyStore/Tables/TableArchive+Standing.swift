package import DeviceKey

// Revoking, restoring, deleting and expiring keys, by commands and by lists. The gateways are
// notified also where nothing has changed: one may have missed an earlier change.
extension TableArchive {
    package func revoke(_ keyID: KeyID, _ note: ChangeNote) throws(StoreProblem) -> Revocation {
        let change = KeyChange(.revoked, of: keyID, keys: 1, note)
        let outcome: Revocation = try update { (session) throws(JournalError) in
            switch try session.status(of: keyID) {
            case nil, .deleted, .erased: return .unknown
            case .revoked(let second):
                try session.run(
                    StandingColumns.takeOver(keyID, change, after: Session.nextRevision)
                )
                return .alreadyRevoked(at: second)
            case .active:
                try session.change(change)
                return .revoked
            }
        }
        try announce()
        return outcome
    }

    package func restore(_ keyID: KeyID, _ note: ChangeNote) throws(StoreProblem) -> Restoration {
        let outcome: Restoration = try update { (session) throws(JournalError) in
            switch try session.status(of: keyID) {
            case nil, .deleted, .erased: return .unknown
            case .active: return .active
            case .revoked:
                try session.change(KeyChange(.restored, of: keyID, keys: 1, note))
                return .restored
            }
        }
        try announce()
        return outcome
    }

    package func delete(_ keyID: KeyID, _ note: ChangeNote) throws(StoreProblem) -> Deletion {
        let outcome: Deletion = try update { (session) throws(JournalError) in
            switch try session.status(of: keyID) {
            case nil: return .unknown
            case .deleted(let second), .erased(let second, _): return .alreadyDeleted(at: second)
            case .active, .revoked:
                try session.change(KeyChange(.deleted, of: keyID, keys: 1, note))
                return .deleted
            }
        }
        try announce()
        return outcome
    }

    package func expire(
        unusedSince second: Int64,
        behind row: Int64,
        _ note: ChangeNote
    ) throws(StoreProblem) -> ExpiryPiece {
        let piece = try update { (session) throws(JournalError) in
            try session.expire(unusedSince: second, behind: row, note)
        }
        if piece.deleted > 0 { try announce() }
        return piece
    }

    package func askRenewal(of keyID: KeyID, now: Int64) throws(StoreProblem) -> RenewalRequest {
        let outcome: RenewalRequest = try update { (session) throws(JournalError) in
            try session.askRenewal(of: keyID, now: now)
        }
        if outcome == .asked { try announce() }
        return outcome
    }

    // MARK: Lists of revoked certificates

    package func chains(after row: Int64) throws(StoreProblem) -> ChainPiece {
        try query { (session) throws(JournalError) in
            let chains = try session.ask(
                """
                SELECT key, serials, CASE WHEN listed IS NOT NULL THEN
                    coalesce((SELECT revoked_at FROM keys WHERE id = key), 0) END
                FROM chains WHERE key > $1 ORDER BY key LIMIT $2
                """,
                [.number(row), .number(Int64(ChainPiece.countMax))]
            ) { (row) throws(JournalError) in
                StoredChain(
                    row: try row.present(0),
                    serialText: row.text(1) ?? "",
                    listedAt: try row.number(2)
                )
            }
            return ChainPiece(chains)
        }
    }

    package func apply(
        _ changes: [ListedChange],
        now: Int64,
        by actor: String
    ) throws(StoreProblem) -> [ListedKey] {
        let made = try update { (session) throws(JournalError) in
            let found = try session.ask(
                "SELECT id, key_id FROM keys WHERE id \(Session.dialect.numbers("$1"))",
                [.numbers(changes.map(\.row))]
            ) { (row) throws(JournalError) in try row.rowAndKeyID() }
            let keyIDs = Dictionary(found.map { ($0.row, $0.keyID) }) { first, _ in first }
            let each = changes.map { change in
                StandingColumns.apply(change, ChangeNote(now: now, by: actor, why: change.why))
            }
            let statements =
                [Session.nextRevision] + each.flatMap(\.self) + [KeyChangeLog.trimming]
                + Session.notification
            var counts = try session.run(statements).dropFirst()
            var made: [ListedKey] = []
            for (change, statements) in zip(changes, each) {
                if counts.first == 1, let keyID = keyIDs[change.row] {
                    made.append(ListedKey(keyID, change))
                }
                counts = counts.dropFirst(statements.count)
            }
            return made
        }
        if !made.isEmpty { try announce() }
        return made
    }
}

/// The statements that change whether keys may be used.
private enum StandingColumns {
    /// The row of a key, as SQL.
    private static let row = "(SELECT id FROM keys WHERE key_id = $1)"

    private static func unlist(_ keyID: KeyID) -> DatabaseStatement {
        DatabaseStatement(
            "UPDATE chains SET listed = NULL WHERE key = \(row) AND listed IS NOT NULL",
            [.bytes(keyID.bytes)]
        )
    }

    /// The statements of a change of one key, with its note.
    static func change(_ change: KeyChange) -> [DatabaseStatement] {
        guard let keyID = change.keyID else { return [] }
        let log = KeyChangeLog.add(change)
        switch change.action {
        case .revoked:
            // A list may have revoked it since its state was read. It is the command's now.
            let second = StatementValue.number(max(change.note.now, 0))
            return [KeyColumns.set("revoked_at = $2", of: keyID, [second]), unlist(keyID)] + log
        case .restored:
            return [KeyColumns.set("revoked_at = NULL", of: keyID, []), unlist(keyID)] + log
        case .deleted, .expired, .storeRestored:
            return KeyColumns.delete(keyID, at: change.note.now) + log
        }
    }

    /// Takes away the mark of a key that a list has revoked: from now on a command decides.
    ///
    /// - nextRevision: goes first, since a comparison by a gateway locks the state too.
    static func takeOver(
        _ keyID: KeyID,
        _ change: KeyChange,
        after nextRevision: DatabaseStatement
    ) -> [DatabaseStatement] {
        let note = change.note
        return [
            nextRevision,
            DatabaseStatement(
                """
                INSERT INTO key_changes (at, actor, action, key_id, keys, why)
                SELECT $2, $3, $4, $1, 1, $5
                FROM chains WHERE key = \(row) AND listed IS NOT NULL
                """,
                [
                    .bytes(keyID.bytes), .number(note.now), .text(note.actor),
                    .text(change.action.rawValue), .text(note.why),
                ]
            ), unlist(keyID), KeyChangeLog.trimming,
        ]
    }

    /// What a list changes of a key. The first statement says whether it does.
    static func apply(_ change: ListedChange, _ note: ChangeNote) -> [DatabaseStatement] {
        let row = StatementValue.number(change.row)
        let isRevoked = change.entry != nil
        // Only a key that is still marked comes back: a command may have revoked it since it was
        // read.
        let update =
            isRevoked
            ? DatabaseStatement(
                """
                UPDATE keys SET revoked_at = $2, revision = (SELECT revision FROM state)
                WHERE id = $1 AND revoked_at IS NULL AND deleted_at IS NULL
                """,
                [row, .number(max(note.now, 0))]
            )
            : DatabaseStatement(
                """
                UPDATE keys SET revoked_at = NULL, revision = (SELECT revision FROM state)
                WHERE id = $1 AND revoked_at IS NOT NULL AND deleted_at IS NULL
                    AND EXISTS (SELECT 1 FROM chains WHERE key = $1 AND listed IS NOT NULL)
                """,
                [row]
            )
        return [
            update,
            DatabaseStatement(
                """
                UPDATE chains SET listed = $2 WHERE key = $1
                    AND EXISTS (SELECT 1 FROM keys WHERE id = $1 AND \(KeyChangeLog.isChanged))
                """,
                [row, .text(change.entry)]
            ),
            KeyChangeLog.add(isRevoked ? .revoked : .restored, ofRow: change.row, note),
        ]
    }
}

extension TableSession {
    /// The keys that one transaction checks, so that a running gateway can write in between.
    package static var expiryPiece: Int { 2_000 }

    /// The status of a key, or that of its mark; `nil` for a key that is not stored.
    fileprivate func status(of keyID: KeyID) throws(JournalError) -> KeyRecord.Status? {
        try ask(
            "SELECT k.revoked_at, k.deleted_at FROM keys k"
                + DatabaseMarks.ofKey(in: Self.dialect),
            DatabaseMarks.values(keyID, try secrets())
        ) { (row) throws(JournalError) in try row.status(from: 0) }.first
    }

    /// Changes one key, notes the change, and notifies the gateways.
    func change(_ change: KeyChange) throws(JournalError) {
        try run([Self.nextRevision] + StandingColumns.change(change) + Self.notification)
    }

    fileprivate func expire(
        unusedSince second: Int64,
        behind row: Int64,
        _ note: ChangeNote
    ) throws(JournalError) -> ExpiryPiece {
        let piece = Self.expiryPiece
        let rows = try ask(
            """
            SELECT id, coalesce(last_used_at, enrolled_at), coalesce(enrolled_at, last_used_at)
            FROM keys WHERE id > $1 AND deleted_at IS NULL ORDER BY id LIMIT $2
            """,
            [.number(row), .number(Int64(piece))]
        ) { (row) throws(JournalError) in
            (row: try row.present(0), times: [try row.number(1), try row.number(2)])
        }
        let next = rows.count < piece ? nil : rows.last?.row
        var old = rows.filter { $0.times.allSatisfy { $0 ?? .max < second } }.map(\.row)
        guard !old.isEmpty else { return ExpiryPiece(deleted: 0, next: next) }
        // Reading the late uses takes long, and most pieces have no old keys.
        let late = try lateUses()
        old = old.filter { late[$0]?.usedAt ?? .min < second }
        guard !old.isEmpty else { return ExpiryPiece(deleted: 0, next: next) }
        let isOld = Self.dialect.numbers("$1")
        let deletion = DatabaseStatement(
            """
            UPDATE keys SET \(KeyColumns.deletion(at: "$2")),
                revision = (SELECT revision FROM state)
            WHERE id \(isOld) AND deleted_at IS NULL AND coalesce(last_used_at, enrolled_at) < $3
                AND coalesce(enrolled_at, last_used_at) < $3
            """,
            [.numbers(old.map { $0 }), .number(max(note.now, 0)), .number(second)]
        )
        let emptied = KeyColumns.furtherTables.map { table in
            DatabaseStatement(
                """
                DELETE FROM \(table)
                WHERE key IN (SELECT id FROM keys WHERE id \(isOld) AND deleted_at IS NOT NULL)
                """,
                [.numbers(old.map { $0 })]
            )
        }
        let counts = try run(
            [Self.nextRevision, deletion] + emptied + KeyChangeLog.addExpired(note)
                + Self.notification
        )
        return ExpiryPiece(deleted: counts.dropFirst().first ?? 0, next: next)
    }

    fileprivate func askRenewal(
        of keyID: KeyID,
        now: Int64
    ) throws(JournalError) -> RenewalRequest {
        let found = try ask(
            """
            SELECT k.revoked_at, r.key, r.not_before FROM keys k
                LEFT JOIN renewals r ON r.key = k.id
            WHERE k.key_id = $1 AND k.deleted_at IS NULL
            """,
            [.bytes(keyID.bytes)]
        ) { (row) throws(JournalError) in
            (revokedAt: try row.number(0), key: try row.number(1), notBefore: try row.number(2))
        }
        guard let row = found.first else { return .unknown }
        guard row.revokedAt == nil else { return .revoked }
        guard let key = row.key else { return .withoutReceipt }
        if let notBefore = row.notBefore, notBefore > now { return .tooEarly(until: notBefore) }
        try run(
            [
                Self.nextRevision,
                DatabaseStatement(
                    "UPDATE renewals SET due_at = 0, asked = true WHERE key = $1",
                    [.number(key)]
                ),
                KeyColumns.touch(key),
            ] + Self.notification
        )
        return .asked
    }
}
