public import Signatures

/// Names the known mistake with which an assertion would verify. It is for people with a client
/// that is refused. The verdict on a request never comes from here.
public enum AssertionDiagnosis {
    /// The first mistake, in the order of ``ClientMistake``, with which the signature verifies over
    /// this client data. `.none` when it verifies without a mistake, `nil` when it verifies with
    /// none of them.
    public static func mistake(
        in assertion: UnverifiedAssertion,
        clientData: some Sequence<UInt8>,
        key: P256PublicKey
    ) -> ClientMistake? {
        mistake(in: assertion, ClientDataVariants(of: Array(clientData)), key)
    }

    /// The first mistake where only SHA-256 of the client data is known.
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
        let whole = ContiguousArray(assertion.bytes)
        let bytes = whole.span
        let signature = bytes.extracting(assertion.signature)
        for variant in variants.hashes {
            let nonce = SHA256.digest(
                bytes.extracting(assertion.authenticatorData),
                ContiguousArray(variant.hash).span
            )
            if key.isValidSignature(signature, digest: SHA256.digest(of: nonce)) {
                return variant.mistake
            }
            // Only for the right client data hash, which is the first variant.
            if variant.mistake == .none,
                key.isValidSignature(signature, digest: nonce)
            {
                return .nonceAsDigest
            }
        }
        return nil
    }
}

/// Names the known mistake with which an attestation's nonce would match. It is for people with a
/// client that is refused.
public enum AttestationDiagnosis {
    /// The first mistake, in the order of ``ClientMistake``, with which the nonce of the leaf
    /// certificate matches this challenge. `.none` when the app handed over SHA-256 of it,
    /// `.notHashed` when it handed over the challenge itself, `nil` when no variant matches.
    public static func mistake(
        in attestation: UnverifiedAttestation,
        challenge: some Sequence<UInt8>
    ) -> ClientMistake? {
        let nonce = attestation.leaf.extensionBytes(LeafDetails.nonceOID)
            .flatMap { LeafDetails.soleBytes($0, tag: 1) }
        guard let nonce else { return nil }
        let authenticatorData = attestation.authenticatorData.bytes
        return ClientDataVariants(of: Array(challenge)).hashes.first { variant in
            SHA256.digest(of: authenticatorData + variant.hash).array == nonce
        }?.mistake
    }
}

/// A known mistake of clients and servers with client data, before or after hashing.
///
/// The diagnosis tries each mistake, and names the one with which the object verifies. Such an
/// object is still refused.
public enum ClientMistake: String, Hashable, Sendable, CaseIterable {
    /// None: the hash is SHA-256 of the client data.
    case none
    /// The app handed over the bytes themselves, not their hash.
    case notHashed = "not-hashed"
    /// The app handed over SHA-256 of the SHA-256.
    case hashedTwice = "hashed-twice"
    /// The app handed over the hash as hexadecimal text.
    case hashAsHex = "hash-as-hex-text"
    /// The app handed over the hash as base64 text.
    case hashAsBase64 = "hash-as-base64-text"
    /// The app handed over SHA-256 of the hash's hexadecimal text.
    case hashOfHexHash = "hash-of-hex-hash"
    /// The app handed over SHA-256 of the hash's base64 text.
    case hashOfBase64Hash = "hash-of-base64-hash"
    /// Hashed as base64 text.
    case dataAsBase64 = "data-as-base64-text"
    /// Hashed as base64url text.
    case dataAsBase64URL = "data-as-base64url-text"
    /// Hashed as hexadecimal text.
    case dataAsHex = "data-as-hex-text"
    /// Hashed after base64 was decoded.
    case dataDecodedFromBase64 = "data-decoded-from-base64"
    /// Hashed after hexadecimal was decoded.
    case dataDecodedFromHex = "data-decoded-from-hex"
    /// Hashed with a line feed at the end.
    case lineFeedAdded = "line-feed-added"
    /// Hashed without the line feed at the end.
    case lineFeedMissing = "line-feed-missing"
    /// Hashed with carriage returns before line feeds.
    case carriageReturns = "carriage-returns-added"
    /// JSON hashed without white space between its tokens.
    case jsonCompacted = "json-white-space-removed"
    /// JSON hashed with slashes escaped, as Foundation's encoders write them.
    case jsonSlashesEscaped = "json-slashes-escaped"
    /// JSON hashed with slashes not escaped.
    case jsonSlashesPlain = "json-slashes-plain"
    /// JSON hashed as text inside quotation marks: encoded twice.
    case quoted = "quoted"
    /// Hashed without any data.
    case empty = "empty-client-data"
    /// The signer took the nonce as the digest and did not hash it once more.
    case nonceAsDigest = "nonce-as-digest"
}
