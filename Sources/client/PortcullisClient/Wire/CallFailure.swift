/// Why one of the gateway's endpoints gave nothing.
enum CallFailure: Error, Hashable, Sendable {
    /// The gateway refused, for a reason, and says what is next and when.
    case refused(reason: String, GatewayRefusal.Next, retryAfter: Double?)
    /// The gateway was not reached, failed, or something else answered; it may say when to retry.
    case unreachable(retryAfter: Double?)
}
