internal import Foundation
internal import GRDB
internal import KeyStore
internal import Signatures

/// The table of spent tokens of other issuers, and its pruner.
struct SpentTokens {
    /// A moment, and the second of Unix time that the wall clock said then.
    private struct Sample {
        let moment: ContinuousClock.Instant
        let second: Int64
    }

    /// Rows that one piece removes, and the time between two pieces.
    private static let piece = 1_000
    private static let pause = Duration.seconds(10)
    /// Seconds for which a token is remembered beyond its end, by the wall clock and by one that is
    /// never set. A wall clock may be ahead for a while, and then be set back.
    private static let margin: Int64 = 3_600

    private var next: ContinuousClock.Instant?
    /// The last two, the earlier one first. At least ``margin`` lies between them.
    private var samples: [Sample] = []

    /// Spends tokens; says for each whether it was fresh. One that was copied from a store which
    /// keeps a part of its digest is known by that part.
    static func spend(_ tokens: [SpentToken], _ db: Database) throws -> [Bool] {
        guard !tokens.isEmpty else { return [] }
        let statement = try db.cachedStatement(
            sql: """
                INSERT INTO spent_tokens (digest, ends_at) SELECT ?1, ?2
                WHERE NOT EXISTS (SELECT 1 FROM spent_tokens WHERE digest = ?3)
                ON CONFLICT DO NOTHING
                """
        )
        return try tokens.map { token in
            try statement.execute(arguments: [
                Data(token.digest.array), token.end, Data(token.shortDigest),
            ])
            return db.changesCount == 1
        }
    }

    /// A page of the spent tokens, in the order of their digests.
    static func page(after last: SpentToken?, limit: Int, _ db: Database) throws -> [SpentToken] {
        // All digests are 32 bytes, so all follow the empty one.
        let start = Data(last?.digest.array ?? [])
        let rows = try Row.fetchCursor(
            db,
            sql: """
                SELECT digest, ends_at FROM spent_tokens WHERE digest > ?
                ORDER BY digest LIMIT ?
                """,
            arguments: [start, limit]
        )
        return try Array(
            rows.map { row in
                let bytes: Data = row[0]
                guard let digest = SHA256Digest(bytes: bytes) else {
                    throw JournalError(.damaged, "the digest of a token is not 32 bytes")
                }
                return SpentToken(digest, end: row[1])
            }
        )
    }

    /// Removes a piece of those that have ended, when it is time.
    ///
    /// - now: second of Unix time.
    mutating func prune(
        _ database: KeyDatabase,
        now: Int64,
        at moment: ContinuousClock.Instant = .now
    ) throws(JournalError) {
        if let next, moment < next { return }
        if samples.last.map({ moment - $0.moment >= .seconds(Self.margin) }) ?? true {
            samples = Array(samples.suffix(1)) + [Sample(moment: moment, second: now)]
        }
        guard samples.count == 2, let before = samples.first else {
            next = moment + Self.pause
            return
        }
        let end = min(before.second, now - Self.margin)
        let count = try database.write { db in
            try db.cachedStatement(
                sql: """
                    DELETE FROM spent_tokens WHERE digest IN (
                        SELECT digest FROM spent_tokens WHERE ends_at <= ? LIMIT ?)
                    """
            ).execute(arguments: [end, Self.piece])
            return db.changesCount
        }
        next = count < Self.piece ? moment + Self.pause : moment
    }
}
