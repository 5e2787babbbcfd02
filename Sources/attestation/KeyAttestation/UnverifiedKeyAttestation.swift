internal import Encodings
internal import Signatures

/// A chain of certificates as a phone sends it, read and not judged: the leaf, which is about the
/// key, first.
public struct UnverifiedKeyAttestation: Sendable {
    /// How many certificates a chain has. With the root, a factory's has 4 and one of RKP 5; with
    /// keys that attest keys up to 7 have been seen.
    public static let certificates = 2...10
    /// The longest certificate that is read. 0.5…1.4 KiB have been seen.
    public static let certificateBytesMax = 8 * 1024

    let certificates: [X509Certificate]
    /// What the leaf says; `nil` where it has no description, or several.
    public let description: KeyDescription?

    /// Reads a chain of DER certificates. Throws `.malformed`.
    public init(chain: [[UInt8]]) throws(KeyAttestationRefusal) {
        // Step 1.
        guard Self.certificates.contains(chain.count) else {
            throw KeyAttestationRefusal(.malformed, "\(chain.count) certificates")
        }
        var certificates: [X509Certificate] = []
        for (place, der) in chain.enumerated() {
            guard der.count <= Self.certificateBytesMax else {
                throw KeyAttestationRefusal(
                    .malformed,
                    "certificate \(place): \(der.count) bytes are too many"
                )
            }
            do throws(X509CertificateError) {
                certificates.append(try X509Certificate(der: der))
            } catch {
                throw KeyAttestationRefusal(.malformed, "certificate \(place): \(error.detail)")
            }
        }
        // Step 8, which needs nothing but the bytes. What is read is believed no sooner than the
        // chain is.
        let values = certificates[0].values(of: KeyDescription.oid)
        do throws(DERError) {
            description = values.count == 1 ? try KeyDescription(values[0]) : nil
        } catch {
            throw KeyAttestationRefusal(
                .malformed,
                "key description: \(error.reason.rawValue) at \(error.offset)"
            )
        }
        self.certificates = certificates
    }

    /// The packages that the chain claims to come from, to look up what is expected of the app.
    public var packages: [String] { description?.softwareEnforced.apps?.packages.map(\.name) ?? [] }

    /// The serial numbers that the chain shows, the leaf's first.
    public var serials: [CertificateSerial] {
        certificates.map { CertificateSerial(bytes: $0.serial) }
    }
}

extension UnverifiedKeyAttestation {
    /// Checks this chain, in the order of the procedure; the numbers below are its steps. Step 6
    /// comes before step 4: a chain with an attested key in it is too long as well, and the reason
    /// says what it is.
    ///
    /// - Parameters:
    ///   - challenge: what the app gave to `setAttestationChallenge`, byte for byte. Never issue an
    ///     empty one: keys are made without a challenge, too, and have an empty one.
    ///   - app: the app that is accepted, with what is asked of its phones.
    ///   - roots: the authorities that are trusted, by key and subject: ``GoogleRoots/all``, or
    ///     those of a test.
    ///   - statusList: the certificates that are not valid any more.
    ///   - time: the moment at which the certificates have to be valid. Those of RKP live for days,
    ///     so verify a chain when it arrives, and keep the key and the serials.
    /// - Returns: the proof, with all there is to store.
    /// - Throws: the first step that fails.
    public func verified(
        challenge: [UInt8],
        app: ExpectedAndroidApp,
        roots: [X509Certificate],
        statusList: StatusList,
        at time: UnixTime
    ) throws(KeyAttestationRefusal) -> VerifiedKeyAttestation {
        // Steps 2 to 6: the chain.
        let chain = try AttestationChain(certificates, roots: roots)
        try chain.checkSignatures()
        try chain.checkPlaceOfDescription()
        try chain.checkShape()
        try chain.checkValidity(at: time)
        guard let description else {
            throw KeyAttestationRefusal(.noAttestation, "the leaf has no description")
        }
        // Step 7.
        if let serial = statusList.revoked(among: chain.serials) {
            throw KeyAttestationRefusal(.revoked, "certificate \(serial) is in the status list")
        }
        // Step 9, all bytes.
        guard description.challenge == challenge else {
            throw KeyAttestationRefusal(.challenge, "made for another challenge")
        }
        // Steps 10 to 13: the phone, the key, the app.
        try checkLevel(description, in: chain, app.policy)
        try checkStart(description.hardwareEnforced, app.policy)
        let key = try checkedKey(description.hardwareEnforced, app.policy)
        try checkApp(description.softwareEnforced.apps, app)
        try checkRest(description.hardwareEnforced, chain.provisioning, app.policy)
        return VerifiedKeyAttestation(
            publicKey: key,
            app: app,
            description: description,
            serials: chain.serials,
            provisioning: chain.provisioning,
            provisioningInfo: chain.below[1].values(of: ProvisioningInfo.oid).first
                .flatMap { ProvisioningInfo($0) },
            attesterID: SHA256.digest(of: chain.below[1].subjectPublicKeyInfo).array,
            root: chain.anchor
        )
    }

