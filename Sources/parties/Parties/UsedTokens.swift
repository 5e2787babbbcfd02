package import DeviceKey
package import Encodings
package import HTTPWire
package import Signatures

/// The used tokens of clients about which another party is asked: each is good for one request.
///
/// Otherwise a flagged device could use one token of another device again and again, and one solved
/// test for people could serve a thousand requests. A token that the party accepted is remembered
/// for a time and never forgotten earlier, so no client can displace one by using others. The
/// memory is bounded: the rate of calls limits the tokens that the party can accept in that time.
/// Tokens that the party did not accept are forgotten at once.
///
/// Tokens are forgotten together with all others of the same hour. So each call does a bounded
/// amount of work: it checks each hour, adds one token, and frees at most one hour.
package struct UsedTokens: Sendable {
    package struct Limits: Hashable, Sendable {
        /// The least time for which a token is remembered, in seconds. Default a day.
        package var lifetime: Int64 = 86_400
        /// Tokens that were used within this number of seconds are forgotten together. Default an
        /// hour.
        package var spell: Int64 = 3_600
        /// The most tokens in total. Each takes 11 to 22 bytes.
        package var tokensMax: Int
        /// The most tokens of one key about which the party is asked at the same time, and of all
        /// clients at one address. A client that sent more would fill the line of calls, and so
        /// make other requests forwarded where the rule forwards on an error. Sixteen calls take a
        /// third of a second at the default rate. A call waits for half of its time, for a rule's
        /// device by default 1 s.
        package var underWayPerKeyMax = 4
        package var underWayPerAddressMax = 16

        package init(tokensMax: Int) { self.tokensMax = tokensMax }

        /// The most tokens that the party can accept while a token is remembered, with calls at
        /// this rate to each of these hosts: with the defaults 90,000 tokens for each call per
        /// second to one of them.
        package init(
            callsPerSecond: Int,
            hosts: Int,
            lifetime: Int64 = 86_400,
            spell: Int64 = 3_600
        ) {
            let seconds = Int(lifetime + spell)
            let (count, isTooMany) = callsPerSecond.multipliedReportingOverflow(by: seconds * hosts)
            tokensMax = isTooMany ? .max : count
            (self.lifetime, self.spell) = (lifetime, spell)
        }
    }

    /// The result for a token that a request shows.
    package enum Beginning: Hashable, Sendable {
        /// Ask the party.
        case begun
        /// The token was used before.
        case used
        /// The most allowed queries about tokens of the key, or of the address, are under way.
        case crowded
        /// The memory of used tokens is full.
        case full
    }

    /// Tokens that were used within one spell, by the first eight bytes of their digests. A token
    /// that shares these bytes with another one is refused. With ten million remembered tokens that
    /// happens to one of 10^12.
    private struct Spell {
        /// Seconds of a clock that never goes back.
        let since: Int64
        var count = 0
        /// By the last byte. A growing set copies itself, so each set is small.
        private var shards = [Set<UInt64>](repeating: [], count: 256)

        init(since: Int64) { self.since = since }

        var names: [UInt64] { shards.flatMap { $0 } }

        func contains(_ name: UInt64) -> Bool {
            shards[Int(truncatingIfNeeded: name & 0xFF)].contains(name)
        }

        /// Whether the token was new.
        mutating func insert(_ name: UInt64) -> Bool {
            guard shards[Int(truncatingIfNeeded: name & 0xFF)].insert(name).inserted else {
                return false
            }
            count += 1
            return true
        }

        /// Whether the token was there.
        mutating func remove(_ name: UInt64) -> Bool {
            let place = Int(truncatingIfNeeded: name & 0xFF)
            guard shards[place].remove(name) != nil else { return false }
            count -= 1
            return true
        }
    }

    /// More spells than a lifetime has, including those that are kept a moment longer.
    private static let spellsMax = 64

    private var limits: Limits
    /// The oldest first.
    private var spells: [Spell] = []
    /// Tokens of which it is unknown yet whether the party accepts them. There are no more than
    /// requests and calls that wait for it.
    private var underWay: Set<SHA256Digest> = []
    /// The number of these of each key and each address.
    private var underWayOfKey: [KeyID: Int] = [:]
    private var underWayOfAddress: [IPAddress: Int] = [:]
    package private(set) var count = 0

    package init(_ limits: Limits) { self.limits = limits }

    /// Spells that are remembered or not freed yet.
    var spellCount: Int { spells.count }

    /// The rate of calls has changed. Remembered tokens stay, also when there is less room than
    /// before.
    package mutating func raise(tokensMax: Int) {
        limits.tokensMax = max(limits.tokensMax, tokensMax)
    }

    /// A request shows a token.
    ///
    /// - client: the client; `nil` for an operator's call.
    package mutating func begin(
        _ token: SHA256Digest,
        of client: TokenClient?,
        now: Int64
    ) -> Beginning {
        forgetOldest(now: now)
        guard !isUsed(token, now: now), !underWay.contains(token) else { return .used }
        if let client {
            let ofKey = client.keyID.flatMap { underWayOfKey[$0] }
            let ofAddress = client.network.flatMap { underWayOfAddress[$0] }
            guard (ofKey ?? 0) < limits.underWayPerKeyMax,
                (ofAddress ?? 0) < limits.underWayPerAddressMax
            else { return .crowded }
        }
        guard count + underWay.count < limits.tokensMax else { return .full }
        underWay.insert(token)
        if let client {
            if let keyID = client.keyID { underWayOfKey[keyID, default: 0] += 1 }
            if let network = client.network { underWayOfAddress[network, default: 0] += 1 }
        }
        return .begun
    }

    /// The query about a token has ended, with or without an answer.
    ///
    /// - isSpent: whether the party has accepted the token: only then it is used up.
    package mutating func end(
        _ token: SHA256Digest,
        of client: TokenClient?,
        isSpent: Bool,
        now: Int64
    ) {
        guard underWay.remove(token) != nil else { return }
        if let client {
            if let keyID = client.keyID { Self.leave(&underWayOfKey[keyID]) }
            if let network = client.network { Self.leave(&underWayOfAddress[network]) }
        }
        guard isSpent else { return }
        remember(token.firstWord, now: now)
    }

    private mutating func remember(_ name: UInt64, now: Int64) {
        if spells.last.map({ now &- $0.since >= limits.spell }) ?? true {
            spells.append(Spell(since: now))
        }
        if spells[spells.count - 1].insert(name) { count += 1 }
    }

    // MARK: One process after the other

    /// The predecessor shows a token, which it has counted itself. The token is used from now on:
    /// that process may end without reporting the answer.
    package mutating func claim(_ token: SHA256Digest, now: Int64) -> Beginning {
        forgetOldest(now: now)
        guard !isUsed(token, now: now), !underWay.contains(token) else { return .used }
        guard count + underWay.count < limits.tokensMax else { return .full }
        remember(token.firstWord, now: now)
        return .begun
    }

    /// The predecessor has claimed a token, and the party did not accept it.
    package mutating func release(_ token: SHA256Digest) {
        for index in spells.indices where spells[index].remove(token.firstWord) { count -= 1 }
    }

    /// Writes the state for the successor, whose clock is the same. The party may accept each
    /// token that is under way: so these are used there until ``release(_:)``.
    package func write(to out: inout ByteWriter, now: Int64) {
        let begun = underWay.map(\.firstWord)
        for (since, names) in spells.map({ ($0.since, $0.names) }) + [(now, begun)] {
            out.byte(1)
            out.number(since)
            out.word(UInt64(names.count))
            for name in names { out.word(name) }
        }
        out.byte(0)
    }

    /// Reads the state of another process. No token may have been used here.
    package mutating func take(from state: inout ByteReader, now: Int64) throws(ByteReader.Fault) {
        while try state.flag() {
            let oldest = now &- limits.spell &- limits.lifetime
            let since = min(max(try state.number(), oldest), now)
            let names = try state.word()
            guard spells.count <= Self.spellsMax, names <= UInt64(state.left) / 8 else {
                throw ByteReader.Fault()
            }
            var spell = Spell(since: max(since, spells.last?.since ?? since))
            for _ in 0..<names { _ = spell.insert(try state.word()) }
            guard spell.count > 0 else { continue }
            count += spell.count
            spells.append(spell)
        }
    }

    private static func leave(_ count: inout Int?) {
        let others = (count ?? 1) - 1
        count = others > 0 ? others : nil
    }

    private func isUsed(_ token: SHA256Digest, now: Int64) -> Bool {
        let name = token.firstWord
        return spells.contains { !isOver($0, now: now) && $0.contains(name) }
    }

    /// Whether the last token of a spell has been remembered long enough.
    private func isOver(_ spell: Spell, now: Int64) -> Bool {
        now &- spell.since >= limits.spell &+ limits.lifetime
    }

    private mutating func forgetOldest(now: Int64) {
        guard let first = spells.first, isOver(first, now: now) else { return }
        count -= first.count
        spells.removeFirst()
    }
}

/// A client that shows tokens.
package struct TokenClient: Hashable, Sendable {
    /// The key that has signed the request; `nil` for a request without a signature.
    package let keyID: KeyID?
    /// The client's address, an IPv6 address as its /64; `nil` where it is unknown.
    package let network: IPAddress?

    package init(_ keyID: KeyID?, at address: IPAddress?) {
        self.keyID = keyID
        network = address.map { address in
            switch address {
            case .v4: address
            case .v6(let high, _): .v6(high: high, low: 0)
            }
        }
    }
}
