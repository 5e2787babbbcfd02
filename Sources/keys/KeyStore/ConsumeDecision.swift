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
