/// How the use of a counter and a challenge went. Only `admitted` and `unassured`
/// have changed anything.
///
/// Reported in the order: unknown, revoked, replayed, challengeSpent, challengesExhausted.
/// `unavailable` comes before all of them when the store can't say, and before `challengeSpent`
/// when there is no room; with ``FailingStore/useInMemory`` only for a key that is not here.
package enum ConsumeOutcome: Equatable, Sendable {
    /// Both were free and are used now; the change is on disk when the ticket is committed.
    case admitted(CommitTicket)
    /// The counter was used before, or lies too far below the highest.
    case replayed
    case challengeSpent
    case revoked
    case unknown
    /// No more spent challenges can be remembered now.
    case challengesExhausted
    /// The store can't say, or has no room for another change.
    case unavailable
    /// Both were free and are used now, in memory: the store can't say whether the key was revoked
    /// meanwhile, or has no room for the change.
    case unassured
}

/// What becomes of a request whose key is known while the store fails: another process's changes
/// can't be read, or there is no room for a change.
package enum FailingStore: Hashable, Sendable {
    /// Nothing is consumed.
    case decline
    /// Counter and challenge are used in memory all the same, so that the assertion is good once.
    case useInMemory
}
