public import AppAttest

/// One fault of an attestation.
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
