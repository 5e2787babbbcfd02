/// What an answer, or its lack, says about the host that was called.
package enum CallOutcome: Hashable, Sendable {
    /// The host works, whatever it thinks of the call.
    case worked
    /// The host, or the way to it, does not work.
    case failed
    /// The host is called too often.
    ///
    /// - retryAfter: what it asks for, if it says.
    case throttled(retryAfter: Duration?)

    /// `nil` for what was not sent: it says nothing about the host.
    package init?(_ reply: AppleReply) {
        switch reply {
        case .answered(status: 429, let seconds, _):
            self = .throttled(retryAfter: seconds.map { .seconds($0) })
        case .answered(status: 503, let seconds?, _):
            self = .throttled(retryAfter: .seconds(seconds))
        // Tokens that are refused one after the other are a fault of ours, which more calls don't
        // mend and Apple counts.
        case .answered(status: 401, _, _), .answered(status: 500..., _, _), .failed: self = .failed
        case .answered: self = .worked
        case .unsent: return nil
        }
    }
}
