package import Signatures

/// Whether another process's memory of used tokens has a place for a token.
package enum TokenClaim: CaseIterable, Sendable {
    /// It was not used, and is from now on.
    case free
    case used
    /// The memory has no room, or can't be asked.
    case full
}

/// A memory of used tokens that answers another process.
package protocol TokenClaiming: Sendable {
    /// Takes a token: it is used from now on.
    func claim(_ token: SHA256Digest, now: Int64) -> TokenClaim
    /// A claimed token was not accepted, and is free again.
    func release(_ token: SHA256Digest)
}
