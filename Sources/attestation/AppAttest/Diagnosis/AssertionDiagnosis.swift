public import Signatures

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
            SHA256.digest(of: authenticatorData + variant.hash).array == nonce
        }?.mistake
    }
}

/// Something that clients and servers are known to do to client data before, or after, it is
/// hashed.
///
/// Found by trying: a mistake is named when the object verifies with it made. Nothing accepts an
/// object for that.
public enum ClientMistake: String, Hashable, Sendable, CaseIterable {
    /// None: the hash is SHA-256 of the client data.
    case none
    /// The bytes themselves were handed over, not hashed.
    case notHashed = "not-hashed"
    /// SHA-256 of the SHA-256 was handed over.
    case hashedTwice = "hashed-twice"
    /// The hash was handed over as hexadecimal text.
    case hashAsHex = "hash-as-hex-text"
    /// The hash was handed over as base64 text.
    case hashAsBase64 = "hash-as-base64-text"
    /// SHA-256 of the hash's hexadecimal text was handed over.
    case hashOfHexHash = "hash-of-hex-hash"
    /// SHA-256 of the hash's base64 text was handed over.
    case hashOfBase64Hash = "hash-of-base64-hash"
    /// Hashed as base64 text.
    case dataAsBase64 = "data-as-base64-text"
    /// Hashed as base64url text.
    case dataAsBase64URL = "data-as-base64url-text"
    /// Hashed as hexadecimal text.
    case dataAsHex = "data-as-hex-text"
    /// Hashed after base64 was taken off.
    case dataDecodedFromBase64 = "data-decoded-from-base64"
    /// Hashed after hexadecimal was taken off.
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
    /// Nothing was hashed.
    case empty = "empty-client-data"
    /// The nonce was taken as the digest, and not hashed once more, when the signature was made.
    case nonceAsDigest = "nonce-as-digest"
}
