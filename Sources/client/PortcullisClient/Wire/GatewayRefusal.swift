/// What the gateway says in an answer of its own: in `App-Attest-Error`, and in the
/// `WWW-Authenticate: AppAttest` field of a 401.
public struct GatewayRefusal: Hashable, Sendable {
    /// What the client is to do.
    public enum Next: String, Hashable, Sendable {
        /// Sign the same request again.
        case signAgain = "sign-again"
        /// Make a new key and enrol it.
        case enrol
        /// Wait for `Retry-After`, then sign again.
        case retryLater = "retry-later"
        /// Nothing at run time: the client's code is wrong.
        case fixClient = "fix-client"
        /// Nothing: this app or device is not admitted.
        case none
    }

    /// The reason, such as `key-unknown`. Reasons are stable, and there may be more of them.
    public let reason: String
    /// What the client is to do.
    public let next: Next

    /// A refusal.
    public init(reason: String, next: Next) {
        (self.reason, self.next) = (reason, next)
    }
}
