/// What operators are told of a challenge that a device has signed and the gateway does not know.
/// The client is told no more than that. The raw value is API of the log.
package enum ChallengeNote: String, Hashable, Sendable {
    /// Its code is of none of the secrets that the gateways of a fleet share: this gateway has not
    /// read the newest one, the one that issued it uses another database, or the secret is gone.
    case unknownSecret = "unknown-secret"
}
