internal import Cryptography
internal import DeviceKey
internal import KeyStore
internal import Tokens

extension KeyColumns {
    /// Stores a key with its receipt unless its key id exists. Answers one row if it stored the
    /// key.
    ///
    /// - challenge: spent with it; if it was spent before, nothing is stored.
    static func insert(
        _ record: KeyRecord,
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
                    FROM apps a WHERE a.app_id = $3
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
                key + ReceiptColumns.values(record.receiptState) + values(challenge)
            ),
        ]
    }

    /// Spends a challenge for a key that is not stored yet.
    private static let spent = """
        spent AS (
            INSERT INTO spent_challenges (purpose, epoch, number, expires_at)
            SELECT $26, $27, $28, $29
            WHERE $29 > (SELECT expiry FROM challenge_floor)
                AND NOT EXISTS (SELECT 1 FROM keys WHERE key_id = $1)
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
