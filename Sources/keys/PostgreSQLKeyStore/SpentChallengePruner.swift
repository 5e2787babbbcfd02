/// Chooses the next piece of the spent challenges to remove.
///
/// A challenge is removed when every gateway's use of it is refused, whatever the gateway's clock
/// says. So the floor in the database is raised first: the statement that decides uses refuses
/// challenges that expire at or below it. They are removed with the next rise, at least a minute
/// later, when no statement with the older floor can still run.
struct SpentChallengePruner {
    /// The greatest difference between the clocks of gateways at which no good challenge is
    /// refused.
    private static let marginSeconds: Int64 = 3_600
    private static let piece: Int64 = 10_000
    private static let pause = Duration.seconds(10)

    private let clock: @Sendable () -> Int64
    private var next = ContinuousClock.now

    /// - clock: the second of Unix time.
    init(clock: @escaping @Sendable () -> Int64) { self.clock = clock }

    /// The statements that remove a piece; the last one answers the number of removed challenges.
    /// `nil` when it is too early.
    func piece() -> [DatabaseStatement]? {
        guard ContinuousClock.now >= next else { return nil }
        return [Self.rise(to: clock() - Self.marginSeconds), Self.removal]
    }

    /// The earlier of two clocks counts, so that a gateway whose clock is ahead does not make
    /// others refuse good challenges.
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

    /// Another gateway may remove some meanwhile; then this removes fewer.
    private static let removal = DatabaseStatement(
        """
        DELETE FROM spent_challenges WHERE (epoch, number, purpose) IN (
            SELECT epoch, number, purpose FROM spent_challenges
            WHERE expires_at <= (SELECT removable FROM challenge_floor)
            ORDER BY expires_at LIMIT $1)
        """,
        [.number(piece)]
    )

    /// The piece was removed: the next one follows at once when there are more.
    mutating func swept(_ count: Int) { next = count < Self.piece ? .now + Self.pause : .now }
}
