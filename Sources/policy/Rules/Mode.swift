/// What a rule does with its requests. The raw values are written in rules, logs and metrics.
package enum Mode: String, CaseIterable, Sendable {
    /// Nothing is verified; the request is forwarded.
    case off
    /// Verified and counted, never refused; the origin gets the would-be verdict.
    case observe
    /// Refused when the verdict is not a pass and the rollout has reached the key.
    case enforce
    /// Answered 404 by the gateway. Nothing is verified, and no origin sees the request.
    case deny

    /// Whether a rule of this mode judges its requests, and so says what they must carry.
    package var verifies: Bool { self == .observe || self == .enforce }
    /// Whether a rule of this mode forwards what has no verdict of `pass`.
    package var isOpen: Bool { self == .off || self == .observe }
}

/// What happens to a request when something the verdict depends on has failed.
///
/// Never a way around a bad assertion: that is a refusal, not an error.
package enum DependencyErrorRule: String, CaseIterable, Sendable {
    /// Answered 503.
    case refuse
    /// Forwarded as unverified.
    case forward
}

/// What happens to a request that says that its device can't attest.
///
/// The claim proves nothing: any client can send the field.
package enum UnsupportedRule: String, CaseIterable, Sendable {
    /// Refused like a request that proves nothing.
    case refuse
    /// Forwarded, marked, and counted apart.
    case forward
}

/// What happens to a CORS preflight, which no browser lets carry a proof.
///
/// Forwarding relies on the origin: an application that runs one handler for every method runs it
/// for OPTIONS too, and a preflight is easily written by hand.
package enum PreflightRule: String, CaseIterable, Sendable {
    /// Judged like every request, and so refused where the rule enforces.
    case judge
    /// Forwarded, marked, and counted apart.
    case forward
}
