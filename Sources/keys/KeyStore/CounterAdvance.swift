package import Challenges
package import DeviceKey

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

    package init(
        row: Int64,
        keyID: KeyID,
        counter: SignCounter?,
        rule: StoreCounterRule,
        challenge: ChallengeSerial?,
        usedAt: Int64
    ) {
        self.row = row
        self.keyID = keyID
        self.counter = counter
        self.rule = rule
        self.challenge = challenge
        self.usedAt = usedAt
    }
}

/// What a journal answers to a use.
package enum UseAnswer: Hashable, Sendable {
    /// Both were free, and that they are used is durable.
    case used
    /// Nothing has changed.
    case refused(ConsumeRefusal)
    /// It is not known whether they are used.
    case failed(JournalError)
}

/// How the use of a counter and a challenge went. Only `admitted` and `unassured` have used them.
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

/// Why a counter and a challenge can't be used, in the order in which it is reported.
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
    /// Reported behind `replayed`. Last, since another version of this program may read its number.
    case unanchored
}

/// What ``KeyTable`` answers to the use of a counter and a challenge.
package enum ConsumeOutcome: Equatable, Sendable {
    /// Nothing more will be said of it.
    case decided(ConsumeDecision)
    /// The commit of this ticket says how it went: see ``CommitListener``. Whether the use is good
    /// already, but for the disk, depends on the journal: see ``DecisionMoment``.
    case pending(CommitTicket)
}

/// What becomes of a request whose key is known while the store fails: another process's changes
/// can't be read, or there is no room for a change.
package enum FailingStore: Hashable, Sendable {
    /// Nothing is consumed.
    case decline
    /// Counter and challenge are used in memory all the same, so that the assertion is good once.
    case useInMemory
}

/// When a store says whether a counter and a challenge were free.
package enum DecisionMoment: Hashable, Sendable {
    /// At once: the table in memory is the truth, and the journal only follows it. A pending use
    /// is good already and lacks nothing but durability.
    case inMemory
    /// With the commit: others write to the same store, so the journal alone knows. A pending use
    /// may still be refused. The table knows a lower bound of every counter.
    case atCommit
}

/// Whether the counters of a key are known to be those of its last use.
package enum CounterAnchor: UInt8, Hashable, Sendable {
    /// They are: nothing was admitted that they don't know.
    case held
    /// They come from an older copy of the store, so assertions that were admitted since look
    /// unused. A use then needs a challenge, which was issued after the copy. A device counts
    /// upwards (Apple, "Validating Apps That Connect to Your Server"), so the counter of such an
    /// assertion is above all that were signed before, and the key is held from then on.
    case lost
}

/// What is known of the counters that a key has used: the highest, and which of the 64 below it.
///
/// As the replay window of IPsec (RFC 4303 §3.4.3). It is kept under the strict rule too, so that a
/// rule may change, or two rules may differ, and a counter that either has admitted stays used.
package struct CounterState: Hashable, Sendable {
    /// Bit i: the counter i + 1 below the highest was used, or may have been.
    package private(set) var seen: UInt64
    /// The highest counter used; that of the attestation, 0, at first.
    package private(set) var highest: SignCounter

    /// - `seen`: when it is not known what was used below the highest, all of it: `.max`.
    package init(highest: SignCounter = .zero, seen: UInt64 = 0) {
        self.highest = highest
        self.seen = seen
    }

    /// Whether the counter is free under the rule.
    package func admits(_ counter: SignCounter, _ rule: StoreCounterRule) -> Bool {
        guard counter <= highest else { return true }
        switch rule {
        case .strict: return false
        case .window(let width):
            let below = highest.rawValue - counter.rawValue
            guard below >= 1, below <= UInt32(min(max(width, 1), 64)) else { return false }
            return seen >> UInt64(below - 1) & 1 == 0
        }
    }

    /// Marks the counter as used.
    package mutating func use(_ counter: SignCounter) {
        merge(CounterState(highest: counter, seen: 0))
    }

    /// Marks everything as used that the other state has marked.
    package mutating func merge(_ other: CounterState) {
        if other.highest > highest {
            let own = self
            self = other
            mark(own)
        } else {
            mark(other)
        }
    }

    /// Marks what a state that is not ahead of this one has marked, its highest included.
    private mutating func mark(_ other: CounterState) {
        let below = UInt64(highest.rawValue - other.highest.rawValue)
        // Shifting by 64 and more gives 0: those counters have left the window and stay used.
        seen |= other.seen << below
        if below > 0 { seen |= 1 << (below - 1) }
    }
}

/// How an enrolment went.
package enum EnrolOutcome: Equatable, Sendable {
    /// The key is on disk.
    case inserted(KeyID)
    /// It was there before, and its counter is what it was.
    case existing(KeyID)
    /// It was there before, and is revoked or deleted.
    case revoked
    /// It was not there before, and is not there now: its challenge was spent before.
    case challengeSpent
    /// It may not be on disk.
    case failed
}
