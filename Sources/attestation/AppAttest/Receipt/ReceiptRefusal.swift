/// Why a receipt was refused.
public typealias ReceiptRefusal = ObjectRefusal<ReceiptRefusalReason>

/// The check of a receipt that failed.
@nonexhaustive
public enum ReceiptRefusalReason: String, RefusalReason {
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
    /// Renewed: of type ATTEST, where RECEIPT is expected.
    case kindMismatch = "receipt-kind-mismatch"
    /// Renewed: of the other environment, or of none.
    case environmentMismatch = "receipt-environment-mismatch"
    /// Renewed: not made after the receipt that was sent.
    case notNewer = "receipt-not-newer"
    /// Renewed: field 19 or 21 is missing or can't be right.
    case periodImplausible = "receipt-period-implausible"

    /// What an operator is told about the reason.
    public var advice: RefusalAdvice {
        switch self {
        case .malformed:
            RefusalAdvice(
                "The bytes are not a receipt of App Attest.",
                "Keep and send receipts as they came, without encoding them anew."
            )
        case .signatureMismatch:
            RefusalAdvice(
                "The receipt is not signed by the certificate that it names.",
                "The receipt was changed on its way or in the store."
            )
        case .certificateUntrusted:
            RefusalAdvice(
                "The certificates of the receipt do not lead to a trusted root.",
                "Check the roots: AppleRoots.rootG3, which is not the one of attestations."
            )
        case .certificateExpired:
            RefusalAdvice(
                "A certificate was not valid when the receipt was made.",
                "Ask Apple's server for a newer receipt."
            )
        case .appMismatch:
            RefusalAdvice(
                "The receipt is for an app that is not accepted.",
                "Check the App ID: team id, full stop, bundle identifier."
            )
        case .tooOld:
            RefusalAdvice(
                "The receipt was made too long ago, or in the future.",
                "Check the server's clock, and verify a receipt when it arrives."
            )
        case .keyMismatch:
            RefusalAdvice(
                "The receipt is for another key.",
                "Check that the receipt is stored with the key it came with."
            )
        case .kindMismatch:
            RefusalAdvice(
                "The receipt is an attestation's, where a renewed one is expected.",
                "Check which receipt is looked at: Apple's server answers with type RECEIPT."
            )
        case .environmentMismatch:
            RefusalAdvice(
                "The receipt is not of the key's environment.",
                "Check the host: development keys have one of their own."
            )
        case .notNewer:
            RefusalAdvice(
                "The receipt is not newer than the one that was sent.",
                "Keep the stored receipt, and ask again later."
            )
        case .periodImplausible:
            RefusalAdvice(
                "The times at which the receipt may be renewed are missing or impossible.",
                "Keep the stored receipt. Report it when it lasts: Apple may have changed receipts."
            )
        }
    }
}
