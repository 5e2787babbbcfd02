package import DeviceKey

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
