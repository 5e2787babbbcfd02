/// Which piece of the spent challenges is removed next.
///
/// A challenge is forgotten when every gateway's use of it is refused, whatever the time is there.
/// So the floor in the database is raised first: the statement that decides uses refuses what
/// expires at or below it. Challenges are removed with the next rise, a minute later or more, when
/// no statement can still run that has read the older floor.
struct SpentChallengePruner {
    /// How far the clocks of gateways may be apart without a good challenge being refused.
    private static let marginSeconds: Int64 = 3_600
    private static let piece: Int64 = 10_000
    private static let pause = Duration.seconds(10)

    private let clock: @Sendable () -> Int64
    private var next = ContinuousClock.now

    /// - clock: the second of Unix time.
    init(clock: @escaping @Sendable () -> Int64) { self.clock = clock }

    /// The statements that remove a piece, of which the last one says how many it has removed;
    /// `nil` when it is too early.
    func piece() -> [DatabaseStatement]? {
        guard ContinuousClock.now >= next else { return nil }
        return [Self.rise(to: clock() - Self.marginSeconds), Self.removal]
    }

    /// Of two clocks the one that is behind counts, so that a gateway whose clock is ahead does not
    /// have good challenges refused.
    private static func rise(to expiry: Int64) -> DatabaseStatement {
        let now = "extract(epoch FROM now())::bigint"
        return DatabaseStatement(
            """
            UPDATE challenge_floor SET removable = expiry, raised_at = \(now),
                expiry = greatest(expiry, least($1, \(now) - $2))
            WHERE raised_at <= \(now) - 60
            """,
            [.number(expiry), .number(Self.marginSeconds)]
        )
    }

    /// Another gateway may remove them meanwhile; then this removes fewer.
    private static let removal = DatabaseStatement(
        """
        DELETE FROM spent_challenges WHERE (epoch, number, purpose) IN (
            SELECT epoch, number, purpose FROM spent_challenges
            WHERE expires_at <= (SELECT removable FROM challenge_floor)
            ORDER BY expires_at LIMIT $1)
        """,
        [.number(piece)]
    )

    /// The piece was removed: the next one comes at once when there is more.
    mutating func swept(_ count: Int) {
        next = count < Self.piece ? .now + Self.pause : .now
    }
}
