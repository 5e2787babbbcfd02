internal import Cryptography

/// Says which known mistake would have made an attestation's nonce match. For people with a client
/// that is refused.
public enum AttestationDiagnosis {
    /// The first mistake, in the order of ``ClientMistake``, with which the nonce of the leaf
    /// certificate matches this challenge; `.none` when the app handed over SHA-256 of it,
    /// `.notHashed` when it handed over the challenge itself, `nil` when nothing that is tried
    /// matches.
    public static func mistake(
        in attestation: UnverifiedAttestation,
        challenge: some Sequence<UInt8>
    ) -> ClientMistake? {
        let nonce = attestation.leaf.extensionBytes(LeafDetails.nonceOID)
            .flatMap { LeafDetails.soleBytes($0, tag: 1) }
        guard let nonce else { return nil }
        let authenticatorData = attestation.authenticatorData.bytes
        return ClientDataVariants(of: Array(challenge)).hashes.first { variant in
            SHA256.digest(of: authenticatorData + variant.hash).octets == nonce
        }?.mistake
    }
}
