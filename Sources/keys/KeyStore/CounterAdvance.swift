package import DeviceKey
internal import Synchronization
package import Tokens

/// The use of a counter and a challenge that a journal decides: both or neither.
package struct CounterAdvance: Hashable, Sendable {
    /// The key, as ``KeyRow/row``.
    package let row: Int64
    package let keyID: KeyID
    /// `nil` when the platform's keys count nothing.
    package let counter: SignCounter?
    package let rule: StoreCounterRule
    /// `nil` when the request has none.
    package let challenge: ChallengeSerial?
    /// Second of Unix time.
    package let usedAt: Int64

    package init(_ use: CounterUse, row: Int64, usedAt: Int64) {
        (self.row, self.usedAt) = (row, usedAt)
        (keyID, counter, rule, challenge) = (use.keyID, use.counter, use.rule, use.challenge)
    }
}

/// A journal's answer to a use.
package enum UseAnswer: Hashable, Sendable {
    /// Both were free. They are used now, and that is durable.
    case used
    /// Nothing has changed.
    case refused(ConsumeRefusal)
    /// It is unknown whether they are used.
    case failed(JournalError)
}

/// The decision about a counter and a challenge. Only `admitted` and `unassured` have used them.
package enum ConsumeDecision: Equatable, Sendable {
    /// Both were free and are used now.
    case admitted
    /// One was not free. Nothing was consumed.
    case refused(ConsumeRefusal)
    /// The store can't say, or has no room for another change. Nothing was consumed.
    ///
    /// Comes before every refusal when the store can't say, and before `challengeSpent` when there
    /// is no room; with ``FailingStore/useInMemory`` only for a key that is not here.
    case unavailable
    /// Both were free as far as this process knows, and are used in its memory. The store can't say
    /// whether the key was revoked meanwhile, has no room for the change, or has failed to write
    /// it.
    case unassured
}

/// Why a counter and a challenge can't be used, in the order in which the reasons are reported.
package enum ConsumeRefusal: Error, CaseIterable, Hashable, Sendable {
    /// The key is not enrolled.
    case unknown
    case revoked
    /// The counter was used before, or is too far below the highest.
    case replayed
    case challengeSpent
    /// No more spent challenges can be remembered now.
    case challengesExhausted
    /// The key's counters come from an older copy of the store, and the use has no challenge.
    /// Reported after `replayed`. It is the last case, since another version of this program may
    /// read its number.
    case unanchored
}

/// The use of a counter and a challenge by a key.
package struct CounterUse: Sendable {
    var keyID: KeyID
    /// ``StoredKey/row`` from ``KeyTable/find(_:)``. It is all that a deciding journal needs if the
    /// key was evicted since.
    package var row: Int64?
    var counter: SignCounter?
    var rule: StoreCounterRule
    var challenge: ChallengeSerial?

    /// - counter: `nil` when the platform's keys count nothing; then only the challenge makes the
    ///   use good once.
    /// - challenge: the valid challenge from ``ChallengeIssuer/examine(_:purpose:now:)``; `nil`
    ///   when the request has none.
    package init(
        of keyID: KeyID,
        row: Int64? = nil,
        counter: SignCounter?,
        rule: StoreCounterRule,
        challenge: ChallengeSerial?
    ) {
        (self.keyID, self.row) = (keyID, row)
        (self.counter, self.rule, self.challenge) = (counter, rule, challenge)
    }
}

/// The answer of ``KeyTable`` to the use of a counter and a challenge.
package enum ConsumeOutcome: Equatable, Sendable {
    /// The decision is final.
    case decided(ConsumeDecision)
    /// The commit with this ticket reports the decision: see ``CommitListener``. Whether the use is
    /// already good, except for the disk, depends on the journal: see ``DecisionMoment``.
    case pending(CommitTicket)
}

/// The treatment of a request whose key is known while the store fails: another process's changes
/// can't be read, or there is no room for a change.
package enum FailingStore: Hashable, Sendable {
    /// Nothing is consumed.
    case decline
    /// Counter and challenge are used in memory nevertheless, so that the assertion is good once.
    case useInMemory
}

/// When a store says whether a counter and a challenge were free.
package enum DecisionMoment: Hashable, Sendable {
    /// At once: the table in memory is the truth, and the journal only follows it. A pending use is
    /// already good and only lacks durability.
    case inMemory
    /// With the commit: others write to the same store, so only the journal knows. A pending use
    /// may still be refused. The table knows a lower bound of every counter.
    case atCommit
}

