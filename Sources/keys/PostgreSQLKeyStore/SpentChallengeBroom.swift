/// Which piece of the spent challenges is removed next. They stay for an hour beyond their expiry,
/// since the clocks of gateways differ.
struct SpentChallengeBroom {
    private static let marginSeconds: Int64 = 3_600
    private static let piece: Int64 = 10_000
    private static let pause = Duration.seconds(10)

    private let clock: @Sendable () -> Int64
    private var next = ContinuousClock.now

    /// - clock: the second of Unix time.
    init(clock: @escaping @Sendable () -> Int64) { self.clock = clock }

    /// The statement that removes a piece; `nil` when it is too early.
    func piece() -> DatabaseStatement? {
        guard ContinuousClock.now >= next else { return nil }
        // Another gateway may remove them meanwhile; then this removes fewer.
        return DatabaseStatement(
            """
            DELETE FROM spent_challenges WHERE (epoch, number, purpose) IN (
                SELECT epoch, number, purpose FROM spent_challenges WHERE expires_at < $1
                ORDER BY expires_at LIMIT $2)
            """,
            [.number(clock() - Self.marginSeconds), .number(Self.piece)]
        )
    }

    /// The piece was removed: the next one comes at once when there is more.
    mutating func swept(_ count: Int) {
        next = count < Self.piece ? .now + Self.pause : .now
    }
}
