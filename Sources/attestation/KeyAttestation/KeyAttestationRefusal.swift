/// Why a key attestation was refused: the first step that failed. Two refusals are equal when their
/// reasons are.
public struct KeyAttestationRefusal: Error, Hashable, Sendable, CustomStringConvertible {
    /// The step that failed, in the order of the procedure. The raw value is what logs, metrics and
    /// answers call it; it does not change.
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
