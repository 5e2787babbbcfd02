internal import DeviceKey
internal import KeyStore
internal import Tokens

/// The statement that decides uses: it checks whether counters and challenges are free, and takes
/// them, for many requests at once.
///
/// Rows are locked in the order of their numbers, and challenges are inserted in their order, so
/// that two gateways can't deadlock. It compares the counters of the locked rows. Under READ
/// COMMITTED these are the newest ones, whatever was committed since the statement began
/// (PostgreSQL manual, section 13.2.1).
enum UseStatement {
    /// The answers, in the order in which they are checked.
    private enum Answer: Int64 {
        case used = 0
        case unknown, revoked, replayed, challengeSpent

        var useAnswer: UseAnswer {
            switch self {
            case .used: .used
            case .unknown: .refused(.unknown)
            case .revoked: .refused(.revoked)
            case .replayed: .refused(.replayed)
            case .challengeSpent: .refused(.challengeSpent)
            }
        }
    }

    /// Divides uses into rounds. Each round has a key and a challenge at most once, since one
    /// statement changes a row once. Later rounds see the changes of earlier ones.
    ///
    /// - Returns: the places of the uses of each round.
    static func rounds(_ uses: [CounterAdvance]) -> [[Int]] {
        var rounds: [[Int]] = []
        var nextOfKey: [Int64: Int] = [:]
        var nextOfChallenge: [ChallengeSerial: Int] = [:]
        for (place, use) in uses.enumerated() {
            // The uses of one key, and of one challenge, stay in their order.
            let round = max(
                nextOfKey[use.row, default: 0],
                use.challenge.map { nextOfChallenge[$0, default: 0] } ?? 0
            )
            if round == rounds.count { rounds.append([]) }
            rounds[round].append(place)
            nextOfKey[use.row] = round + 1
            if let challenge = use.challenge { nextOfChallenge[challenge] = round + 1 }
        }
        return rounds
    }

    static func statement(_ uses: [CounterAdvance]) -> DatabaseStatement {
        let challenges = uses.map(\.challenge)
        return DatabaseStatement(
            sql,
            [
                .numbers(uses.map { $0.row }),
                .numbers(uses.map { $0.counter.map { Int64($0.rawValue) } }),
                .numbers(uses.map { Int64($0.rule.width) }),
                .numbers(challenges.map { $0.map { Int64($0.purpose.rawValue) } }),
                .numbers(challenges.map { $0.map { Int64(bitPattern: $0.epoch) } }),
                .numbers(challenges.map { $0.map { Int64(bitPattern: $0.number) } }),
                .numbers(challenges.map { $0?.expiry }),
                .numbers(uses.map(\.usedAt)), .bytes(uses.flatMap { $0.keyID.bytes }),
            ]
        )
    }

    /// Reads the answers, in the order of the uses.
    static func answers(_ rows: DatabaseRows, count: Int) throws(JournalError) -> [UseAnswer] {
        guard rows.count == count else {
            throw JournalError.damaged("\(rows.count) answers to \(count) uses")
        }
        return try rows.map { (row) throws(JournalError) in
            guard let answer = Answer(rawValue: try row.present(0)) else {
                throw JournalError.damaged("an answer that means nothing")
            }
            return answer.useAnswer
        }
    }

    /// The spent challenges are looked up in a hash. In a join, the planner, which expects few
    /// rows, would compare each with each.
    ///
    /// `width` 0 is the strict rule. See `CounterState.admits` and `CounterState.use`.
    ///
    /// After a failover to a standby that had not got a key yet, another key may have its number.
    /// So the key ids are compared too: 32 bytes for each use, one after the other.
    private static let sql = """
        WITH asked AS (
            SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[],
                $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[]) WITH ORDINALITY
                AS a (key, counter, width, purpose, epoch, number, expiry, used_at, place)
        ), locked AS (
            SELECT a.*, k.counter AS highest, k.counter_window AS seen, k.revoked_at,
                k.deleted_at,
                k.key_id <> substr($9, ((a.place - 1) * 32 + 1)::int, 32) AS is_other
            FROM keys k JOIN asked a ON a.key = k.id ORDER BY k.id FOR UPDATE OF k
        ), counted AS (
            SELECT *, CASE
                WHEN is_other OR deleted_at IS NOT NULL THEN 1
                WHEN revoked_at IS NOT NULL THEN 2
                WHEN counter IS NULL THEN CASE WHEN epoch IS NULL THEN 3 ELSE 0 END
                WHEN counter > highest THEN 0
                WHEN counter = highest OR highest - counter > width THEN 3
                WHEN seen >> (highest - counter - 1)::int & 1 = 1 THEN 3
                ELSE 0 END AS counter_fault
            FROM locked
        ), judged AS (
            SELECT *, CASE WHEN counter_fault = 0 AND epoch IS NOT NULL
                AND expiry <= (SELECT f.expiry FROM challenge_floor f) THEN 4
                ELSE counter_fault END AS fault
            FROM counted
        ), spent AS (
            INSERT INTO spent_challenges (purpose, epoch, number, expires_at)
            SELECT purpose, epoch, number, expiry FROM judged
            WHERE fault = 0 AND epoch IS NOT NULL ORDER BY epoch, number, purpose
            ON CONFLICT (epoch, number, purpose) DO NOTHING
            RETURNING purpose, epoch, number
        ), good AS MATERIALIZED (
            SELECT * FROM judged WHERE fault = 0 AND (epoch IS NULL
                OR (epoch, number, purpose) IN (SELECT epoch, number, purpose FROM spent))
        ), used AS (
            UPDATE keys k SET
                counter = CASE WHEN g.counter > g.highest THEN g.counter ELSE g.highest END,
                counter_window = CASE
                    WHEN g.counter IS NULL THEN g.seen
                    WHEN g.counter > g.highest THEN
                        \(CounterColumns.shifted("g.seen", by: "g.counter - g.highest"))
                        | \(CounterColumns.mark("g.counter - g.highest"))
                    ELSE g.seen | \(CounterColumns.mark("g.highest - g.counter")) END,
                last_used_at = CASE WHEN k.last_used_at >= g.used_at
                    THEN k.last_used_at ELSE g.used_at END
            FROM good g WHERE k.id = g.key
            RETURNING g.place
        )
        SELECT CASE WHEN j.fault IS NULL THEN 1 WHEN j.fault > 0 THEN j.fault
            WHEN u.place IS NULL THEN 4 ELSE 0 END::bigint
        FROM asked a LEFT JOIN judged j ON j.place = a.place LEFT JOIN used u ON u.place = a.place
        ORDER BY a.place
        """
}

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
        and otherWindow: String
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
            UPDATE keys k SET \(merge("l.highest", "l.before", with: "l.counter", and: "l.seen")),
                last_used_at = CASE WHEN k.deleted_at IS NOT NULL THEN NULL
                    WHEN k.last_used_at >= l.used_at THEN k.last_used_at ELSE l.used_at END
            FROM locked l WHERE k.id = l.key AND k.erased_under IS NULL
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

extension StoreCounterRule {
    /// The greatest distance below the highest at which an unused counter is good.
    fileprivate var width: Int {
        switch self {
        case .strict: 0
        case .window(let width): min(max(width, 1), 64)
        }
    }
}
