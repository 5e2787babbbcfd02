internal import Cryptography
internal import DeviceKey
internal import KeyStore
internal import Tokens

/// Keys as rows of the database.
enum KeyColumns {
    /// The columns of a key for the table in memory, in the order in which ``row(_:apps:)`` reads
    /// them.
    static let select = """
        SELECT k.id, k.key_id, k.public_key, a.app_id, k.environment, k.counter,
            k.counter_window, k.revoked_at, k.deleted_at, k.context,
            CASE k.platform WHEN 2 THEN c.certificates_issued ELSE n.risk_metric END,
            CASE k.platform WHEN 2 THEN k.enrolled_at ELSE n.metric_at END, k.platform, e.secret
        FROM keys k JOIN apps a ON a.id = k.app LEFT JOIN renewals n ON n.key = k.id
            LEFT JOIN chains c ON c.key = k.id LEFT JOIN secrets e ON e.name = k.erased_under
        """

    static func row(_ row: DatabaseRow, apps: AppNumbers) throws(JournalError) -> KeyRow {
        let risk = try row.number(10)
        return KeyRow(
            row: try row.present(0),
            keyID: try keyID(row, 1),
            platform: try platform(row, 12),
            publicKey: try publicKey(row, 2),
            app: apps.number(of: row.text(3) ?? ""),
            environment: try environment(row, 4),
            counters: try counters(row, 5, 6),
            standing: try status(row, 7, 8).standing,
            context: try context(row, 9),
            risk: KeyRisk(metric: risk.flatMap(UInt32.init(exactly:)), at: try row.number(11)),
            erasure: try secret(row, 13)
        )
    }

    /// All columns of a key, in the order in which ``record(_:)`` reads them.
    static let selectRecord = """
        SELECT k.id, k.key_id, k.public_key, a.app_id, k.environment, k.counter,
            k.counter_window, k.revoked_at, k.deleted_at, k.context, k.is_imported,
            k.enrolled_at, k.last_used_at, r.receipt, \(ReceiptColumns.names(of: "n")),
            k.platform, c.serials, c.certificates_issued, c.listed, e.secret
        FROM keys k JOIN apps a ON a.id = k.app LEFT JOIN receipts r ON r.key = k.id
            LEFT JOIN renewals n ON n.key = k.id LEFT JOIN chains c ON c.key = k.id
            LEFT JOIN secrets e ON e.name = k.erased_under
        """

    static func record(_ row: DatabaseRow) throws(JournalError) -> KeyRecord {
        if let secret = try secret(row, 27) {
            return .erased(try keyID(row, 1), under: secret, at: try row.present(8))
        }
        let receipt = row.bytes(13)
        return KeyRecord(
            keyID: try keyID(row, 1),
            platform: try platform(row, 23),
            appID: row.text(3) ?? "",
            environment: try environment(row, 4),
            publicKey: try publicKey(row, 2),
            counters: try counters(row, 5, 6),
            receipt: receipt,
            receiptState: receipt == nil
                ? ReceiptState() : try ReceiptColumns.state(row, from: 14),
            chain: try chain(row, from: 24),
            context: try context(row, 9),
            enrolledAt: try row.number(11),
            lastUsedAt: try row.number(12),
            status: try status(row, 7, 8),
            source: row.flag(10) ? .imported : .enrolled
        )
    }

    private static func chain(
        _ row: DatabaseRow,
        from first: Int
    ) throws(JournalError) -> ChainRecord? {
        guard let serials = row.text(first) else { return nil }
        return ChainRecord(
            serialText: serials,
            certificatesIssued: try row.number(first + 1).flatMap(UInt32.init(exactly:)),
            listed: row.text(first + 2)
        )
    }

    // MARK: One column

    static func platform(_ row: DatabaseRow, _ column: Int) throws(JournalError) -> DevicePlatform {
        try word(row, column, "platform", DevicePlatform.init(number:))
    }

    /// Reads the secret of a mark, or NULL.
    static func secret(
        _ row: DatabaseRow,
        _ column: Int
    ) throws(JournalError) -> ErasureSecret? {
        guard let bytes = row.bytes(column) else { return nil }
        guard let secret = ErasureSecret(bytes: bytes) else {
            throw JournalError.damaged("the secret of a mark is not 32 bytes")
        }
        return secret
    }

    /// Reads the number of one of a few words.
    private static func word<Word>(
        _ row: DatabaseRow,
        _ column: Int,
        _ name: String,
        _ word: (UInt8) -> Word?
    ) throws(JournalError) -> Word {
        let number = try row.present(column)
        guard let found = UInt8(exactly: number).flatMap(word) else {
            throw JournalError.damaged("there is no \(name) \(number)")
        }
        return found
    }

    static func keyID(_ row: DatabaseRow, _ column: Int) throws(JournalError) -> KeyID {
        guard let bytes = row.bytes(column), let keyID = KeyID(bytes: bytes) else {
            throw JournalError.damaged("a key id is not 32 bytes")
        }
        return keyID
    }

    /// Reads 64 bytes, and checks that they are a point of the curve.
    static func publicKey(_ row: DatabaseRow, _ column: Int) throws(JournalError) -> P256PublicKey {
        guard let bytes = row.bytes(column), let key = P256PublicKey(raw: bytes.span) else {
            throw JournalError.damaged("a public key is not a point of P-256")
        }
        return key
    }

    static func environment(
        _ row: DatabaseRow,
        _ column: Int
    ) throws(JournalError) -> KeyEnvironment {
        try word(row, column, "environment", KeyEnvironment.init(number:))
    }

