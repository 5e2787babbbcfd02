public import AppAttest

/// One fault of a receipt.
public enum ReceiptDamage: String, Hashable, Sendable, CaseIterable {
    /// A byte after the message.
    case trailingByte = "trailing-byte"
    /// Field 12, the time of creation, is missing.
    case creationTimeMissing = "creation-time-missing"
    /// Field 2, the App ID, occurs twice.
    case appIDTwice = "app-id-twice"
    /// Field 6 is neither ATTEST nor RECEIPT.
    case otherKind = "other-kind"
    /// One bit of the signature differs.
    case signature
    /// All certificates are of an authority that no gateway trusts.
    case untrustedRoot = "untrusted-root"
    /// The signer is certified, but not as a signer of receipts.
    case signerUnmarked = "signer-unmarked"
    /// The signer was no longer valid when the receipt was made.
    case signerExpired = "signer-expired"
    /// For another App ID.
    case otherApp = "other-app"
    /// Made an hour earlier: refused where a receipt must be new.
    case old
    /// For another key.
    case otherKey = "other-key"

    /// The answer of a verifier that accepts all other objects, and receipts of the last five
    /// minutes.
    public var refusal: ReceiptRefusal.Reason {
        switch self {
        case .trailingByte, .creationTimeMissing, .appIDTwice, .otherKind: .malformed
        case .signature: .signatureMismatch
        case .untrustedRoot, .signerUnmarked: .certificateUntrusted
        case .signerExpired: .certificateExpired
        case .otherApp: .appMismatch
        case .old: .tooOld
        case .otherKey: .keyMismatch
        }
    }
}

/// The origin of a receipt.
public enum ReceiptKind: Hashable, Sendable {
    /// In an attestation: type ATTEST, without a risk metric.
    case attest
    /// From Apple's server, in exchange for an older one: type RECEIPT.
    ///
    /// `riskMetric` is about how many keys of the app the device has had attested within 30 days.
    case refreshed(riskMetric: UInt32)
}
