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
