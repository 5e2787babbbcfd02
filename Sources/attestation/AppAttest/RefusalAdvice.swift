/// What the operator of a server is told about a reason of refusal, in English.
public struct RefusalAdvice: Hashable, Sendable {
    /// What is wrong, in one sentence.
    public let summary: String
    /// What to look at first, in one sentence.
    public let nextStep: String

    init(_ summary: String, _ nextStep: String) {
        self.summary = summary
        self.nextStep = nextStep
    }

    // Attestations and assertions are held to the same build policy.

    static let categoryRefused = RefusalAdvice(
        "The build has a validation category that is not accepted.",
        "Check the categories of the build policy."
    )
    static let versionRefused = RefusalAdvice(
        "The build has a bundle version that is not accepted.",
        "Check the bundle versions of the build policy."
    )
}
