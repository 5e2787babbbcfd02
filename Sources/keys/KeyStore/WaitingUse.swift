internal import Challenges
internal import DeviceKey
internal import Synchronization

/// A use that waits until the journal has decided it, and what it changes in memory then.
struct WaitingUse {
    let use: CounterUse
    /// Where the key is in the table.
    let shard: KeyTable.Shard
    let hash: UInt32
    let issuer: ChallengeIssuer

    /// Why it can't be good any more, as far as this process knows; `nil` when it may be.
    ///
    /// Looked at just before the journal is asked. An earlier batch may have failed, in which the
    /// same counter stood: that one was used in memory, and the journal does not know of it yet.
    func refusal() -> ConsumeRefusal? {
        let refusal = shard.keys.withLock { keys in
            keys.find(use.keyID, hash: hash).flatMap { keys[$0].refusal(use) }
        }
        if let refusal { return refusal }
        return use.challenge.map(issuer.isSpent) == true ? .challengeSpent : nil
    }

    /// The journal has decided, and the table follows. When it has failed, it may have used them
    /// all the same: they are used in memory, if they are free there, so that the assertion is good
    /// once.
    ///
    /// - Returns: what has come of it, and what the journal is to be told later.
    func settle(_ answer: UseAnswer) -> (decision: ConsumeDecision, change: CounterChange?) {
        shard.keys.withLock { keys in
            guard let number = keys.find(use.keyID, hash: hash) else {
                return (Self.decision(answer), nil)
            }
            switch answer {
            case .used:
                // Whether the challenge is remembered here as well makes no difference.
                _ = use.challenge.map(issuer.spend)
                if let counter = use.counter { keys[number].counters.use(counter) }
                return (.admitted, nil)
            case .refused(let refusal):
                if refusal == .revoked { keys.set(.revoked, of: number) }
                return (.refused(refusal), nil)
            case .failed:
                if let refusal = keys[number].refusal(use) {
                    return (.refused(refusal), nil)
                }
                let result = keys[number].use(
                    use.counter,
                    challenge: use.challenge,
                    issuer: issuer,
                    now: use.usedAt
                )
                switch result {
                case .success(let change): return (.unassured, change)
                case .failure(let refusal): return (.refused(refusal), nil)
                }
            }
        }
    }
}

extension WaitingUse {
    /// What has come of the use of a key that has left the table meanwhile. Where the journal has
    /// failed, nothing is used here.
    private static func decision(_ answer: UseAnswer) -> ConsumeDecision {
        switch answer {
        case .used: .admitted
        case .refused(let refusal): .refused(refusal)
        case .failed: .unavailable
        }
    }
}

extension KeyEntry {
    fileprivate func refusal(_ use: CounterUse) -> ConsumeRefusal? {
        refusal(use.counter, use.rule, hasChallenge: use.challenge != nil)
    }
}
