public import AppAttest

/// One fault of an attestation.
///
/// May grow: a `switch` over it has an `@unknown default`.
@nonexhaustive(warn)
public enum AttestationDamage: String, Hashable, Sendable, CaseIterable {
    /// A byte after the object.
    case trailingByte = "trailing-byte"
    /// The last byte is missing.
    case truncated
    /// `fmt` is of another format.
    case otherFormat = "other-format"
    /// `x5c` has the root as well.
    case rootIncluded = "root-included"
    /// The credential id is not of 32 bytes.
    case credentialLength = "credential-length"
    /// The bytes after the fixed part are no CBOR map.
    case extensionsMalformed = "extensions-malformed"
    /// A byte after the extension map.
    case extensionsTrailing = "extensions-trailing"
    /// The certificates are in the wrong order.
    case swappedCertificates = "swapped-certificates"
    /// Both certificates are of an authority that no gateway trusts.
    case untrustedRoot = "untrusted-root"
    /// The leaf's signature is not one of the issuer.
    case leafSignature = "leaf-signature"
    /// The leaf was valid until a second before.
    case leafExpired = "leaf-expired"
    /// The leaf is valid from a second later.
    case leafNotYetValid = "leaf-not-yet-valid"
    /// The nonce is of another client data hash.
    case otherNonce = "other-nonce"
    /// The client data hash was hashed once more.
    case hashedTwice = "hashed-twice"
    /// The leaf has no nonce.
    case nonceMissing = "nonce-missing"
    /// The leaf names macOS and has the access control list of an iPhone.
    case accessControl = "access-control"
    /// The leaf is of another key.
    case otherKeyCertified = "other-key-certified"
    /// The authenticator data are of another App ID.
    case otherApp = "other-app"
    /// The counter is 1.
    case counterNotZero = "counter-not-zero"
    /// The AAGUID is that of the other environment.
    case otherEnvironment = "other-environment"
    /// The AAGUID is "appattestsandbox", which one of Apple's pages names and no object has.
    case sandboxEnvironment = "sandbox-environment"
    /// The credential id is of another key.
    case otherCredential = "other-credential"
    /// The COSE key is another.
    case otherCOSEKey = "other-cose-key"

    /// The answer of a verifier that accepts all other objects.
    public var refusal: AttestationRefusal.Reason {
        switch self {
        case .trailingByte, .truncated, .otherFormat, .rootIncluded, .credentialLength,
            .extensionsMalformed, .extensionsTrailing:
            .malformed
        case .swappedCertificates, .untrustedRoot, .leafSignature: .certificateUntrusted
        case .leafExpired, .leafNotYetValid: .certificateExpired
        case .otherNonce, .hashedTwice, .nonceMissing: .nonceMismatch
        case .accessControl: .accessControlMismatch
        case .otherKeyCertified, .otherCredential, .otherCOSEKey: .keyIDMismatch
        case .otherApp: .appMismatch
        case .counterNotZero: .counterNotZero
        case .otherEnvironment, .sandboxEnvironment: .environmentMismatch
        }
    }
}

/// One fault, or oddity, of an assertion.
///
/// The text of an Android key has the same faults. Its members are version, counter and signature:
/// a truncated one has no signature, one with short data no counter, and another version stands in
/// the place of malformed extensions.
///
/// May grow: a `switch` over it has an `@unknown default`.
@nonexhaustive(warn)
public enum AssertionDamage: String, Hashable, Sendable, CaseIterable {
    /// A byte after the object.
    case trailingByte = "trailing-byte"
    /// The last byte is missing.
    case truncated
    /// The object has a third member.
    case memberAdded = "member-added"
    /// The authenticator data have 36 bytes.
    case authenticatorDataShort = "authenticator-data-short"
    /// The bytes after the first 37 are no CBOR map.
    case extensionsMalformed = "extensions-malformed"
    /// One bit of the signature differs.
    case signature
    /// The signature is `r ‖ s` in 64 bytes, not DER.
    case signatureRaw = "signature-raw"
    /// The signature is `(0, 0)`, which some verifiers accepted for every message (CVE-2022-21449).
    case signatureZero = "signature-zero"
    /// Signed by another key.
    case otherKey = "other-key"
    /// Signed over another client data hash.
    case otherClientData = "other-client-data"
    /// The client data hash was hashed once more.
    case hashedTwice = "hashed-twice"
    /// The nonce was signed as a digest, and not hashed once more.
    case nonceAsDigest = "nonce-as-digest"
    /// The authenticator data are of another App ID.
    case otherApp = "other-app"
    /// The counter is that of the previous assertion.
    case counterRepeated = "counter-repeated"
    /// The counter is one less than that of the previous assertion, and 0 at least.
    case counterBehind = "counter-behind"
    /// `s` is above half the order, as it is in every second genuine assertion: nothing is wrong.
    case highS = "high-s"
    /// `s` is below half the order: nothing is wrong.
    case lowS = "low-s"

    /// The answer of a verifier that accepts all other objects; `nil` when it must accept this one.
    public var refusal: AssertionRefusal.Reason? {
        switch self {
        case .trailingByte, .truncated, .memberAdded, .authenticatorDataShort,
            .extensionsMalformed:
            .malformed
        case .signature, .signatureRaw, .signatureZero, .otherKey, .otherClientData, .hashedTwice,
            .nonceAsDigest:
            .signatureMismatch
        case .otherApp: .appMismatch
        case .counterRepeated, .counterBehind: .counterReplayed
        case .highS, .lowS: nil
        }
    }

    /// The same for an Android phone's key, which signs the package's name with all else.
    public var phoneRefusal: AssertionRefusal.Reason? {
        self == .otherApp ? .signatureMismatch : refusal
    }
}

/// One fault of a receipt.
///
/// May grow: a `switch` over it has an `@unknown default`.
@nonexhaustive(warn)
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
