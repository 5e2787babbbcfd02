public import Cryptography

/// Says which known mistake would have made an assertion verify. For people with a client that is
/// refused; the verdict on a request never comes from here.
public enum AssertionDiagnosis {
    /// The first mistake, in the order of ``ClientMistake``, with which the signature verifies over
    /// this client data; `.none` when it verifies without one, `nil` when it verifies with none of
    /// them.
    public static func mistake(
        in assertion: UnverifiedAssertion,
        clientData: some Sequence<UInt8>,
        key: P256PublicKey
    ) -> ClientMistake? {
        mistake(in: assertion, ClientDataVariants(of: Array(clientData)), key)
    }

    /// The same where only SHA-256 of the client data is known.
    public static func mistake(
        in assertion: UnverifiedAssertion,
        clientDataHash: some Sequence<UInt8>,
        key: P256PublicKey
    ) -> ClientMistake? {
        mistake(in: assertion, ClientDataVariants(ofHash: Array(clientDataHash)), key)
    }

    private static func mistake(
        in assertion: UnverifiedAssertion,
        _ variants: ClientDataVariants,
        _ key: P256PublicKey
    ) -> ClientMistake? {
        let bytes = assertion.bytes.span
        let signature = bytes.extracting(assertion.signature)
        for variant in variants.hashes {
            let nonce = SHA256.digest(
                bytes.extracting(assertion.authenticatorData),
                variant.hash.span
            )
            if key.isValidSignature(signature, digest: SHA256.digest(of: nonce.octets)) {
                return variant.mistake
            }
            // Only with the right client data hash, which is the first variant.
            if variant.mistake == .none,
                key.isValidSignature(signature, digest: nonce)
            {
                return .nonceAsDigest
            }
        }
        return nil
    }
}
