internal import GRDB
internal import KeyStore

/// The keys of a restored store whose counters may be too low.
///
/// When an older copy is accepted, that second is stored in `state.anchored_after`. A key that was
/// neither enrolled nor used after it has the counters of the copy: its anchor is lost. Its next
/// use needs a challenge. That use is written with its second like any use, so the key is held from
/// then on. The border is not before any second in the copy, so that a fast clock makes no key of
/// the copy look held.
struct CounterAnchors: Equatable, Sendable {
    /// Second of Unix time; 0 when no older copy was accepted.
    let second: Int64

    init(second: Int64) { self.second = second }

    /// Reads the current border.
    init(_ db: Database) throws {
        second = try Int64.fetchOne(db, sql: "SELECT anchored_after FROM state") ?? 0
    }

    /// - lastKnown: the last time the key was enrolled or used; `nil` for unknown.
    func anchor(lastKnown: Int64?) -> CounterAnchor {
        second == 0 || lastKnown ?? .min > second ? .held : .lost
    }

    /// Removes the anchor of all keys in the database.
    ///
    /// - now: second of Unix time. A key that is used within this second is held again.
    static func take(now: Int64, _ db: Database) throws {
        let logged = try CounterLog.entries(db).values.map(\.usedAt).max() ?? 0
        try db.execute(
            sql: """
                UPDATE state SET anchored_after = max(anchored_after, 1, ?1, ?2, (
                    SELECT coalesce(max(max(
                        coalesce(last_used_at, 0), coalesce(enrolled_at, 0))), 0) FROM keys))
                """,
            arguments: [now - 1, logged]
        )
    }

    /// The number of keys without an anchor.
    func lostCount(_ db: Database) throws -> Int {
        guard second > 0 else { return 0 }
        let newer = try CounterLog.entries(db)
        let rows = try Int64.fetchCursor(
            db,
            sql: """
                SELECT id FROM keys WHERE deleted_at IS NULL
                    AND max(coalesce(last_used_at, 0), coalesce(enrolled_at, 0)) <= ?
                """,
            arguments: [second]
        )
        var count = 0
        while let row = try rows.next() {
            if newer[row]?.usedAt ?? .min <= second { count += 1 }
        }
        return count
    }
}
