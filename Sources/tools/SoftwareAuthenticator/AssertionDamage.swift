public import AppAttest

/// One fault, or oddity, of an assertion.
///
/// The text of an Android key has the same faults. Its members are version, counter and signature:
/// a truncated one has no signature, one with short data no counter, and another version stands in
/// the place of malformed extensions.
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
