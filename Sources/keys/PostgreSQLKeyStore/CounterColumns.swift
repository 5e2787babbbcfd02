internal import DeviceKey
internal import KeyStore

/// Counters and their windows, as SQL and as parameters. Shifts by 64 and more are omitted:
/// PostgreSQL shifts by the remainder of 64.
enum CounterColumns {
    /// A window shifted up by this number.
    static func shifted(_ window: String, by distance: String) -> String {
        "(CASE WHEN \(distance) < 64 THEN \(window) << (\(distance))::int ELSE 0 END)"
    }

    /// The window in which the counter at this distance below the highest is used.
    static func mark(_ distance: String) -> String {
        "(CASE WHEN \(distance) BETWEEN 1 AND 64 THEN 1::bigint << (\(distance) - 1)::int "
            + "ELSE 0 END)"
    }

    /// Raises a key's counter and window to the given ones, or leaves them where they are ahead:
    /// the highest of both, and the union of both bitmaps. See `CounterState.merge`.
    ///
    /// - Parameters: the columns of the key, and the expressions of the given state.
    static func merge(
        _ counter: String,
        _ window: String,
        with otherCounter: String,
        _ otherWindow: String
    ) -> String {
        let (ahead, behind) = ("\(otherCounter) - \(counter)", "\(counter) - \(otherCounter)")
        return """
            counter_window = CASE
                WHEN \(otherCounter) > \(counter) THEN \(otherWindow)
                    | \(shifted(window, by: ahead)) | \(mark(ahead))
                WHEN \(otherCounter) < \(counter) THEN \(window)
                    | \(shifted(otherWindow, by: behind)) | \(mark(behind))
                ELSE \(window) | \(otherWindow) END,
            counter = CASE WHEN \(otherCounter) > \(counter) THEN \(otherCounter)
                ELSE \(counter) END
            """
    }

    /// Writes counters that were used in memory while the database failed. A key that was deleted
    /// meanwhile keeps no time of its last use.
    static func statement(_ changes: [CounterChange]) -> DatabaseStatement {
        DatabaseStatement(
            """
            WITH asked AS (
                SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[])
                    AS a (key, counter, seen, used_at)
            ), locked AS (
                SELECT a.*, k.counter AS highest, k.counter_window AS before
                FROM keys k JOIN asked a ON a.key = k.id ORDER BY k.id FOR UPDATE OF k
            )
            UPDATE keys k SET \(merge("l.highest", "l.before", with: "l.counter", "l.seen")),
                last_used_at = CASE WHEN k.deleted_at IS NOT NULL THEN NULL
                    WHEN k.last_used_at >= l.used_at THEN k.last_used_at ELSE l.used_at END
            FROM locked l WHERE k.id = l.key
            """,
            [
                .numbers(changes.map(\.row)),
                .numbers(changes.map { Int64($0.counters.highest.rawValue) }),
                .numbers(changes.map { Int64(bitPattern: $0.counters.seen) }),
                .numbers(changes.map(\.usedAt)),
            ]
        )
    }
}
