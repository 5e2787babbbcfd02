internal import Encodings
internal import KeyStore
internal import Signatures

/// The statement that spends tokens of other issuers.
///
/// A spent token is a row among the spent challenges, with a purpose of its own: the same floor and
/// the same pruner serve both, and tables of older versions have room for it. Of its digest there
/// is room for 16 bytes, which no client chooses: an issuer has signed what is hashed.
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
