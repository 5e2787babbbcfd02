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
