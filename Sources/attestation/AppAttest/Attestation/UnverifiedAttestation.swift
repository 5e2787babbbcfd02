public import DeviceKey
internal import Encodings
public import Signatures

/// An attestation object as a client sends it, read and not judged.
///
///     {"fmt": "apple-appattest",
///      "attStmt": {"x5c": [leaf, intermediate], "receipt": bytes},
///      "authData": bytes}
///
/// Exactly these keys, in any order, strict CBOR, exactly two certificates.
public struct UnverifiedAttestation: Sendable {
    /// The longest object that is read. 1,969…5,921 bytes have been seen.
    public static let bytesMax = 16 * 1024

    /// The certificate of the key.
    public let leaf: X509Certificate
    /// The certificate of the authority that signed the leaf.
    public let intermediate: X509Certificate
    /// The receipt, for ``UnverifiedReceipt``. It is not covered by the attestation.
    public let receipt: [UInt8]
    let authenticatorData: AttestedAuthenticatorData

    /// Reads an object. Throws `.malformed`.
    public init(bytes: [UInt8]) throws(AttestationRefusal) {
        let object: CBORValue
        do throws(CBORError) {
            object = try CBORValue(
                decoding: ContiguousArray(bytes).span,
                budget: CBORBudget(bytesMax: Self.bytesMax, depthMax: 4, itemsMax: 16)
            )
        } catch {
            throw AttestationRefusal(.malformed, "\(error.reason.rawValue) at \(error.offset)")
        }
        guard case .map(let pairs) = object, pairs.count == 3,
            object["fmt"] == .text("apple-appattest"), let statement = object["attStmt"],
            case .bytes(let authData) = object["authData"]
        else { throw AttestationRefusal(.malformed, "not fmt, attStmt, authData") }
        guard case .map(let parts) = statement, parts.count == 2,
            case .array(let x5c) = statement["x5c"], case .bytes(let receipt) = statement["receipt"]
        else { throw AttestationRefusal(.malformed, "attStmt is not x5c, receipt") }
        guard x5c.count == 2, case .bytes(let leaf) = x5c[0], case .bytes(let intermediate) = x5c[1]
        else { throw AttestationRefusal(.malformed, "x5c is not two certificates") }
        do throws(X509CertificateError) {
            self.leaf = try X509Certificate(der: leaf)
            self.intermediate = try X509Certificate(der: intermediate)
        } catch {
            throw AttestationRefusal(.malformed, "x5c: \(error.detail)")
        }
        self.receipt = receipt
        authenticatorData = try AttestedAuthenticatorData(authData)
    }

    /// Reads an object, from `Data` or any other bytes. Throws `.malformed`.
    public init(bytes: some Sequence<UInt8>) throws(AttestationRefusal) {
        try self.init(bytes: Array(bytes))
    }

    /// The app from which the object claims to come; it tells which app to expect.
    public var appIDHash: AppIDHash { authenticatorData.head.appIDHash }

    /// The key that the object claims to attest.
    public var credentialID: KeyID { authenticatorData.credentialID }

    /// The environment from which the object claims to come; `nil` when it is neither.
    public var environment: AttestationEnvironment? {
        AttestationEnvironment(aaguid: authenticatorData.aaguid)
    }

    /// The flags byte, for people to read. It decides nothing.
    public var flags: UInt8 { authenticatorData.head.flags }

    /// The counter that the object claims.
    public var counter: SignCounter { authenticatorData.head.counter }

    /// The statements of systems 27 and later about the build.
    public var extensions: AuthenticatorExtensions { authenticatorData.extensions }

    /// The certificate's statements about the device.
    public var details: LeafDetails { LeafDetails(leaf) }
}

extension UnverifiedAttestation {
    /// Apple's access control list of a key on macOS with Full Security and System Integrity
    /// Protection, 66 bytes: "Validating apps", step 4, which prints it in base64. A test
    /// compares the two.
    package static let macOSAccessControl: [UInt8] = [
        0x30, 0x40, 0x0C, 0x02, 0x31, 0x31, 0x30, 0x3A, 0x30, 0x09, 0x0C, 0x02, 0x6F, 0x6B, 0xA1,
        0x03, 0x01, 0x01, 0xFF, 0x30, 0x09, 0x0C, 0x02, 0x6F, 0x61, 0xA1, 0x03, 0x01, 0x01, 0xFF,
        0x30, 0x0B, 0x0C, 0x04, 0x6F, 0x64, 0x65, 0x6C, 0xA1, 0x03, 0x01, 0x01, 0xFF, 0x30, 0x15,
        0x0C, 0x04, 0x6F, 0x73, 0x67, 0x6E, 0xA0, 0x06, 0x0C, 0x04, 0x72, 0x73, 0x65, 0x63, 0x30,
        0x05, 0xA6, 0x03, 0x02, 0x01, 0x01,
    ]

