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
