package import Challenges
package import DeviceKey

/// The use of a counter and a challenge that a journal decides: both or neither.
package struct CounterUse: Hashable, Sendable {
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
