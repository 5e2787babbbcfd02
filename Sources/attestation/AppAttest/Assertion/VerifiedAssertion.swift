/// The proof that a key made an assertion over the client data. Only
/// `UnverifiedAssertion.verified(…)` makes one.
public struct VerifiedAssertion: Sendable {
    /// The app it was made in.
    public let app: AppIDHash
    /// Its counter, still to be compared with the stored one and then stored, in one atomic step.
    public let counter: SignCounter
    /// What 27 and later say about the build.
    public let extensions: AuthenticatorExtensions
    /// The flags byte, for logs.
    public let flags: UInt8

    /// One that was verified before, here or in the process before.
    package init(
        app: AppIDHash,
        counter: SignCounter,
        extensions: AuthenticatorExtensions,
        flags: UInt8
    ) {
        self.app = app
        self.counter = counter
        self.extensions = extensions
        self.flags = flags
    }

    /// Step 5: strictly greater than the counter of the last accepted assertion, which is 0 after
    /// the attestation. An equal counter is a replay. Throws `.counterReplayed`.
    public func checkCounter(after stored: SignCounter) throws(AssertionRefusal) {
        guard counter > stored else {
            throw AssertionRefusal(
                .counterReplayed,
                "counter \(counter.rawValue) after \(stored.rawValue)"
            )
        }
    }

    /// Steps 7 and 8: the build is one that is accepted. Throws `.categoryRefused`, then
    /// `.versionRefused`.
    public func checkBuild(_ policy: BuildPolicy) throws(AssertionRefusal) {
        switch policy.judge(extensions) {
        case .none: return
        case .category(let found): throw AssertionRefusal(.categoryRefused, found)
        case .version(let found): throw AssertionRefusal(.versionRefused, found)
        }
    }
}
