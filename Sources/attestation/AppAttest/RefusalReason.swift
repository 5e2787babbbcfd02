/// The reasons that one kind of object is refused for. The raw value is what logs, metrics and
/// answers call the reason, in kebab-case; it does not change.
public protocol RefusalReason: RawRepresentable<String>, CaseIterable, Hashable, Sendable {
    /// What the operator of a server is told about the reason.
    var advice: RefusalAdvice { get }
}

extension RefusalReason {
    /// What is wrong, in one English sentence, for the operator of a server.
    public var summary: String { advice.summary }
    /// What to look at first, in one English sentence.
    public var nextStep: String { advice.nextStep }
}
