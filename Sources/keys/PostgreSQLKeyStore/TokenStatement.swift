internal import Encodings
internal import KeyStore
internal import Signatures

/// The statement that spends tokens of other issuers.
///
/// A spent token is a row among the spent challenges, with a purpose of its own: the same floor and
/// the same pruner serve both. Of its digest there is room for 16 bytes, which no client chooses:
/// an issuer has signed what is hashed.
///
/// Rows are inserted in their order, and after those of challenges, so that two gateways can't
/// deadlock.
enum TokenStatement {
    /// After the raw values of `ChallengePurpose`.
    private static let purpose: Int64 = 64

    static func statement(_ tokens: [SpentToken]) -> DatabaseStatement {
        let names = tokens.map { name($0.digest) }
        return DatabaseStatement(
            """
            INSERT INTO spent_challenges (purpose, epoch, number, expires_at)
            SELECT \(purpose), a.epoch, a.number, a.expiry
            FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS a (epoch, number, expiry)
            WHERE a.expiry > (SELECT f.expiry FROM challenge_floor f)
            ORDER BY a.epoch, a.number
            ON CONFLICT (epoch, number, purpose) DO NOTHING
            RETURNING epoch, number
            """,
            [
                .numbers(names.map { $0.epoch }), .numbers(names.map { $0.number }),
                .numbers(tokens.map { $0.end }),
            ]
        )
    }

    /// Whether each token was fresh.
    static func answers(
        _ rows: DatabaseRows,
        _ tokens: [SpentToken]
    ) throws(JournalError) -> [Bool] {
        var inserted: Set<Name> = []
        for row in rows {
            inserted.insert(Name(epoch: try row.present(0), number: try row.present(1)))
        }
        let unspent = Set(tokens.map(\.digest).filter { inserted.contains(name($0)) })
        return CommitAnswer.freshness(of: tokens, unspent: unspent)
    }

    /// A page of the spent tokens, in the order of their names.
    static func page(after last: SpentToken?, limit: Int) -> DatabaseStatement {
        let start = last.map { Self.name($0.digest) } ?? Name(epoch: .min, number: .min)
        return DatabaseStatement(
            """
            SELECT epoch, number, expires_at FROM spent_challenges
            WHERE purpose = \(purpose) AND (epoch, number) > ($1, $2)
            ORDER BY epoch, number LIMIT $3
            """,
            [.number(start.epoch), .number(start.number), .number(Int64(limit))]
        )
    }

    /// The tokens of a page, with the digests' first 16 bytes.
    static func tokens(_ rows: DatabaseRows) throws(JournalError) -> [SpentToken] {
        var tokens: [SpentToken] = []
        for row in rows {
            var bytes: [UInt8] = []
            for column in 0..<2 { bytes.append(word: UInt64(bitPattern: try row.present(column))) }
            bytes += [UInt8](repeating: 0, count: 16)
            guard let digest = SHA256Digest(bytes: bytes) else { continue }
            tokens.append(SpentToken(digest, end: try row.present(2)))
        }
        return tokens
    }

    private struct Name: Hashable {
        let epoch: Int64
        let number: Int64
    }

    private static func name(_ digest: SHA256Digest) -> Name {
        let second = digest.array.span.word(at: 8)
        return Name(epoch: Int64(bitPattern: digest.firstWord), number: Int64(bitPattern: second))
    }
}

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
        let now = FleetDatabase.now
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
