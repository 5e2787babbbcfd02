public import AppAttest
internal import Cryptography
internal import KeyAttestation
public import Signatures

/// A certificate authority in the place of Apple and of Google: one root, under it the issuer of
/// Apple's attestation leaves, the signer of receipts, and the issuers of Android phones.
///
///     root (P-384) ── attestation issuer (P-384) ── leaf of a key (P-256)
///                  ├─ receipt issuer (P-384) ─────── receipt signer (P-256)
///                  └─ issuers of phones, see PhoneChain
///
/// Apple's receipts end in another root than its attestations, and phones in Google's; here one
/// root serves for all, so that a single `test_root` is enough.
public struct SoftwareAuthority: Sendable {
    /// The root, which a verifier must trust.
    public let root: X509Certificate
    /// The issuer of the leaves, second in `x5c`.
    public let intermediate: X509Certificate
    /// The issuer of the receipt signer.
    public let receiptIssuer: X509Certificate
    /// The certificate that signs receipts.
    public let receiptSigner: X509Certificate
    /// The first moment at which all of them are valid, a day before `madeAt`.
    public let notBefore: UnixTime
    /// The last second of validity, ten years after `madeAt`.
    public let notAfter: UnixTime

    let intermediateKey: ECPrivateKey
    let receiptIssuerKey: ECPrivateKey
    let receiptSignerKey: ECPrivateKey
    let phoneIssuers: [Provisioning: PhoneIssuers]
    private let seed: [UInt8]

    private static let organization = "Portcullis software authenticator"

    /// The authority of a seed. Its keys and names depend on the seed alone: what one process made
    /// verifies under the root of another process with the same seed.
    ///
    /// - Parameters:
    ///   - seed: any bytes. They are as secret as the authority's keys, which are made from them.
    ///   - madeAt: the moment around which the certificates are valid.
    public init(seed: [UInt8], madeAt: UnixTime) {
        self.seed = seed
        let notBefore = madeAt.advanced(bySeconds: -86_400)
        let notAfter = madeAt.advanced(bySeconds: 10 * 365 * 86_400)
        // The seed is in the name, so that it distinguishes two authorities and a path to the
        // wrong one is not even tried.
        let tag = SHA256.digest(of: seed).array.prefix(4).map(String.init).joined(separator: "-")
        func template(_ name: String, _ serial: UInt64, isAuthority: Bool) -> CertificateBuilder {
            CertificateBuilder(
                subject: .init(commonName: "\(name) \(tag)", organization: Self.organization),
                serial: serial,
                validity: notBefore...notAfter,
                isAuthority: isAuthority
            )
        }
        let rootKey = Self.key(.p384, of: seed, "root")
        intermediateKey = Self.key(.p384, of: seed, "attestation issuer")
        receiptIssuerKey = Self.key(.p384, of: seed, "receipt issuer")
        receiptSignerKey = Self.key(.p256, of: seed, "receipt signer")
        root = template("Software App Attestation Root CA", 1, isAuthority: true)
            .selfSigned(by: rootKey)
        intermediate = template("Software App Attestation CA 1", 2, isAuthority: true)
            .signed(for: intermediateKey, by: rootKey, issuer: root)
        receiptIssuer = template("Software Application Integration CA", 3, isAuthority: true)
            .signed(for: receiptIssuerKey, by: rootKey, issuer: root)
        var signer = template("Software Fraud Receipt Signing", 4, isAuthority: false)
        signer.extensions = [LeafExtensions.receiptSigner]
        receiptSigner = signer.signed(
            for: receiptSignerKey,
            by: receiptIssuerKey,
            issuer: receiptIssuer
        )
        phoneIssuers = PhoneIssuers.all(
            under: (root, rootKey),
            from: notBefore,
            to: notAfter
        ) { Self.key($0, of: seed, $1) }
        self.notBefore = notBefore
        self.notAfter = notAfter
    }

    /// An authority of random keys.
    public init(madeAt: UnixTime) { self.init(seed: RandomBytes.make(count: 32), madeAt: madeAt) }

    /// The root in PEM: the content of a `test_root` file.
    public var rootPEM: String { root.pem }

    /// Another authority, which no gateway trusts: for ``AttestationDamage/untrustedRoot``.
    var stranger: SoftwareAuthority {
        SoftwareAuthority(
            seed: seed + Array("stranger".utf8),
            madeAt: notBefore.advanced(bySeconds: 86_400)
        )
    }

    /// The key with which phones of a name attest others.
    func attesterKey(_ name: String) -> ECPrivateKey {
        Self.key(.p256, of: seed, "attester " + name)
    }

    /// A key of the seed and a label: the first candidate that is a scalar of the curve.
    private static func key(
        _ curve: ECPrivateKey.Curve,
        of seed: [UInt8],
        _ label: String
    ) -> ECPrivateKey {
        for count in UInt8.min...UInt8.max {
            let first = SHA256.digest(of: seed + Array(label.utf8) + [count, 1]).array
            let second = SHA256.digest(of: seed + Array(label.utf8) + [count, 2]).array
            let scalar = curve == .p256 ? first : first + second.prefix(16)
            if let key = ECPrivateKey(curve, scalar: scalar.span) { return key }
        }
        // The chance of a second turn is 2⁻³² on P-256. After 256 turns the hash must be broken.
        preconditionFailure("SoftwareAuthority: no hash is a scalar")
    }
}

/// A device with one app on it, which makes keys.
public struct SoftwareDevice: Sendable {
    /// Whose objects it makes.
    enum Platform {
        case apple(AttestationEnvironment, DeviceShape)
        case android(SoftwarePhone)
    }

    /// The authority that attests the keys.
    public let authority: SoftwareAuthority
    /// The App ID: prefix, full stop, bundle identifier. Of an Android phone, the package name.
    public let appID: String
    let platform: Platform

    /// A device of Apple's from its parts.
    public init(
        authority: SoftwareAuthority,
        appID: String,
        environment: AttestationEnvironment,
        shape: DeviceShape
    ) {
        self.authority = authority
        self.appID = appID
        platform = .apple(environment, shape)
    }

    /// An Android phone with one app on it.
    public init(authority: SoftwareAuthority, package: String, phone: SoftwarePhone) {
        self.authority = authority
        appID = package
        platform = .android(phone)
    }

    /// What the phone says of itself; `nil` for a device of Apple's.
    public var phone: SoftwarePhone? {
        guard case .android(let phone) = platform else { return nil }
        return phone
    }

    var isAndroid: Bool { phone != nil }

    /// The environment in the AAGUID of the attestations.
    public var environment: AttestationEnvironment { apple.environment }
    /// The system whose objects it makes.
    public var shape: DeviceShape { apple.shape }

    private var apple: (environment: AttestationEnvironment, shape: DeviceShape) {
        guard case .apple(let environment, let shape) = platform else {
            preconditionFailure("SoftwareDevice: an Android phone makes no objects of Apple's")
        }
        return (environment, shape)
    }

    /// A fresh random key.
    public func makeKey() -> SoftwareKey { SoftwareKey(P256PrivateKey(), of: self) }

    /// The key of a seed. It is equal for the same App ID and seed. For load, where two processes
    /// must know a million keys without storing them.
    public func makeKey(seed: [UInt8]) -> SoftwareKey {
        SoftwareKey(P256PrivateKey(seed: (Array(appID.utf8) + [0] + seed).span), of: self)
    }
}