    /// Step 10: the key lives where its description was made, and that is hardware unless the
    /// policy says otherwise [Google, SecurityLevelConstraint.NOT_SOFTWARE, MATCHES_CERTIFICATE].
    private func checkLevel(
        _ description: KeyDescription,
        in chain: AttestationChain,
        _ policy: AndroidPolicy
    ) throws(KeyAttestationRefusal) {
        let level = description.keyMintLevel
        guard description.attestationLevel == level else {
            throw KeyAttestationRefusal(
                .levelMismatch,
                "a key of level \(level), attested by \(description.attestationLevel)"
            )
        }
        guard policy.securityLevels.contains(level) else {
            let reason: KeyAttestationRefusal.Reason =
                level == .software ? .softwareLevel : .securityLevel
            throw KeyAttestationRefusal(reason, "the key is in \(level)")
        }
        guard level != .strongBox || chain.isStrongBox else {
            throw KeyAttestationRefusal(.levelMismatch, "no certificate is for StrongBox")
        }
    }

    /// Step 11, the phone: what the hardware says and nothing else [Google, ConstraintConfig.kt].
    private func checkStart(
        _ hardware: AuthorizationList,
        _ policy: AndroidPolicy
    ) throws(KeyAttestationRefusal) {
        guard let trust = hardware.rootOfTrust else {
            throw KeyAttestationRefusal(.noRootOfTrust, "no rootOfTrust in hardwareEnforced")
        }
        guard policy.accepts(trust) else {
            throw KeyAttestationRefusal(.bootState, "the system is \(trust.state)")
        }
        guard trust.isLocked || !policy.requiresLocked else {
            throw KeyAttestationRefusal(.bootloaderUnlocked, "the bootloader is not locked")
        }
    }

    /// Step 11, the key: on P-256, both by what the hardware says and by the certificate, which may
    /// hold a key of any kind; it may sign, with SHA-256.
    private func checkedKey(
        _ hardware: AuthorizationList,
        _ policy: AndroidPolicy
    ) throws(KeyAttestationRefusal) -> P256PublicKey {
        guard let origin = hardware.origin, policy.origins.contains(origin) else {
            throw KeyAttestationRefusal(
                .origin,
                hardware.origin.map { "the key was \($0)" } ?? "no origin in hardwareEnforced"
            )
        }
        // Older keystores leave out the curve, others the size.
        guard hardware.algorithm == AuthorizationList.Algorithm.ec,
            hardware.curve ?? AuthorizationList.Curve.p256 == AuthorizationList.Curve.p256,
            hardware.keySize ?? 256 == 256, let key = certificates[0].p256PublicKey
        else { throw KeyAttestationRefusal(.keyKind, "not a key on P-256") }
        guard hardware.purposes?.contains(AuthorizationList.Purpose.sign) == true else {
            throw KeyAttestationRefusal(.purpose, "the key may not sign")
        }
        guard hardware.digests?.contains(AuthorizationList.Digest.sha256) == true else {
            throw KeyAttestationRefusal(.digest, "the key may not sign SHA-256")
        }
        return key
    }

    /// Step 12: the app, as the system knows it. The system is the one of step 11.
    private func checkApp(
        _ apps: AttestedApps?,
        _ app: ExpectedAndroidApp
    ) throws(KeyAttestationRefusal) {
        guard let apps, apps.isKnown else {
            throw KeyAttestationRefusal(.appUnknown, "the system did not know the app")
        }
        guard apps.packages.contains(where: { $0.name == app.package }) else {
            throw KeyAttestationRefusal(.app, "made for another package")
        }
        guard apps.signers.contains(where: app.signers.contains) else {
            throw KeyAttestationRefusal(.signer, "the package has another signer")
        }
    }

    /// Step 13: the kind of chain and the age of the system. Of a patch level, six digits are a
    /// month; phones write odd ones, too, which are none that is new enough.
    private func checkRest(
        _ hardware: AuthorizationList,
        _ provisioning: Provisioning,
        _ policy: AndroidPolicy
    ) throws(KeyAttestationRefusal) {
        guard policy.provisioning.contains(provisioning) else {
            throw KeyAttestationRefusal(.provisioning, "provisioned by \(provisioning.rawValue)")
        }
        guard let least = policy.osPatchLevelMin else { return }
        guard let level = hardware.osPatchLevel,
            (100_000...999_999).contains(level), level >= least
        else { throw KeyAttestationRefusal(.osPatchLevel, "older than \(least), or unsaid") }
    }
}

/// The proof that a chain passed every step. Only `UnverifiedKeyAttestation.verified(…)` makes one.
///
/// Store the key and the serials. The chain itself is not needed any more: certificates of RKP
/// expire within days, and revocation is a matter of the serials.
public struct VerifiedKeyAttestation: Sendable {
    /// The key that signs requests.
    public let publicKey: P256PublicKey
    /// The app it belongs to.
    public let app: ExpectedAndroidApp
    /// All that was said of key and phone.
    public let description: KeyDescription
    /// The serials of the chain, the leaf's first, for
    /// ``StatusList/revoked(among:)`` when a newer list comes.
    public let serials: [CertificateSerial]
    /// How the phone came to be certified.
    public let provisioning: Provisioning
    /// What Google says of the phone; `nil` where it says nothing that can be read.
    public let provisioningInfo: ProvisioningInfo?
    /// SHA-256 of the SubjectPublicKeyInfo of the key that attested this one: of one phone with
    /// RKP, of a batch of phones from the factory. Whoever has a leaked one enrols with it again
    /// and again.
    public let attesterID: [UInt8]
    /// Which of the given roots vouches for it.
    public let root: X509Certificate
}

extension VerifiedKeyAttestation: AttestedKey {
    /// Android's key attestation.
    public static var platform: DevicePlatform { .android }

    /// SHA-256 of the key's point, as on other platforms.
    public var keyID: KeyID { KeyID(of: publicKey) }

    /// The keystore counts nothing; the app does, from 1 on.
    public var initialCounter: SignCounter? { .zero }
}
