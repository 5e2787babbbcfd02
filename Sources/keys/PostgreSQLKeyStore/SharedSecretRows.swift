internal import Challenges
internal import Cryptography
internal import KeyStore

/// The secrets that all gateways share, as rows.
enum SharedSecretRows {
    /// How long one is used until the next one is drawn, in seconds.
    private static let usedSeconds: Int64 = 86_400
    /// How long before its use one is drawn: every gateway reads it within that time.
    private static let leadSeconds: Int64 = 60
    /// How far the clocks of gateways may be apart.
    private static let marginSeconds: Int64 = 3_600
    /// The most rows that are kept. By number and not by age, so that no clock is believed.
    private static let kept: Int64 = 32

    /// Draws one where it is time; of two gateways that do so at once, one does. The last statement
    /// answers all secrets.
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

    /// Those that are still good.
    ///
    /// - lifetime: of the challenge that is good for the longest time, in seconds.
    static func secrets(
        _ rows: DatabaseRows,
        now: Int64,
        lifetime: Int64
    ) throws(JournalError) -> [SharedSecret] {
        var secrets: [SharedSecret] = []
        for row in 0..<rows.count {
            guard let bytes = rows.bytes(row, 1), bytes.count == 32 else {
                throw JournalError.damaged("a shared secret is not 32 bytes")
            }
            var goodUntil = Int64.max
            if row + 1 < rows.count {
                goodUntil = bounded(try rows.present(row + 1, 2)) + bounded(lifetime)
                goodUntil += marginSeconds
            }
            guard goodUntil > now else { continue }
            secrets.append(
                SharedSecret(
                    number: try rows.present(row, 0),
                    bytes: bytes,
                    usedFrom: try rows.present(row, 2),
                    goodUntil: goodUntil
                )
            )
        }
        guard !secrets.isEmpty else { throw JournalError.damaged("there is no shared secret") }
        return secrets
    }

    /// Far enough from the ends of the numbers to be added.
    private static func bounded(_ number: Int64) -> Int64 { min(max(number, 0), 1 << 60) }
}
