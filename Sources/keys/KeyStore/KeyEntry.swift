internal import Challenges
internal import Cryptography
internal import DeviceKey

/// One key in memory: 128 bytes with its padding.
struct KeyEntry {
    let id: KeyID
    let row: Int64
    var counters: CounterState
    let app: AppNumber
    /// Before the point, whose 65 bytes leave no place for it behind them.
    var risk: KeyRisk
    let publicKey: P256PublicKey
    let environment: KeyEnvironment
    var standing: KeyStanding
    /// Whether the shard has a context of this key.
    var hasContext = false

    init(_ row: KeyRow) {
        id = row.keyID
        self.row = row.row
        counters = row.counters
        app = row.app
        publicKey = row.publicKey
        risk = row.risk
        environment = row.environment
        standing = row.standing
    }

    func stored(context: [UInt8]?) -> StoredKey {
        StoredKey(
            publicKey: publicKey,
            app: app,
            environment: environment,
            counters: counters,
            isRevoked: standing == .revoked,
            context: context,
            risk: risk
        )
    }

    /// Why the counter can't be used; `nil` when it is free.
    ///
    /// Without a counter the challenge makes a use good once. With neither, nothing could tell a
    /// replay, so every use is taken for one.
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
        return counters.admits(counter, rule) ? nil : .replayed
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
        if let counter { counters.use(counter) }
        return .success(CounterChange(row: row, counters: counters, usedAt: now))
    }
}
