/// Why a receipt was refused.
public struct ReceiptRefusal: Error, Hashable, Sendable {
    /// The check that failed, for code. The raw value is what logs, metrics and answers call it.
    @nonexhaustive
    public enum Reason: String, Sendable, CaseIterable {
        /// Not a receipt: the message, or what is in it (check 3).
        case malformed = "receipt-malformed"
        /// Check 1: not signed by the certificate it names.
        case signatureMismatch = "receipt-signature-mismatch"
        /// Check 2: the certificates do not lead to a given root.
        case certificateUntrusted = "certificate-untrusted"
        /// Check 2: a certificate was not valid when the receipt was made.
        case certificateExpired = "certificate-expired"
        /// Check 4: for another app.
        case appMismatch = "app-mismatch"
        /// Check 5: made too long ago, or in the future.
        case tooOld = "receipt-too-old"
        /// Check 6: for another key.
        case keyMismatch = "receipt-key-mismatch"
    }

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
