/// Why an assertion was refused.
public struct AssertionRefusal: Error, Hashable, Sendable {
    /// The step that failed, for code. The raw value is what logs, metrics and answers call it.
    @nonexhaustive
    public enum Reason: String, Sendable, CaseIterable {
        /// Not an App Attest assertion.
        case malformed = "assertion-malformed"
        /// Step 3: not signed by the key over this client data.
        case signatureMismatch = "signature-mismatch"
        /// Step 4: made in another app.
        case appMismatch = "app-mismatch"
        /// Step 5: the counter is not greater than the stored one.
        case counterReplayed = "counter-replayed"
        /// Step 7: a validation category that is not accepted, or none.
        case categoryRefused = "category-refused"
        /// Step 8: a bundle version that is not accepted, or none.
        case versionRefused = "version-refused"
    }

    /// The step that failed, for code.
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
