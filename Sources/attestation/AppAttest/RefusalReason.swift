/// The reasons that one kind of object is refused for. The raw value is what logs, metrics and
/// answers call the reason, in kebab-case; it does not change.
public protocol RefusalReason: RawRepresentable<String>, CaseIterable, Hashable, Sendable {
    /// What is wrong, in one English sentence, for the operator of a server.
    var summary: String { get }
    /// What to look at first, in one English sentence.
    var nextStep: String { get }
}
