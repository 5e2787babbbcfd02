internal import Cryptography
internal import DeviceKey
internal import Tokens

/// One key in memory: 128 bytes with its padding.
struct KeyEntry {
    /// Flags in one byte, since no other is free.
    private struct Marks: OptionSet {
        let rawValue: UInt8

        static let hasContext = Marks(rawValue: 1)
        static let lostAnchor = Marks(rawValue: 2)
        static let isRecent = Marks(rawValue: 4)
        static let isAhead = Marks(rawValue: 8)
        static let isAndroid = Marks(rawValue: 16)
    }

    let id: KeyID
    var row: Int64
    var counters: CounterState
    let app: AppNumber
    // Small values fill the four bytes before the key, whose words begin at a multiple of eight.
    var risk: KeyRisk
    let environment: KeyEnvironment
    var standing: KeyStanding
    private var marks: Marks
    let publicKey: P256PublicKey

    init(_ row: KeyRow) {
        id = row.keyID
        self.row = row.row
        counters = row.counters
        app = row.app
        publicKey = row.publicKey
        risk = row.risk
        environment = row.environment
        standing = row.standing
        marks = row.anchor == .lost ? .lostAnchor : []
        if row.platform == .android { marks.insert(.isAndroid) }
    }

    /// Whether the shard has a context of this key.
    var hasContext: Bool {
        get { marks.contains(.hasContext) }
        set { if newValue { marks.insert(.hasContext) } else { marks.remove(.hasContext) } }
    }

    /// Whether it was looked up since the clock hand of a bounded shard passed.
    var isRecent: Bool {
        get { marks.contains(.isRecent) }
        set { if newValue { marks.insert(.isRecent) } else { marks.remove(.isRecent) } }
    }

    /// Whether a use was decided here that the journal may not know yet.
    var isAhead: Bool {
        get { marks.contains(.isAhead) }
        set { if newValue { marks.insert(.isAhead) } else { marks.remove(.isAhead) } }
    }

    /// Whether the counters are known to be the last ones.
    var anchor: CounterAnchor { marks.contains(.lostAnchor) ? .lost : .held }

    /// The counters are known to be the last ones.
    mutating func hold() { marks.remove(.lostAnchor) }

    func stored(context: [UInt8]?) -> StoredKey {
        StoredKey(
            platform: marks.contains(.isAndroid) ? .android : .apple,
            publicKey: publicKey,
            app: app,
            environment: environment,
            counters: counters,
            isRevoked: standing == .revoked,
            context: context,
            risk: risk,
            anchor: anchor,
            row: row
        )
    }

    /// Why the counter can't be used; `nil` when it is free.
    ///
    /// Without a counter the challenge makes a use good once. Without both, a replay can't be
    /// detected, so every use counts as one.
    func refusal(
        _ counter: SignCounter?,
        _ rule: StoreCounterRule,
        hasChallenge: Bool
    ) -> ConsumeRefusal? {
        switch standing {
        case .active: break
        case .revoked: return .revoked
        case .deleted: return .unknown
        }
        guard let counter else { return hasChallenge ? nil : .replayed }
        switch anchor {
        case .held: return counters.admits(counter, rule) ? nil : .replayed
        case .lost:
            // Counters up to the highest known one were signed before the copy.
            guard counters.admits(counter, .strict) else { return .replayed }
            return hasChallenge ? nil : .unanchored
        }
    }

    /// Spends the challenge, then uses the counter, which is free: both or neither.
    ///
    /// - `now`: second of Unix time.
    mutating func use(
        _ counter: SignCounter?,
        challenge: ChallengeSerial?,
        issuer: ChallengeIssuer,
        now: Int64
    ) -> Result<CounterChange, ConsumeRefusal> {
        switch challenge.map(issuer.spend) ?? .spent {
        case .spent: break
        case .spentBefore: return .failure(.challengeSpent)
        case .noRoom: return .failure(.challengesExhausted)
        }
        if let counter {
            counters.use(counter)
            // Any counter below may have been used after the copy.
            if anchor == .lost { counters.merge(CounterState(highest: counter, seen: .max)) }
        }
        hold()
        isAhead = true
        return .success(CounterChange(row: row, counters: counters, usedAt: now))
    }
}

/// Whether a key may be used. Unlike counters it may change both ways, but only by commands.
package enum KeyStanding: UInt8, Hashable, Sendable {
    case active
    /// Refused as a known key.
    case revoked
    /// Refused like an unknown key. It never comes back: if it were enrolled or imported again, its
    /// old assertions would be admitted once more.
    case deleted
}
