// Verifies Android Key Attestation: the certificate chain with which a phone's hardware vouches for
// a key in Android's keystore, and what that key signs. KeyAttestation.docc shows how to use it.
//
// A chain is read into an `UnverifiedKeyAttestation`. Its `verified(…)` runs the procedure from top
// to bottom and gives a `VerifiedKeyAttestation`, which nothing else can make, or throws the
// refusal of the first step that fails. `StatusList` is Google's list of revoked certificates: it
// judges a chain when it arrives, and the stored serials of a chain again when a newer list comes.
// `UnverifiedKeySignature` is what the key signs for a request.
//
// What this does not do: it knows no HTTP, no store, no network and no challenge policy. It reads
// no clock and has no default for time, roots, status list, app or policy. Whether the challenge is
// one that was issued, whether a key is enrolled already and the atomic advance of the counter
// belong to the caller.
//
// A proof is not `Decodable`: bytes that were decoded prove nothing. `KeyAttestationRecord` is what
// a server stores and reads back. `LocalizedError` alone needs Foundation, and has a file of its
// own.
//
// Certificates are read by `PlainCertificate` and `DERCursor`, in the gateway too: genuine chains
// have extensions that OpenSSL can't decode (a CRL distribution point of one zero byte), and RFC
// 5280's path rules refuse many of the older phones. So this target needs no OpenSSL.
// Signatures are swift-crypto's.
//
// Sources, cited where they are obeyed:
//   [Google] android/keyattestation, Google's verifier, at 47f970d;
//   [KeyMint] AOSP, hardware/interfaces/security/keymint/aidl, KeyCreationResult.aidl;
//   [Android] developer.android.com/privacy-and-security/security-key-attestation.
// Numbers of steps are those of Sources/docs/android.md.

@_exported public import DeviceKey

@_exported public import struct Signatures.P256PublicKey
@_exported public import struct Signatures.UnixTime
@_exported public import class Signatures.X509Certificate
@_exported public import struct Signatures.X509CertificateError