    /// Checks this object, in the order of Apple's "Validating apps", "Verify the attestation"; the
    /// numbers below are its steps.
    ///
    /// - Parameters:
    ///   - clientDataHash: what the app handed to `attestKey`, byte for byte and of any length.
    ///     Apple's text makes it SHA-256 of the challenge; Apple's two samples hand over the
    ///     challenge itself. The caller says which, by app.
    ///   - keyID: the key id that came with the object.
    ///   - apps: the apps that are accepted, at most one of each App ID.
    ///   - roots: the authorities that are trusted: ``AppleRoots/appAttestation``, or one of a
    ///     test.
    ///   - time: the moment at which the certificates have to be valid. Leaves live for one to
    ///     three days, so verify an object when it arrives.
    /// - Returns: the proof, with all there is to store.
    /// - Throws: the first step that fails.
    public func verified(
        clientDataHash: Span<UInt8>,
        keyID: KeyID,
        apps: [ExpectedApp],
        roots: [X509Certificate],
        at time: UnixTime
    ) throws(AttestationRefusal) -> VerifiedAttestation {
        // Step 1: the chain of leaf, intermediate and root, in the order of x5c. Two certificates
        // in the other order may make a path as well, so the order is checked.
        let root = try verifiedRoot(roots: roots, at: time)

        // Steps 2 to 4.
        let details = LeafDetails(leaf)
        let app = apps.first { $0.hash == appIDHash }
        try checkNonce(clientDataHash)
        try checkAccessControl(details, isMacOSApp: app?.isMacOS == true)

        // Step 5: the key id is SHA-256 of the point.
        guard let publicKey = leaf.p256PublicKey, KeyID(of: publicKey) == keyID else {
            throw AttestationRefusal(.keyIDMismatch, "key id is not that of the certificate's key")
        }
        // Step 6.
        guard let app else {
            throw AttestationRefusal(.appMismatch, "rpIdHash is of no accepted App ID")
        }
        // Step 7.
        guard counter == .zero else {
            throw AttestationRefusal(.counterNotZero, "counter is \(counter.rawValue)")
        }
        // Step 8.
        guard let environment, app.environments.contains(environment) else {
            throw AttestationRefusal(
                .environmentMismatch,
                environment.map { "attested for \($0.rawValue)" } ?? "AAGUID is neither"
            )
        }
        // Step 9. That the COSE key is the same key is not among Apple's steps; WebAuthn Level 3
        // §8.8 asks for it.
        guard credentialID == keyID,
            authenticatorData.coseKey == AttestedAuthenticatorData.coseKey(of: publicKey)
        else {
            throw AttestationRefusal(.keyIDMismatch, "authData is of another key")
        }
        // Steps 10 and 11.
        switch app.builds.judge(extensions) {
        case .none: break
        case .category(let found): throw AttestationRefusal(.categoryRefused, found)
        case .version(let found): throw AttestationRefusal(.versionRefused, found)
        }
        return VerifiedAttestation(
            publicKey: publicKey,
            keyID: keyID,
            app: app,
            environment: environment,
            receipt: receipt,
            extensions: extensions,
            details: details,
            root: root,
            flags: flags
        )
    }

    /// Checks the same for a client data hash in `Data`, an array or a digest of swift-crypto.
    public func verified(
        clientDataHash: some Sequence<UInt8>,
        keyID: KeyID,
        apps: [ExpectedApp],
        roots: [X509Certificate],
        at time: UnixTime
    ) throws(AttestationRefusal) -> VerifiedAttestation {
        let hash = ContiguousArray(clientDataHash)
        return try verified(
            clientDataHash: hash.span,
            keyID: keyID,
            apps: apps,
            roots: roots,
            at: time
        )
    }

    /// Checks the same for an app that hands over SHA-256 of the challenge, as Apple's text says.
    /// This method hashes the challenge, which is `Data` or any other bytes.
    public func verified(
        challenge: some Sequence<UInt8>,
        keyID: KeyID,
        apps: [ExpectedApp],
        roots: [X509Certificate],
        at time: UnixTime
    ) throws(AttestationRefusal) -> VerifiedAttestation {
        let hash = ContiguousArray(SHA256.digest(of: Array(challenge)).array)
        return try verified(
            clientDataHash: hash.span,
            keyID: keyID,
            apps: apps,
            roots: roots,
            at: time
        )
    }

    /// Steps 2 to 4: nonce = SHA256(authData ‖ clientDataHash), which the leaf has in
    /// `SEQUENCE { [1] OCTET STRING }`.
    private func checkNonce(_ clientDataHash: Span<UInt8>) throws(AttestationRefusal) {
        let nonce = SHA256.digest(ContiguousArray(authenticatorData.bytes).span, clientDataHash)
        let inLeaf = leaf.extensionBytes(LeafDetails.nonceOID)
            .flatMap { LeafDetails.soleBytes($0, tag: 1) }
        guard let inLeaf else { throw AttestationRefusal(.nonceMismatch, "the leaf has no nonce") }
        guard inLeaf == nonce.array else {
            throw AttestationRefusal(.nonceMismatch, "made for another challenge")
        }
    }

    /// Step 4 on macOS. iPhones since iOS 26 have the extension with another value. So the list is
    /// compared only if the leaf names macOS, or if the expected app runs on macOS and the leaf
    /// shows no other device: iPhones and Macs may attest for one App ID.
    private func checkAccessControl(
        _ details: LeafDetails,
        isMacOSApp: Bool
    ) throws(AttestationRefusal) {
        switch details.device {
        case .mac: break
        case .unsaid where isMacOSApp: break
        case .unsaid, .other: return
        }
        guard details.accessControl == Self.macOSAccessControl else {
            throw AttestationRefusal(.accessControlMismatch, "the key's access control list")
        }
    }

    private func verifiedRoot(
        roots: [X509Certificate],
        at time: UnixTime
    ) throws(AttestationRefusal) -> X509Certificate {
        let path: [X509Certificate]
        do throws(X509CertificateError) {
            path = try leaf.path(through: [intermediate], to: roots, at: time)
        } catch {
            let isTime = error.reason == .expired || error.reason == .notYetValid
            throw AttestationRefusal(
                isTime ? .certificateExpired : .certificateUntrusted,
                error.detail
            )
        }
        guard path.count == 3, path[1].der == intermediate.der else {
            throw AttestationRefusal(.certificateUntrusted, "x5c is not leaf, intermediate")
        }
        return path[2]
    }
}