/// The result of an enrolment.
package enum EnrolOutcome: Equatable, Sendable {
    /// The key is on disk.
    case inserted(KeyID)
    /// It was stored before, and its counter stays.
    case existing(KeyID)
    /// It was stored before, and is revoked or deleted.
    case revoked
    /// It is not stored: its challenge was spent before.
    case challengeSpent
    /// It may not be on disk.
    case failed
}

/// The uses of one batch, from before the journal is asked until their tickets are answered.
struct DecidedUses {
    /// The decision about each, in the order of the tickets.
    private(set) var decisions: [(ticket: CommitTicket, decision: ConsumeDecision)] = []
    /// The uses that the journal is asked about.
    private(set) var asked: [CounterAdvance] = []
    /// Uses that are good in memory and unknown to the journal, which gets them later.
    private(set) var retained: [CounterChange] = []
    /// The number of uses that the journal has accepted.
    private(set) var usedCount = 0
    /// Why the journal could not decide one of them.
    private(set) var error: JournalError?
    /// The uses of `asked`, with their places in `decisions`.
    private var waiting: [(place: Int, use: WaitingUse)] = []

    /// Refuses the uses that have become impossible while they waited.
    init(_ uses: [PendingChanges.Use]) {
        for (place, use) in uses.enumerated() {
            if let refusal = use.waiting.refusal() {
                decisions.append((use.ticket, .refused(refusal)))
            } else {
                // Replaced by ``take(_:)``.
                decisions.append((use.ticket, .unavailable))
                asked.append(use.waiting.use)
                waiting.append((place, use.waiting))
            }
        }
    }

    var isEmpty: Bool { decisions.isEmpty }

    /// The journal has answered, or has failed for all of them.
    mutating func take(_ result: Result<[UseAnswer], JournalError>) {
        for (index, (place, use)) in waiting.enumerated() {
            let answer: UseAnswer =
                switch result {
                case .success(let answers): answers[index]
                case .failure(let error): .failed(error)
                }
            if case .used = answer { usedCount += 1 }
            if case .failed(let error) = answer { self.error = error }
            let (decision, change) = use.settle(answer)
            decisions[place].decision = decision
            if let change { retained.append(change) }
        }
    }
}

/// A use that waits for the journal's decision, and its change in memory after that.
struct WaitingUse {
    let use: CounterAdvance
    let shard: KeyTable.Shard
    let hash: UInt32
    let issuer: ChallengeIssuer

    /// Why it can't be good any more, as far as this process knows; `nil` when it may be.
    ///
    /// Checked just before the journal is asked. An earlier batch with the same counter may have
    /// failed: that counter was used in memory, and the journal does not know it yet.
    func refusal() -> ConsumeRefusal? {
        let refusal = shard.keys.withLock { keys in
            keys.find(use.keyID, hash: hash).flatMap { keys[$0].refusal(use) }
        }
        if let refusal { return refusal }
        return use.challenge.map(issuer.isSpent) == true ? .challengeSpent : nil
    }

    /// The journal has decided, and the table follows. When the journal has failed, it may have
    /// used them nevertheless. Then they are used in memory, if they are free there, so that the
    /// assertion is good once.
    ///
    /// - Returns: the decision, and the change that the journal gets later.
    func settle(_ answer: UseAnswer) -> (decision: ConsumeDecision, change: CounterChange?) {
        shard.keys.withLock { keys in
            guard let number = keys.find(use.keyID, hash: hash) else {
                return (Self.decision(answer), nil)
            }
            switch answer {
            case .used:
                // It does not matter whether the challenge is also remembered here.
                _ = use.challenge.map(issuer.spend)
                // Nothing of a key that was deleted meanwhile comes back.
                if let counter = use.counter, keys[number].standing != .deleted {
                    keys[number].counters.use(counter)
                }
                return (.admitted, nil)
            case .refused(let refusal):
                if refusal == .revoked { keys.set(.revoked, of: number) }
                return (.refused(refusal), nil)
            case .failed:
                if let refusal = keys[number].refusal(use) { return (.refused(refusal), nil) }
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

    /// The decision about a key that was evicted meanwhile. If the journal has failed, nothing is
    /// used here.
    private static func decision(_ answer: UseAnswer) -> ConsumeDecision {
        switch answer {
        case .used: .admitted
        case .refused(let refusal): .refused(refusal)
        case .failed: .unavailable
        }
    }
}

extension KeyEntry {
    func refusal(_ use: CounterUse) -> ConsumeRefusal? {
        refusal(use.counter, use.rule, hasChallenge: use.challenge != nil)
    }

    fileprivate func refusal(_ use: CounterAdvance) -> ConsumeRefusal? {
        refusal(use.counter, use.rule, hasChallenge: use.challenge != nil)
    }
}
