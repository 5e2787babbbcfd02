/// Why an attestation was refused.
public typealias AttestationRefusal = ObjectRefusal<AttestationRefusalReason>

/// The step of an attestation's verification that failed.
@nonexhaustive
public enum AttestationRefusalReason: String, RefusalReason {
    /// Not an App Attest attestation object.
    case malformed = "attestation-malformed"
    /// Step 1: the certificates do not lead to a given root.
    case certificateUntrusted = "certificate-untrusted"
    /// Step 1: at the given time a certificate is no longer valid, or not yet.
    case certificateExpired = "certificate-expired"
    /// Step 4: the leaf certificate was made for another challenge or other authenticator data.
    case nonceMismatch = "nonce-mismatch"
    /// Step 4: on macOS, the key does not have the protection that Apple requires.
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

    /// The operator's text about the reason.
    public var advice: RefusalAdvice {
        switch self {
        case .malformed:
            RefusalAdvice(
                "The bytes are not an App Attest attestation object.",
                "Check that the client sends the object of attestKey, and its encoding."
            )
        case .certificateUntrusted:
            RefusalAdvice(
                "The certificates of the attestation do not lead to a trusted root.",
                "Check the roots: AppleRoots.appAttestation for genuine devices."
            )
        case .certificateExpired:
            RefusalAdvice(
                "A certificate of the attestation is not valid at this time.",
                "Verify an attestation at once: its certificate lives for one to three days."
            )
        case .nonceMismatch:
            RefusalAdvice(
                "The attestation was made for another challenge.",
                "Check how the app makes the client data hash from the challenge."
            )
        case .accessControlMismatch:
            RefusalAdvice(
                "The key of this Mac is not protected as Apple demands.",
                "Full Security and System Integrity Protection have to be on."
            )
        case .keyIDMismatch:
            RefusalAdvice(
                "The key id is not that of the attested key.",
                "Check that the client sends the key id for which it called attestKey."
            )
        case .appMismatch:
            RefusalAdvice(
                "The attestation is of an app that is not accepted.",
                "Check the App ID: team id, full stop, bundle identifier."
            )
        case .counterNotZero:
            RefusalAdvice(
                "The counter of the attestation is not 0.",
                "Genuine attestations have 0; refuse the device."
            )
        case .environmentMismatch:
            RefusalAdvice(
                "The attestation is of an environment that is not accepted.",
                "Builds from Xcode attest in development, all others in production."
            )
        case .categoryRefused: .categoryRefused
        case .versionRefused: .versionRefused
        }
    }
}