    private static func counters(
        _ row: DatabaseRow,
        _ counter: Int,
        _ window: Int
    ) throws(JournalError) -> CounterState {
        let number = try row.present(counter)
        guard let highest = UInt32(exactly: number) else {
            throw JournalError.damaged("\(number) is no counter")
        }
        return CounterState(
            highest: SignCounter(rawValue: highest),
            seen: UInt64(bitPattern: try row.present(window))
        )
    }

    /// A key that was revoked and then deleted is deleted.
    static func status(
        _ row: DatabaseRow,
        _ revoked: Int,
        _ deleted: Int
    ) throws(JournalError) -> KeyRecord.Status {
        if let second = try row.number(deleted) { return .deleted(at: second) }
        return try row.number(revoked).map { .revoked(at: $0) } ?? .active
    }

    private static func context(
        _ row: DatabaseRow,
        _ column: Int
    ) throws(JournalError) -> [UInt8]? {
        guard let context = row.bytes(column) else { return nil }
        guard (1...KeyRecord.contextBytesMax).contains(context.count) else {
            throw JournalError.damaged("a context has \(context.count) bytes")
        }
        return context
    }
}

extension KeyColumns {
    /// Stores a key with its receipt unless its key id or its mark exists. Answers one row if it
    /// stored the key.
    ///
    /// - secrets: those of marks. Where the database has further ones, nothing is stored.
    /// - challenge: spent with it; if it was spent before, nothing is stored.
    static func insert(
        _ record: KeyRecord,
        _ secrets: ErasureSecrets,
        revision: String = "0",
        spending challenge: ChallengeSerial? = nil
    ) -> [DatabaseStatement] {
        let revokedAt: Int64? = if case .revoked(let second) = record.status { second } else { nil }
        let key: [DatabaseValue] = [
            .bytes(record.keyID.bytes), .bytes(Array(record.publicKey.x963.dropFirst())),
            .text(record.appID), .number(Int64(record.environment.number)),
            .flag(record.source == .imported), .number(Int64(record.counters.highest.rawValue)),
            .number(Int64(bitPattern: record.counters.seen)), .number(record.enrolledAt),
            .number(record.lastUsedAt), .number(revokedAt), .bytes(record.context),
            .bytes(record.receipt), .number(Int64(record.platform.number)),
            .text(record.chain?.serialText),
            .number(record.chain?.certificatesIssued.map { Int64($0) }),
            .text(record.chain?.listed),
        ]
        return [
            DatabaseStatement(
                "INSERT INTO apps (app_id) VALUES ($1) ON CONFLICT (app_id) DO NOTHING",
                [.text(record.appID)]
            ),
            DatabaseStatement(
                """
                WITH \(challenge == nil ? "" : spent) new AS (
                    INSERT INTO keys (key_id, public_key, app, environment, is_imported, counter,
                        counter_window, enrolled_at, last_used_at, revoked_at, context, revision,
                        platform)
                    SELECT $1, $2, a.id, $4, $5, $6, $7, $8, $9, $10, $11, \(revision), $13
                    FROM apps a WHERE a.app_id = $3 AND \(hasNoMark)
                        \(challenge == nil ? "" : "AND EXISTS (SELECT 1 FROM spent)")
                    ON CONFLICT (key_id) DO NOTHING
                    RETURNING id
                ), kept AS (
                    INSERT INTO receipts (key, receipt)
                    SELECT id, $12 FROM new WHERE $12 IS NOT NULL
                ), chain AS (
                    INSERT INTO chains (key, serials, certificates_issued, listed)
                    SELECT id, $14, $15, $16 FROM new WHERE $14 IS NOT NULL
                ), known AS (
                    INSERT INTO renewals (key, \(ReceiptColumns.names))
                    SELECT id, \(ReceiptColumns.parameters(from: 17)) FROM new
                    WHERE $12 IS NOT NULL
                )
                SELECT id FROM new
                """,
                key + ReceiptColumns.values(record.receiptState)
                    + [
                        .manyBytes(secrets.marks(of: record.keyID).map(\.mark.bytes)),
                        .manyBytes(secrets.named.map(\.secret.bytes)),
                    ] + values(challenge)
            ),
        ]
    }

    private static let hasNoMark = """
        NOT EXISTS (SELECT 1 FROM keys WHERE key_id = ANY ($26) AND erased_under IS NOT NULL)
            AND NOT EXISTS (SELECT 1 FROM secrets
                WHERE \(DatabaseMarks.areSecrets) AND NOT secret = ANY ($27))
        """

    /// Spends a challenge for a key that is not stored yet.
    private static let spent = """
        spent AS (
            INSERT INTO spent_challenges (purpose, epoch, number, expires_at)
            SELECT $28, $29, $30, $31
            WHERE $31 > (SELECT expiry FROM challenge_floor)
                AND NOT EXISTS (SELECT 1 FROM keys WHERE key_id = $1)
                AND \(hasNoMark)
            ON CONFLICT (epoch, number, purpose) DO NOTHING
            RETURNING epoch
        ),
        """

    private static func values(_ challenge: ChallengeSerial?) -> [DatabaseValue] {
        guard let challenge else { return [] }
        return [
            .number(Int64(challenge.purpose.rawValue)),
            .number(Int64(bitPattern: challenge.epoch)),
            .number(Int64(bitPattern: challenge.number)), .number(challenge.expiry),
        ]
    }
}
