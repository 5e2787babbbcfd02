/// Why an attestation, an assertion or a receipt was refused: the first check that failed.
///
/// One type with three kinds of reasons: ``AttestationRefusal``, ``AssertionRefusal`` and
/// ``ReceiptRefusal``. Two refusals are equal when their reasons are.
public struct ObjectRefusal<Check: RefusalReason>: Error, Hashable, Sendable {
    /// The reasons that this kind of object is refused for.
    public typealias Reason = Check

    /// The check that failed, for code.
    public let reason: Reason
    /// What was found, for people. Not compared, and without key material.
    public let detail: String

    init(_ reason: Reason, _ detail: String) {
        self.reason = reason
        self.detail = detail
    }

    /// Whether two refusals have the same reason.
    public static func == (left: Self, right: Self) -> Bool { left.reason == right.reason }

    /// Feeds the reason.
    public func hash(into hasher: inout Hasher) { hasher.combine(reason) }
}

extension ObjectRefusal: CustomStringConvertible {
    /// The reason as logs call it, and what was found.
    public var description: String { "\(reason.rawValue): \(detail)" }
}

/// The reasons that one kind of object is refused for. The raw value is what logs, metrics and
/// answers call the reason, in kebab-case; it does not change.
public protocol RefusalReason: RawRepresentable<String>, CaseIterable, Hashable, Sendable {
    /// What the operator of a server reads about the reason.
    var advice: RefusalAdvice { get }
}

extension RefusalReason {
    /// What is wrong, in one English sentence, for the operator of a server.
    public var summary: String { advice.summary }
    /// What to look at first, in one English sentence.
    public var nextStep: String { advice.nextStep }
}

/// What the operator of a server reads about a reason of refusal, in English.
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
