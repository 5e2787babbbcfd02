/// The kinds of requests that a mix has shares of.
package enum RequestKind: String, CaseIterable, Sendable {
    /// Signed as the rule asks.
    case good
    /// Without any proof.
    case missing
    /// A request that was admitted, byte for byte.
    case replayed
    /// Signed, then changed: the signature, the target or the content.
    case tampered
    /// Too old: a challenge of another start or past its time, or a counter that was overtaken.
    case stale
    /// Signed by a key that was never enrolled.
    case unknown
}
