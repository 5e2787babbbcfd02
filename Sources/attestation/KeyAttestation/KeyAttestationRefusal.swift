/// Why a key attestation was refused: the first step that failed. Two refusals are equal when their
/// reasons are.
public struct KeyAttestationRefusal: Error, Hashable, Sendable, CustomStringConvertible {
    /// The step that failed, in the order of the procedure. The raw value is what logs, metrics and
    /// answers call it; it does not change.
    ///
    /// May grow: a `switch` over it has an `@unknown default`.
    @nonexhaustive
    public enum Reason: String, CaseIterable, Sendable {
        /// Steps 1 and 8: no chain of certificates, or no key description.
        case malformed
        /// Step 2: the chain ends at no given root.
        case rootUnknown = "root-unknown"
        /// Step 3: a certificate names another issuer than the next certificate's subject.
        case chainNames = "chain-names"
        /// Step 3: a certificate is not signed by the next one's key.
        case chainSignature = "chain-signature"
        /// Step 6: a second certificate has a key description: its key was attested, too.
        case chainExtended = "chain-extended"
        /// Step 4: more or fewer certificates than this kind of chain has.
        case chainShape = "chain-shape"
        /// Step 5: a certificate is not valid yet.
        case notYetValid = "not-yet-valid"
        /// Step 5: a certificate of a chain with short-lived certificates is no longer valid.
        case expired
        /// Step 6: the leaf has no key description.
        case noAttestation = "no-attestation"
        /// Step 7: a certificate is in the status list.
        case revoked
        /// Step 9: made for another challenge.
        case challenge
        /// Step 10: key and attestation are of different levels, or StrongBox is claimed by the
        /// leaf alone.
        case levelMismatch = "level-mismatch"
        /// Step 10: made by software, which the policy does not accept.
        case softwareLevel = "software-level"
        /// Step 10: the policy demands another level of hardware.
        case securityLevel = "security-level"
        /// Step 11: the hardware says nothing of how the system was started.
        case noRootOfTrust = "no-root-of-trust"
        /// Step 11: the system is not the maker's, or the policy's.
        case bootState = "boot-state"
        /// Step 11: any system could be started.
        case bootloaderUnlocked = "bootloader-unlocked"
        /// Step 11: the key was not made in the hardware.
        case origin
        /// Step 11: no key on P-256.
        case keyKind = "key-kind"
        /// Step 11: the key may not sign.
        case purpose
        /// Step 11: the key may not sign SHA-256.
        case digest
        /// Step 12: the system did not know which app asked. It may be asked again.
        case appUnknown = "app-unknown"
        /// Step 12: made for another app.
        case app
        /// Step 12: the app is signed by another key.
        case signer
        /// Step 13: the policy demands another kind of chain.
        case provisioning
        /// Step 13: the system is older than the policy allows, or does not say how old.
        case osPatchLevel = "os-patch-level"

        /// Whether the certificates themselves are to blame, and not what they say.
        package var isOfChain: Bool {
            switch self {
            case .malformed, .rootUnknown, .chainNames, .chainSignature, .chainExtended,
                .chainShape, .notYetValid, .expired, .noAttestation:
                true
            case .revoked, .challenge, .levelMismatch, .softwareLevel, .securityLevel,
                .noRootOfTrust, .bootState, .bootloaderUnlocked, .origin, .keyKind, .purpose,
                .digest, .appUnknown, .app, .signer, .provisioning, .osPatchLevel:
                false
            }
        }
    }

    /// The step that failed, for code.
    public let reason: Reason
    /// What was found, for people. Not compared, and without key material.
    public let detail: String

    init(_ reason: Reason, _ detail: String) {
        self.reason = reason
        self.detail = detail
    }

    /// The reason as logs call it, and what was found.
    public var description: String { "\(reason.rawValue): \(detail)" }

    /// Whether two refusals have the same reason.
    public static func == (left: Self, right: Self) -> Bool { left.reason == right.reason }

    /// Feeds the reason.
    public func hash(into hasher: inout Hasher) { hasher.combine(reason) }
}

extension KeyAttestationRefusal.Reason {
    /// What is wrong, in one English sentence, for the operator of a server.
    public var summary: String {
        switch self {
        case .malformed: "The bytes are no chain of certificates with a key description."
        case .rootUnknown: "The chain ends at no trusted root."
        case .chainNames: "A certificate of the chain names another issuer than the next one."
        case .chainSignature: "A certificate of the chain is not signed by the next one's key."
        case .chainExtended: "A key that was attested itself has signed a certificate of the chain."
        case .chainShape: "The chain is longer or shorter than phones of its kind make it."
        case .notYetValid: "A certificate of the chain is not valid yet."
        case .expired: "A certificate of the chain is no longer valid."
        case .noAttestation: "The key was made without a challenge, so that nothing attests it."
        case .revoked: "A certificate of the chain is in Google's status list."
        case .challenge: "The key was made for another challenge."
        case .levelMismatch: "Key and description are not of the same hardware."
        case .softwareLevel: "The key is in software."
        case .securityLevel: "The key is in other hardware than the policy asks for."
        case .noRootOfTrust: "The hardware does not say how the system was started."
        case .bootState: "The phone runs another system than its maker's."
        case .bootloaderUnlocked: "The phone's bootloader is unlocked, so that any system may run."
        case .origin: "The key was not made in the hardware."
        case .keyKind: "The key is not on P-256."
        case .purpose: "The key may not sign."
        case .digest: "The key may not sign SHA-256."
        case .appUnknown: "The system did not know which app had the key made."
        case .app: "The key was made for another app."
        case .signer: "The app is signed by another certificate."
        case .provisioning: "The phone was not provisioned as the policy asks."
        case .osPatchLevel: "The system is older than the policy allows, or says no age."
        }
    }

    /// What to look at first, in one English sentence.
    public var nextStep: String {
        switch self {
        case .malformed: "Check that the client sends all of getCertificateChain, the leaf first."
        case .rootUnknown:
            "Emulators and upgraded phones attest in software; for tests name a root."
        case .chainNames, .chainSignature, .chainExtended, .chainShape:
            "Refuse the phone if the client sends all of getCertificateChain and nothing else."
        case .notYetValid: "Check the clock."
        case .expired: "Verify a chain at once: certificates of RKP live for days."
        case .noAttestation: "The app calls setAttestationChallenge before it makes the key."
        case .revoked: "Refuse the phone: keys of its batch have leaked."
        case .challenge: "Check what the app hands to setAttestationChallenge."
        case .levelMismatch, .softwareLevel, .noRootOfTrust, .bootloaderUnlocked:
            "Refuse the phone."
        case .securityLevel: "Check the accepted levels: many phones have no StrongBox."
        case .bootState: "Trust the boot keys of other systems only where you know them."
        case .origin, .keyKind, .purpose, .digest:
            "The app asks for PURPOSE_SIGN, secp256r1 and DIGEST_SHA256, and imports nothing."
        case .appUnknown: "The app makes another key, if need be after a restart of the phone."
        case .app: "Check the package name."
        case .signer: "Compare the signers with the app signing key in the Play Console."
        case .provisioning: "Phones before Android 12 or 13 have keys from the factory."
        case .osPatchLevel: "The user updates the phone."
        }
    }
}
