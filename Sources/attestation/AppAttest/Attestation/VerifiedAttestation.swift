public import Cryptography

/// The proof that an attestation passed every step. Only `UnverifiedAttestation.verified(…)` makes
/// one.
///
/// Store its ``record``. The object itself is not needed any more: its certificates expire within
/// days.
public struct VerifiedAttestation: Sendable {
    /// The key that signs assertions.
    public let publicKey: P256PublicKey
    /// Its key id.
    public let keyID: KeyID
    /// Which of the accepted apps it belongs to.
    public let app: ExpectedApp
    /// In which environment it was attested.
    public let environment: AttestationEnvironment
    /// The receipt, which is to be verified on its own.
    public let receipt: [UInt8]
    /// What 27 and later say about the build.
    public let extensions: AuthenticatorExtensions
    /// What the certificate says about the device.
    public let details: LeafDetails
    /// Which of the given roots vouches for it.
    public let root: X509Certificate
    /// The flags byte, for logs.
    public let flags: UInt8

    /// The counter to store: the next one has to be greater.
    public var counter: SignCounter { .zero }

    init(
        publicKey: P256PublicKey,
        keyID: KeyID,
        app: ExpectedApp,
        environment: AttestationEnvironment,
        receipt: [UInt8],
        extensions: AuthenticatorExtensions,
        details: LeafDetails,
        root: X509Certificate,
        flags: UInt8
    ) {
        self.publicKey = publicKey
        self.keyID = keyID
        self.app = app
        self.environment = environment
        self.receipt = receipt
        self.extensions = extensions
        self.details = details
        self.root = root
        self.flags = flags
    }
}
