internal import DeviceKey
internal import KeyStore
internal import Tokens

extension DatabaseStatement {
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
        [
            KeyColumns.insertApp(record.appID),
            DatabaseStatement(
                """
                WITH \(challenge == nil ? "" : spent) new AS (
                    \(KeyColumns.insert(revision: revision)) AND \(hasNoMark)
                        \(challenge == nil ? "" : "AND EXISTS (SELECT 1 FROM spent)")
                    ON CONFLICT (key_id) DO NOTHING
                    RETURNING id
                ), kept AS (
                    INSERT INTO receipts (key, receipt)
                    SELECT id, $13 FROM new WHERE $13 IS NOT NULL
                ), chain AS (
                    INSERT INTO chains (key, serials, certificates_issued, listed)
                    SELECT id, $14, $15, $16 FROM new WHERE $14 IS NOT NULL
                ), known AS (
                    INSERT INTO renewals (key, \(ReceiptColumns.names))
                    SELECT id, \(ReceiptColumns.parameters(from: 17)) FROM new
                    WHERE $13 IS NOT NULL
                )
                SELECT id FROM new
                """,
                KeyColumns.values(record) + [.bytes(record.receipt)]
                    + KeyColumns.values(record.chain) + ReceiptColumns.values(record.receiptState)
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

    /// The row of a key that was to be enrolled. Where the key was erased in that moment, its new
    /// row had waited for the erasure, and did not see it. It is deleted here.
    static func enrolled(_ keyID: KeyID, _ secrets: ErasureSecrets) -> DatabaseStatement {
        DatabaseStatement(
            """
            WITH late AS (
                UPDATE keys k SET \(KeyColumns.deletion(at: "e.deleted_at")) FROM keys e
                WHERE k.key_id = $1 AND k.deleted_at IS NULL AND e.key_id = ANY ($2)
                    AND e.erased_under IS NOT NULL
            )
            \(KeyColumns.select)\(DatabaseMarks.ofKey(in: .postgreSQL))
            """,
            DatabaseMarks.values(keyID, secrets)
        )
    }

    private static func values(_ challenge: ChallengeSerial?) -> [StatementValue] {
        guard let challenge else { return [] }
        return [
            .number(Int64(challenge.purpose.rawValue)),
            .number(Int64(bitPattern: challenge.epoch)),
            .number(Int64(bitPattern: challenge.number)), .number(challenge.expiry),
        ]
    }
}
