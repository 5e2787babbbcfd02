package import AppAttest
package import Cryptography

/// Which device tokens were used: each is good for one request.
///
/// A device that is flagged could otherwise live on one token of another device. What is remembered
/// is bounded in number and time, in all and for each key that has signed. A key that is over its
/// share, and a full memory, forget their oldest: to have a token forgotten, as many others that
/// Apple takes have to be used. Tokens that Apple didn't take are forgotten at once.
package struct UsedTokens: Sendable {
    package struct Limits: Hashable, Sendable {
        /// Tokens in all. Each takes some 200 bytes.
        package var tokensMax = 100_000
        /// Tokens of one key.
        package var perKeyMax = 256
        /// How long a token is remembered, in seconds.
        package var lifetime: Int64 = 86_400
        /// Tokens of one key that Apple is asked about at once. A client that sent more would fill
        /// the line of calls, and have its other requests forwarded where the rule forwards on an
        /// error.
        package var underWayPerKeyMax = 4

        package init() {}
    }

    /// What becomes of a token that a request shows.
    package enum Beginning: Hashable, Sendable {
        /// Apple is to be asked.
        case begun
        /// The token came before.
        case used
        /// Apple is asked about as many tokens of the key as is allowed.
        case crowded
    }

    private struct Used {
        let keyID: KeyID
        /// Seconds of a clock that never goes back.
        let at: Int64
        let serial: UInt64
    }

    private let limits: Limits
    private var used: [SHA256Digest: Used] = [:]
    /// Of which it is not known yet whether Apple takes them. There are no more than requests that
    /// wait for Apple.
    private var underWay: Set<SHA256Digest> = []
    /// How many of them each key has shown.
    private var underWayOf: [KeyID: Int] = [:]
    /// In the order in which they were used. Some have left `used` before their turn.
    private var order: [(token: SHA256Digest, serial: UInt64)] = []
    private var oldest = 0
    /// The same of each key.
    private var ofKey: [KeyID: [SHA256Digest]] = [:]
    private var lastSerial: UInt64 = 0

    /// Entries that may stand in ``order`` beside those that are remembered.
    private static let idleMax = 64

    package init(_ limits: Limits = Limits()) { self.limits = limits }

    /// Tokens that are remembered.
    package var count: Int { used.count }

    /// Entries of the order, those included that have left.
    var entries: Int { order.count }

    /// A request that the key has signed shows the token.
    package mutating func begin(
        _ token: SHA256Digest,
        of keyID: KeyID,
        now: Int64
    ) -> Beginning {
        forgetOver(now: now)
        guard used[token] == nil, !underWay.contains(token) else { return .used }
        let others = underWayOf[keyID, default: 0]
        guard others < limits.underWayPerKeyMax else { return .crowded }
        underWay.insert(token)
        underWayOf[keyID] = others + 1
        return .begun
    }

    /// Apple has answered about the token, or not.
    ///
    /// - isSpent: whether Apple has told the bits: only then has the token been of use.
    package mutating func end(_ token: SHA256Digest, of keyID: KeyID, isSpent: Bool, now: Int64) {
        guard underWay.remove(token) != nil else { return }
        let others = underWayOf[keyID, default: 1] - 1
        underWayOf[keyID] = others > 0 ? others : nil
        guard isSpent else { return }
        forgetOver(now: now)
        if let own = ofKey[keyID], own.count >= limits.perKeyMax, let first = own.first {
            forget(first)
        }
        while used.count >= limits.tokensMax, forgetOldest() {}
        lastSerial += 1
        used[token] = Used(keyID: keyID, at: now, serial: lastSerial)
        ofKey[keyID, default: []].append(token)
        compact()
        order.append((token, lastSerial))
    }

    private mutating func forget(_ token: SHA256Digest) {
        guard let entry = used.removeValue(forKey: token) else { return }
        // A key's tokens leave in their order, so that is the first.
        ofKey[entry.keyID]?.removeAll { $0 == token }
        if ofKey[entry.keyID]?.isEmpty == true { ofKey[entry.keyID] = nil }
    }

    /// Forgets the oldest; `false` when there is none.
    private mutating func forgetOldest() -> Bool {
        while oldest < order.count {
            let entry = order[oldest]
            oldest += 1
            guard used[entry.token]?.serial == entry.serial else { continue }
            forget(entry.token)
            return true
        }
        return false
    }

    private mutating func forgetOver(now: Int64) {
        while oldest < order.count {
            let entry = order[oldest]
            if let found = used[entry.token], found.serial == entry.serial {
                guard now - found.at >= limits.lifetime else { return }
                forget(entry.token)
            }
            oldest += 1
        }
    }

    /// Forgets the entries that have left, once they are as many as those that are remembered.
    private mutating func compact() {
        guard order.count > 2 * used.count + Self.idleMax else { return }
        order = order[oldest...].filter { used[$0.token]?.serial == $0.serial }
        oldest = 0
    }
}
