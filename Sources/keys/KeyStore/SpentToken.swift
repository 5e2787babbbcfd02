package import Signatures

/// A token of another issuer that is good once, for the journal that remembers it.
///
/// The journal decides in one step whether the token is fresh, and spends it: whatever crashes, and
/// however many gateways share the store, it is fresh once.
package struct SpentToken: Hashable, Sendable {
    /// Names the token: SHA-256 over what tells it from all others.
    package let digest: SHA256Digest
    /// Second of Unix time from which on no gateway accepts it: then it may be forgotten.
    package let end: Int64

    package init(_ digest: SHA256Digest, end: Int64) {
        self.digest = digest
        self.end = end
    }

    /// A token of no issuer. It is spent to find out whether a journal that has failed works again.
    /// Its end is past, so it is soon forgotten.
    static let trial = SpentToken(SHA256.digest(of: Array("trial".utf8)), end: 0)

    /// The digest where a store keeps only its first 16 bytes: the others are zero.
    package var shortDigest: [UInt8] {
        Array(digest.array.prefix(16)) + [UInt8](repeating: 0, count: 16)
    }
}

/// The result of spending a token.
package enum SpendOutcome: CaseIterable, Hashable, Sendable {
    case fresh
    case spent
    /// The store failed, and the token may be spent or not.
    case failed
}

extension KeyTable {
    /// Spends a token, and starts the writer.
    ///
    /// Call it after the token was verified: a stranger must not cause writes.
    ///
    /// - completion: called on the writer's queue, when the token is durably spent, or with the
    ///   failure.
    package func spend(
        _ token: SpentToken,
        completion: @escaping @Sendable (SpendOutcome) -> Void
    ) {
        committer.spend(token) { result in
            switch result {
            case .success(true): completion(.fresh)
            case .success(false): completion(.spent)
            case .failure: completion(.failed)
            }
        }
    }
}

extension CommitAnswer {
    /// Whether each token of a batch was fresh. Of two equal ones the first may be.
    ///
    /// - unspent: the digests that were not spent before.
    package static func freshness(of tokens: [SpentToken], unspent: Set<SHA256Digest>) -> [Bool] {
        var unspent = unspent
        return tokens.map { unspent.remove($0.digest) != nil }
    }
}
