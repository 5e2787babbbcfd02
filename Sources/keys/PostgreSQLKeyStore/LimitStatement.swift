internal import KeyStore

/// The statements about limits that the gateways share: one row for each limit and subject says
/// when its bucket is full.
///
/// No gateway waits for a row that another one changes in the same moment: one that stops in the
/// middle would stop all. It leaves the row out, and tells of it the next time. Only a row that two
/// insert at the same moment makes one wait for the other (PostgreSQL's ON CONFLICT).
enum LimitStatement {
    /// The most rows that are read at once, those that were written last. A gateway knows others
    /// when it has taken something itself.
    static let levelsMax: Int64 = 1_024
    /// The most rows that are kept: those of the subjects that have taken most. Looked at once in a
    /// minute, so that there may be a minute's more.
    static let limitsMax: Int64 = 16_384
    /// The longest time from now to when a bucket is full, in microseconds: 36 years.
    private static let longest: Int64 = 1 << 50

    /// When what a gateway tells was taken at the earliest, in microseconds before: it tells each
    /// second. Without it, what came in meanwhile would be lost where the bucket was full.
    private static let pace: Int64 = 1_000_000

    /// A row that lies further ahead than this was written by another server's clock, in seconds.
    /// Until it is written again it says nothing: the limit would give nothing until this server's
    /// clock is as far.
    private static let aheadMax: Int64 = 10

    private static let now = FleetDatabase.now
    private static let nowMicros = "(extract(epoch FROM now()) * 1000000)::bigint"
    /// How far the clock of the writer was ahead, in microseconds.
    private static let ahead = """
        CASE WHEN written_at > \(now) + \(aheadMax) THEN (written_at - \(now)) * 1000000 ELSE 0 END
        """

    /// Writes what a gateway has taken, and reads what all have. The last statement answers that.
    ///
    /// - second: by the clock of the database.
    static func statements(_ exchange: FleetExchange, since second: Int64) -> [DatabaseStatement] {
        let levels = DatabaseStatement(
            """
            SELECT kind, subject, full_at - \(nowMicros) FROM fleet_limits
            WHERE written_at BETWEEN $1 AND \(now) + \(aheadMax)
            ORDER BY written_at DESC, full_at DESC LIMIT $2
            """,
            [.number(second), .number(levelsMax)]
        )
        let uses = exchange.uses.isEmpty ? [] : take(exchange.uses)
        return uses + (exchange.readAt % 60 == 0 ? [tidying] : []) + [levels]
    }

    /// Two statements; each answers what it has written.
    private static func take(_ uses: [FleetUse]) -> [DatabaseStatement] {
        let values: [StatementValue] = [
            .numbers(uses.map(\.limit)), .numbers(uses.map(\.subject)),
            .numbers(uses.map { min(max($0.micros, 0), longest) }),
        ]
        let all = """
            SELECT kind, subject, least(sum(micros), \(longest))::bigint AS micros
            FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS a (kind, subject, micros)
            GROUP BY kind, subject
            """
        return [
            DatabaseStatement(
                """
                UPDATE fleet_limits SET written_at = \(now), full_at = least(
                    greatest(full_at - \(ahead), \(nowMicros) - \(pace)) + free.micros,
                    \(nowMicros) + \(longest))
                FROM (
                    SELECT kind, subject, uses.micros FROM fleet_limits
                    JOIN (\(all)) AS uses USING (kind, subject)
                    FOR UPDATE OF fleet_limits SKIP LOCKED
                ) AS free
                WHERE fleet_limits.kind = free.kind AND fleet_limits.subject = free.subject
                RETURNING fleet_limits.kind, fleet_limits.subject
                """,
                values
            ),
            DatabaseStatement(
                """
                INSERT INTO fleet_limits (kind, subject, full_at, written_at)
                SELECT kind, subject, \(nowMicros) - \(pace) + micros, \(now) FROM (\(all)) AS uses
                WHERE NOT EXISTS (
                    SELECT 1 FROM fleet_limits AS known
                    WHERE known.kind = uses.kind AND known.subject = uses.subject
                )
                ORDER BY kind, subject
                ON CONFLICT (kind, subject) DO NOTHING RETURNING kind, subject
                """,
                values
            ),
        ]
    }

    /// Removes the rows of buckets that have been full for a minute, and what is too much.
    private static var tidying: DatabaseStatement {
        DatabaseStatement(
            """
            DELETE FROM fleet_limits WHERE (kind, subject) IN (
                SELECT kind, subject FROM fleet_limits
                WHERE full_at < \(nowMicros) - 60000000 OR full_at <= (
                    SELECT full_at FROM fleet_limits ORDER BY full_at DESC OFFSET $1 LIMIT 1)
                FOR UPDATE SKIP LOCKED
            )
            """,
            [.number(limitsMax)]
        )
    }

    /// - rows: the answers to ``statements(_:since:)``.
    static func read(
        _ rows: ArraySlice<DatabaseRows>,
        _ exchange: FleetExchange,
        into reading: inout FleetReading
    ) throws(JournalError) {
        guard let last = rows.last else { return }
        reading.levels = try last.map { (row) throws(JournalError) in
            FleetLevel(
                limit: try row.present(0),
                subject: try row.present(1),
                fullIn: try row.present(2)
            )
        }
        guard !exchange.uses.isEmpty else { return }
        var written: Set<[Int64]> = []
        for rows in rows.prefix(2) {
            for row in rows { written.insert([try row.present(0), try row.present(1)]) }
        }
        reading.unwritten = exchange.uses.filter { !written.contains([$0.limit, $0.subject]) }
    }
}

/// What a gateway has taken of a limit that all gateways share.
package struct FleetUse: Hashable, Sendable {
    package let limit: Int64
    package let subject: Int64
    /// The time in which it is refilled, in microseconds.
    package let micros: Int64

    package init(limit: Int64, subject: Int64, micros: Int64) {
        (self.limit, self.subject, self.micros) = (limit, subject, micros)
    }
}

/// What all gateways together have taken of a limit.
package struct FleetLevel: Sendable {
    package let limit: Int64
    package let subject: Int64
    /// Microseconds until nothing of it is taken.
    package let fullIn: Int64
}
