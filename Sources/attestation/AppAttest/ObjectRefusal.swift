/// Why an attestation, an assertion or a receipt was refused: the first check that failed.
///
/// One type with three kinds of reasons: ``AttestationRefusal``, ``AssertionRefusal`` and
/// ``ReceiptRefusal``. Two refusals are equal when their reasons are.
public struct ObjectRefusal<Check: RefusalReason>: Error, Hashable, Sendable {
    /// The reasons for which this kind of object is refused.
    public typealias Reason = Check

    /// The check that failed, for code.
    public let reason: Reason
    /// What was found, for people. Not compared, and without key material.
    public let detail: String

    package init(_ reason: Reason, _ detail: String) {
        self.reason = reason
        self.detail = detail
    }

    /// Whether two refusals have the same reason.
    public static func == (left: Self, right: Self) -> Bool { left.reason == right.reason }

    /// Feeds the reason.
    public func hash(into hasher: inout Hasher) { hasher.combine(reason) }
}

extension ObjectRefusal: CustomStringConvertible {
    /// The reason's name in logs, and what was found.
    public var description: String { "\(reason.rawValue): \(detail)" }
}

/// The reasons for which one kind of object is refused. The raw value is the reason's name in logs,
/// metrics and answers, in kebab-case. It does not change.
public protocol RefusalReason: RawRepresentable<String>, CaseIterable, Hashable, Sendable {
    /// The operator's text about the reason.
    var advice: RefusalAdvice { get }
}

extension RefusalReason {
    /// What is wrong, in one English sentence, for the operator of a server.
    public var summary: String { advice.summary }
    /// What to look at first, in one English sentence.
    public var nextStep: String { advice.nextStep }
}

/// The text about a reason of refusal for the operator of a server, in English.
public struct RefusalAdvice: Hashable, Sendable {
    /// What is wrong, in one sentence.
    public let summary: String
    /// What to look at first, in one sentence.
    public let nextStep: String

    init(_ summary: String, _ nextStep: String) {
        self.summary = summary
        self.nextStep = nextStep
    }

    // Attestations and assertions have the same build policy.

    static let categoryRefused = RefusalAdvice(
        "The build has a validation category that is not accepted.",
        "Check the categories of the build policy."
    )
    static let versionRefused = RefusalAdvice(
        "The build has a bundle version that is not accepted.",
        "Check the bundle versions of the build policy."
    )
}
