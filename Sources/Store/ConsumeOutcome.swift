/// How the use of a counter and a challenge went. Only `admitted` has changed anything.
///
/// Reported in the order: unknown, revoked, replayed, challengeSpent. `unavailable` comes before
/// all of them when the store can't say, and before `challengeSpent` when there is no room.
package enum ConsumeOutcome: Equatable, Sendable {
    /// Both were free and are used now; the change is on disk when the ticket is committed.
    case admitted(CommitTicket)
    /// The counter was used before, or lies too far below the highest.
    case replayed
    case challengeSpent
    case revoked
    case unknown
    /// The store can't say, or has no room for another change.
    case unavailable
}
