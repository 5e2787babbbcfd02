public import Cryptography

extension UnverifiedAssertion {
    /// Checks that the key made this assertion over this client data, in this app.
    ///
    /// Numbers are the steps of Apple's "Validating apps", "Verify the assertion". Step 5 is
    /// ``VerifiedAssertion/checkCounter(after:)``, separate because a caller may keep counters in
    /// another way. Step 6, the challenge, is for the caller, which knows what it issued. Steps 7
    /// and 8 are ``VerifiedAssertion/checkBuild(_:)``.
    ///
    /// - Parameters:
    ///   - clientDataHash: what the app handed to `generateAssertion`: SHA-256 of the client data.
    ///   - key: the key that was attested.
    ///   - app: the app in which it was attested.
    /// - Returns: the proof for these steps.
    /// - Throws: `.signatureMismatch`, then `.appMismatch`.
    public func verified(
        clientDataHash: Span<UInt8>,
        key: P256PublicKey,
        app: AppIDHash
    ) throws(AssertionRefusal) -> VerifiedAssertion {
        let span = bytes.span
        // Steps 1 and 2. nonce = SHA256(authenticatorData ‖ clientDataHash).
        let nonce = SHA256.digest(span.extracting(authenticatorData), clientDataHash).bytes
        // Step 3. The nonce is the message and not the digest: ECDSA hashes it once more. All
        // genuine assertions verify so, none the other way. s may be above half the order.
        guard
            key.isValidSignature(
                span.extracting(signature),
                digest: SHA256.digest(nonce.span)
            )
        else {
            throw AssertionRefusal(.signatureMismatch, "signature of \(signature.count) bytes")
        }
        // Step 4.
        guard appIDHash == app else {
            throw AssertionRefusal(.appMismatch, "rpIdHash is of another App ID")
        }
        return VerifiedAssertion(
            app: app,
            counter: counter,
            extensions: extensions,
            flags: flags
        )
    }

    /// The same for the client data itself, which is hashed here with SHA-256: `Data` or any other
    /// bytes.
    public func verified(
        clientData: some Sequence<UInt8>,
        key: P256PublicKey,
        app: AppIDHash
    ) throws(AssertionRefusal) -> VerifiedAssertion {
        try verified(clientDataHash: SHA256.digest(of: Array(clientData)), key: key, app: app)
    }

    /// The same for a hash in `Data`, an array or a digest of swift-crypto.
    public func verified(
        clientDataHash: some Sequence<UInt8>,
        key: P256PublicKey,
        app: AppIDHash
    ) throws(AssertionRefusal) -> VerifiedAssertion {
        let hash = Array(clientDataHash)
        return try verified(clientDataHash: hash.span, key: key, app: app)
    }

    /// The same where the hash is a digest that was computed here.
    package func verified(
        clientDataHash: SHA256Digest,
        key: P256PublicKey,
        app: AppIDHash
    ) throws(AssertionRefusal) -> VerifiedAssertion {
        let hash = clientDataHash.bytes
        return try verified(clientDataHash: hash.span, key: key, app: app)
    }
}
