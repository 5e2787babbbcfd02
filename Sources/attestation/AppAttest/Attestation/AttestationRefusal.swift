/// Why an attestation was refused.
public struct AttestationRefusal: Error, Hashable, Sendable {
    /// The step that failed, for code. The raw value is what logs, metrics and answers call it.
    @nonexhaustive
    public enum Reason: String, Sendable, CaseIterable {
        /// Not an App Attest attestation object.
        case malformed = "attestation-malformed"
        /// Step 1: the certificates do not lead to a given root.
        case certificateUntrusted = "certificate-untrusted"
        /// Step 1: a certificate is not valid at the given time: no longer, or not yet.
        case certificateExpired = "certificate-expired"
        /// Step 4: the leaf certificate was made for another challenge or other authenticator data.
        case nonceMismatch = "nonce-mismatch"
        /// Step 4: on macOS, the key is not protected as Apple says it must be.
        case accessControlMismatch = "access-control-mismatch"
        /// Step 5, 9: the key id is not that of the attested key.
        case keyIDMismatch = "key-id-mismatch"
        /// Step 6: attested for another app.
        case appMismatch = "app-mismatch"
        /// Step 7: the counter is not 0.
        case counterNotZero = "counter-not-zero"
        /// Step 8: attested in another environment.
        case environmentMismatch = "environment-mismatch"
        /// Step 10: a validation category that is not accepted, or none.
        case categoryRefused = "category-refused"
        /// Step 11: a bundle version that is not accepted, or none.
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
