package import DeviceKey
internal import Foundation
internal import GRDB
package import KeyStore
internal import Signatures

extension KeyAdministration {
    package func identities(of keyIDs: [KeyID]) throws(StoreProblem) -> [KeyID: KeyIdentity] {
        try read { db in
            let select = try db.cachedStatement(sql: Self.identitySelect)
            let marks = try KeyMarks(db)
            var found: [KeyID: KeyIdentity] = [:]
            for keyID in keyIDs {
                let mark = try marks.stored(of: keyID, db)
                let arguments: StatementArguments = [Data((mark ?? keyID).bytes)]
                guard let row = try Row.fetchOne(select, arguments: arguments) else { continue }
                found[keyID] = try Self.identity(row)
            }
            return found
        }
    }

    package func store(_ records: [KeyRecord]) throws(StoreProblem) -> [StoreOutcome] {
        // In the order of the index, which is then written page after page; the first of two lines
        // of one key goes first.
        let prefixes = records.map(\.keyID.digest.firstWord)
        let order = records.indices.sorted { (prefixes[$0], $0) < (prefixes[$1], $1) }
        let outcomes = try write { db in try Self.store(records, order, db) }
        try announce()
        return outcomes
    }

    package func spentTokens(
        after last: SpentToken?,
        limit: Int
    ) throws(StoreProblem) -> [SpentToken] {
        try read { try SpentTokens.page(after: last, limit: limit, $0) }
    }

    package func spend(_ tokens: [SpentToken]) throws(StoreProblem) {
        guard !tokens.isEmpty else { return }
        _ = try write { db in
            _ = try Generation.advance(db)
            return try SpentTokens.spend(tokens, db)
        }
        try announce()
    }

    private static let identitySelect = """
        SELECT k.public_key, a.app_id, k.environment, k.revoked_at, k.deleted_at, k.platform,
            k.erased_under IS NOT NULL
        FROM keys k JOIN apps a ON a.id = k.app
        WHERE k.key_id = ?
        """

    private static func identity(_ row: Row) throws -> KeyIdentity {
        KeyIdentity(
            platform: try SQLiteKeyColumns.platform(row, 5),
            publicKey: try SQLiteKeyColumns.publicKey(row, 0),
            appID: row[1],
            environment: try SQLiteKeyColumns.environment(row, 2),
            standing: SQLiteKeyColumns.status(row, 3, 4).standing,
            isErased: row[6]
        )
    }

    private static let merge = """
        UPDATE keys SET \(KeySchema.merge(counter: "?2", window: "?3")),
            enrolled_at = coalesce(enrolled_at, ?4),
            last_used_at = nullif(max(coalesce(last_used_at, -1), coalesce(?5, -1)), -1),
            revoked_at = coalesce(revoked_at, ?6),
            revision = ?7,
            context = coalesce(context, ?8)
        WHERE key_id = ?1
        """

    /// Adds the chain of a key that has none. What a list said of it comes with the revocation
    /// alone: where this store has revoked the key already, it may have another reason.
    private static let addChain = """
        INSERT INTO chains (key, serials, certificates_issued)
        SELECT id, ?2, ?3 FROM keys WHERE key_id = ?1
        ON CONFLICT (key) DO NOTHING
        """

    private static let mark = """
        UPDATE chains SET listed = ?2 WHERE key = (SELECT id FROM keys WHERE key_id = ?1)
        """

    private static func store(
        _ records: [KeyRecord],
        _ order: [Int],
        _ db: Database
    ) throws -> [StoreOutcome] {
        let revision = try nextRevision(db)
        let select = try db.cachedStatement(sql: identitySelect)
        let merge = try db.cachedStatement(sql: merge)
        var marks = try KeyMarks(db)
        var outcomes = [StoreOutcome](repeating: .inserted, count: records.count)
        for index in order {
            let record = records[index]
            let key = Data(record.keyID.bytes)
            if case .erased(let second, let secret) = record.status {
                let isNew = try marks.add(record.keyID, secret, at: second, revision, db)
                outcomes[index] = isNew ? .inserted : .merged
                continue
            }
            if let mark = try marks.stored(of: record.keyID, db) {
                guard record.status.standing != .deleted,
                    let row = try Row.fetchOne(select, arguments: [Data(mark.bytes)])
                else {
                    outcomes[index] = .merged
                    continue
                }
                outcomes[index] = .differs(try identity(row))
                continue
            }
            if case .deleted(let second) = record.status {
                outcomes[index] = try bury(
                    record,
                    at: second,
                    revision: revision,
                    select: select,
                    db: db
                )
                continue
            }
            if try SQLiteKeyColumns.insert(record, revision: revision, db) { continue }
            guard let row = try Row.fetchOne(select, arguments: [key]) else {
                throw JournalError(.damaged, "a key is in an index and nowhere else")
            }
            let stored = try identity(row)
            guard stored.difference(from: record) == nil else {
                outcomes[index] = .differs(stored)
                continue
            }
            let revokedAt: Int64? =
                if case .revoked(let second) = record.status { second } else { nil }
            try merge.execute(arguments: [
                key, Int64(record.counters.highest.rawValue),
                Int64(bitPattern: record.counters.seen), record.enrolledAt, record.lastUsedAt,
                revokedAt, revision, record.context.map { Data($0) },
            ])
            if let chain = record.chain {
                try db.cachedStatement(sql: addChain).execute(arguments: [
                    key, chain.serialText, chain.certificatesIssued.map { Int64($0) },
                ])
                if stored.standing == .active, revokedAt != nil, let listed = chain.listed {
                    try db.cachedStatement(sql: mark).execute(arguments: [key, listed])
                }
            }
            outcomes[index] = .merged
        }
        return outcomes
    }

    /// Stores a key as a deleted one.
    private static func bury(
        _ record: KeyRecord,
        at second: Int64,
        revision: Int64,
        select: Statement,
        db: Database
    ) throws -> StoreOutcome {
        var living = record
        living.status = .active
        let isNew = try SQLiteKeyColumns.insert(living, revision: revision, db)
        if !isNew {
            let key: StatementArguments = [Data(record.keyID.bytes)]
            guard let row = try Row.fetchOne(select, arguments: key) else {
                throw JournalError(.damaged, "a key is in an index and nowhere else")
            }
            let stored = try identity(row)
            guard stored.isOf(record) else { return .differs(stored) }
            guard stored.standing != .deleted else { return .merged }
        }
        try delete(record.keyID, ChangeNote(now: second), db)
        return isNew ? .inserted : .merged
    }
}
