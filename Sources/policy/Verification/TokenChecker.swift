package import HTTPWire
package import Rules
package import Signatures

/// A token that a request shows.
package struct ShownToken: Sendable {
    /// 1…``ShownTokens/bytesMax`` bytes, as they came.
    package let text: [UInt8]
    package let proof: TokenProof
    /// The id of the request's rule.
    package let rule: String
    /// The request's host, as the client wrote it.
    package let host: [UInt8]
    /// The client's address; `nil` where it is unknown.
    package let address: IPAddress?
    /// What an integrity token has to be bound to; `nil` for other tokens.
    package let binding: IntegrityBinding?
    package let now: UnixTime

    package init(
        text: [UInt8],
        proof: TokenProof,
        rule: String,
        host: [UInt8],
        address: IPAddress?,
        binding: IntegrityBinding? = nil,
        now: UnixTime
    ) {
        self.text = text
        self.proof = proof
        self.rule = rule
        self.host = host
        self.address = address
        self.binding = binding
        self.now = now
    }
}

/// What is known of a token when its check returns.
package enum TokenChecking: Hashable, Sendable {
    /// The result. No other follows.
    case known(TokenFinding)
    /// The result follows, within a time that the check bounds.
    case later
    /// The result follows a commit of the store. The request waits for as long as for every commit.
    case afterCommit
}

/// Checks the tokens of one proof of the section `proofs`, for all event loops.
package protocol TokenChecker: Sendable {
    /// Checks a token, and uses it up where it is good once.
    ///
    /// - found: called exactly once, on any thread, unless the result is known at once.
    func check(
        _ token: ShownToken,
        _ found: @escaping @Sendable (TokenFinding) -> Void
    ) -> TokenChecking
}
