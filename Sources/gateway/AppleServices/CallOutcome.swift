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
    /// It had less time than a host that works may take.
    case undecided

    /// A call with less time that gets no answer says nothing about the host: how patient a rule
    /// is must not decide for all others whether Apple is asked.
    package static let patienceMin = Duration.seconds(1)

    /// - timeout: what the call had, its wait for a place included.
    /// - Returns: `nil` for what was not sent: it says nothing about the host.
    package init?(_ reply: AppleReply, timeout: Duration) {
        switch reply {
        case .failed(.timeout) where timeout < Self.patienceMin: self = .undecided
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
