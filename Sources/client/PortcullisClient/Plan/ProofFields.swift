/// The names of the fields that carry an assertion.
public struct ProofFields: Hashable, Sendable {
    /// The key id's field.
    public var keyID: String
    /// The assertion's field.
    public var assertion: String
    /// The challenge's field, in requests and answers.
    public var challenge: String
    /// The field of an app that can't attest.
    public var unsupported: String

    /// The names that rules use unless they say otherwise.
    public init(
        keyID: String = "App-Attest-Key-Id",
        assertion: String = "App-Attest-Assertion",
        challenge: String = "App-Attest-Challenge",
        unsupported: String = "App-Attest-Unsupported"
    ) {
        self.keyID = keyID
        self.assertion = assertion
        self.challenge = challenge
        self.unsupported = unsupported
    }
}
