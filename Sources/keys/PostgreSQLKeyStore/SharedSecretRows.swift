internal import Cryptography
internal import KeyStore
internal import Tokens

/// The secrets that all gateways share, as rows.
enum SharedSecretRows {
    /// The time from the use of one secret to the drawing of the next one, in seconds.
    private static let usedSeconds: Int64 = 86_400
    /// The time from drawing a secret to its use: every gateway reads it within that time.
    private static let leadSeconds: Int64 = 60
    /// The greatest difference between the clocks of gateways.
    private static let marginSeconds: Int64 = 3_600
    /// The most rows that are kept. By number and not by age, so that it depends on no clock.
    private static let kept: Int64 = 32

    /// Draws a secret when it is time. If two gateways do so at once, one succeeds. The last
    /// statement answers all secrets.
    static func statements(now: Int64) -> [DatabaseStatement] {
        [
            DatabaseStatement(
                """
                INSERT INTO shared_secrets (number, secret, used_from)
                SELECT coalesce(max(number), 0) + 1, $1,
                    CASE WHEN count(*) = 0 THEN $2 - $5 ELSE $2 + $3 END
                FROM shared_secrets HAVING count(*) = 0 OR max(used_from) <= $2 - $4
                ON CONFLICT (number) DO NOTHING
                """,
                [
                    .bytes(RandomBytes.make(count: 32)), .number(now), .number(leadSeconds),
                    .number(usedSeconds), .number(marginSeconds),
                ]
            ),
            DatabaseStatement(
                """
                DELETE FROM shared_secrets
                WHERE number <= (SELECT max(number) FROM shared_secrets) - $1
                """,
                [.number(kept)]
            ),
            DatabaseStatement(
                "SELECT number, secret, used_from FROM shared_secrets ORDER BY number"
            ),
        ]
    }

    /// The secrets that are still good.
    ///
    /// - lifetime: the longest lifetime of a challenge, in seconds.
    static func secrets(
        _ rows: DatabaseRows,
        now: Int64,
        lifetime: Int64
    ) throws(JournalError) -> [SharedSecret] {
        var secrets: [SharedSecret] = []
        for (place, row) in rows.enumerated() {
            guard let bytes = row.bytes(1), bytes.count == 32 else {
                throw JournalError.damaged("a shared secret is not 32 bytes")
            }
            var goodUntil = Int64.max
            if place + 1 < rows.count {
                goodUntil = bounded(try rows[place + 1].present(2)) + bounded(lifetime)
                goodUntil += marginSeconds
            }
            guard goodUntil > now else { continue }
            secrets.append(
                SharedSecret(
                    number: try row.present(0),
                    bytes: bytes,
                    usedFrom: try row.present(2),
                    goodUntil: goodUntil
                )
            )
        }
        guard !secrets.isEmpty else { throw JournalError.damaged("there is no shared secret") }
        return secrets
    }

    /// Bounds a number, so that additions can't overflow.
    private static func bounded(_ number: Int64) -> Int64 { min(max(number, 0), 1 << 60) }
}
