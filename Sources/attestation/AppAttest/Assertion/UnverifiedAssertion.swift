internal import Encodings
public import Signatures

/// An assertion as a client sends it, read and not judged.
///
///     {"signature": DER ECDSA, "authenticatorData": 37 bytes, then nothing or one CBOR map}
///
/// Exactly these keys, in either order, strict CBOR. Each request brings one, so the bytes are
/// read once, without copies and without a tree.
///
/// Before iOS 27 the flags are 0x40, "attested credential data included", although there is none: a
/// parser of WebAuthn that obeys them reads past the end of every genuine assertion.
public struct UnverifiedAssertion: Sendable {
    /// The longest object that is read. 140…258 bytes have been seen.
    public static let bytesMax = 1024

    /// The object.
    public let bytes: [UInt8]
    /// The app from which the object claims to come.
    public let appIDHash: AppIDHash
    /// The flags byte, for people to read. It decides nothing.
    public let flags: UInt8
    /// The counter that the object claims.
    public let counter: SignCounter
    /// The statements of systems 27 and later about the build.
    public let extensions: AuthenticatorExtensions

    let signature: Range<Int>
    let authenticatorData: Range<Int>

    private static let signatureKey = Array("signature".utf8)
    private static let authenticatorDataKey = Array("authenticatorData".utf8)

    /// Reads an object. Throws `.malformed`.
    public init(bytes: [UInt8]) throws(AssertionRefusal) {
        let whole = ContiguousArray(bytes)
        do throws(CBORError) {
            let parts = try Self.parts(whole.span)
            signature = parts.signature
            authenticatorData = parts.authenticatorData
            guard let head = AuthenticatorHead(whole.span, authenticatorData) else {
                throw CBORError(.truncated, at: authenticatorData.upperBound)
            }
            appIDHash = head.appIDHash
            flags = head.flags
            counter = head.counter
            let rest = authenticatorData.dropFirst(AuthenticatorHead.byteCount)
            extensions = rest.isEmpty ? .none : try AuthenticatorExtensions(whole.span, rest)
        } catch {
            throw AssertionRefusal(.malformed, "\(error.reason.rawValue) at \(error.offset)")
        }
        self.bytes = bytes
    }

    /// Reads an object, from `Data` or any other bytes. Throws `.malformed`.
    public init(bytes: some Sequence<UInt8>) throws(AssertionRefusal) {
        try self.init(bytes: Array(bytes))
    }

    private static func parts(
        _ bytes: Span<UInt8>
    ) throws(CBORError) -> (signature: Range<Int>, authenticatorData: Range<Int>) {
        var cursor = try CBORCursor(
            0..<bytes.count,
            budget: CBORBudget(bytesMax: bytesMax, depthMax: 1, itemsMax: 5)
        )
        guard try cursor.map(in: bytes) == 2 else { throw CBORError(.unexpectedType, at: 0) }
        var signature: Range<Int>?
        var authenticatorData: Range<Int>?
        for _ in 0..<2 {
            let start = cursor.offset
            let key = try cursor.text(in: bytes)
            if bytes.equals(key, signatureKey) {
                guard signature == nil else { throw CBORError(.duplicateKey, at: start) }
                signature = try cursor.bytes(in: bytes)
            } else if bytes.equals(key, authenticatorDataKey) {
                guard authenticatorData == nil else { throw CBORError(.duplicateKey, at: start) }
                authenticatorData = try cursor.bytes(in: bytes)
            } else {
                throw CBORError(.unexpectedType, at: start)
            }
        }
        try cursor.finish()
        guard let signature, let authenticatorData else { throw CBORError(.unexpectedType, at: 0) }
        return (signature, authenticatorData)
    }
}

extension UnverifiedAssertion {
    /// Checks that the key made this assertion over this client data, in this app, after the last
    /// one that was accepted.
    ///
    /// Numbers are the steps of Apple's "Validating apps", "Verify the assertion". Step 6, the
    /// challenge, is for the caller, which knows what it issued. Steps 7 and 8 are
    /// ``VerifiedAssertion/checkBuild(_:)``.
    ///
    /// - Parameters:
    ///   - clientDataHash: what the app handed to `generateAssertion`: SHA-256 of the client data.
    ///   - key: the key that was attested.
    ///   - app: the app in which it was attested.
    ///   - stored: the counter of the last accepted assertion, 0 after the attestation. A server
    ///     that accepts numbers out of order passes the one below its window, and looks itself
    ///     for a number that it has seen.
    /// - Returns: the proof for these steps, whose counter is the next one to store.
    /// - Throws: `.signatureMismatch`, then `.appMismatch`, then `.counterReplayed`.
    public func verified(
        clientDataHash: Span<UInt8>,
        key: P256PublicKey,
        app: AppIDHash,
        after stored: SignCounter
    ) throws(AssertionRefusal) -> VerifiedAssertion {
        let verified = try verified(clientDataHash: clientDataHash, key: key, app: app)
        try verified.checkCounter(after: stored)
        return verified
    }

    /// Checks steps 1 to 4. The counter is for the caller: a store that others share compares and
    /// sets it in one step.
    package func verified(
        clientDataHash: Span<UInt8>,
        key: P256PublicKey,
        app: AppIDHash
    ) throws(AssertionRefusal) -> VerifiedAssertion {
        let whole = ContiguousArray(bytes)
        let span = whole.span
        // Steps 1 and 2. nonce = SHA256(authenticatorData ‖ clientDataHash).
        let nonce = SHA256.digest(span.extracting(authenticatorData), clientDataHash)
        // Step 3. The nonce is the message and not the digest: ECDSA hashes it once more. All
        // genuine assertions verify so, none the other way. s may be above half the order.
        guard
            key.isValidSignature(span.extracting(signature), digest: SHA256.digest(of: nonce))
        else {
            throw AssertionRefusal(.signatureMismatch, "signature of \(signature.count) bytes")
        }
        // Step 4.
        guard appIDHash == app else {
            throw AssertionRefusal(.appMismatch, "rpIdHash is of another App ID")
        }
        return VerifiedAssertion(app: app, counter: counter, extensions: extensions, flags: flags)
    }

    /// Checks the same for the client data itself, which this method hashes with SHA-256: `Data` or
    /// any other bytes.
    public func verified(
        clientData: some Sequence<UInt8>,
        key: P256PublicKey,
        app: AppIDHash,
        after stored: SignCounter
    ) throws(AssertionRefusal) -> VerifiedAssertion {
        try SHA256.digest(of: Array(clientData)).withSpan { hash throws(AssertionRefusal) in
            try verified(clientDataHash: hash, key: key, app: app, after: stored)
        }
    }

    /// Checks the same for a hash in `Data`, an array or a digest of swift-crypto.
    public func verified(
        clientDataHash: some Sequence<UInt8>,
        key: P256PublicKey,
        app: AppIDHash,
        after stored: SignCounter
    ) throws(AssertionRefusal) -> VerifiedAssertion {
        let hash = ContiguousArray(clientDataHash)
        return try verified(clientDataHash: hash.span, key: key, app: app, after: stored)
    }

    /// Checks steps 1 to 4 for a hash that is a digest of this package.
    package func verified(
        clientDataHash: SHA256Digest,
        key: P256PublicKey,
        app: AppIDHash
    ) throws(AssertionRefusal) -> VerifiedAssertion {
        try clientDataHash.withSpan { hash throws(AssertionRefusal) in
            try verified(clientDataHash: hash, key: key, app: app)
        }
    }
}

/// The proof that a key made an assertion over the client data, after the last accepted one. Only
/// `UnverifiedAssertion.verified(…)` makes one.
public struct VerifiedAssertion: Sendable {
    /// The app in which the assertion was made.
    public let app: AppIDHash
    /// Its counter, to be stored. Two requests may arrive at once, so a store that others share
    /// compares and sets it in one atomic step.
    public let counter: SignCounter
    /// The statements of systems 27 and later about the build.
    public let extensions: AuthenticatorExtensions
    /// The flags byte, for logs.
    public let flags: UInt8

    fileprivate init(
        app: AppIDHash,
        counter: SignCounter,
        extensions: AuthenticatorExtensions,
        flags: UInt8
    ) {
        self.app = app
        self.counter = counter
        self.extensions = extensions
        self.flags = flags
    }

    /// Step 5: the counter must be greater than that of the last accepted assertion, which is 0
    /// after the attestation. An equal counter is a replay. Throws `.counterReplayed`.
    package func checkCounter(after stored: SignCounter) throws(AssertionRefusal) {
        guard counter > stored else {
            throw AssertionRefusal(
                .counterReplayed,
                "counter \(counter.rawValue) after \(stored.rawValue)"
            )
        }
    }

    /// Steps 7 and 8: the policy must accept the build. Throws `.categoryRefused`, then
    /// `.versionRefused`.
    public func checkBuild(_ policy: BuildPolicy) throws(AssertionRefusal) {
        switch policy.judge(extensions) {
        case .none: return
        case .category(let found): throw AssertionRefusal(.categoryRefused, found)
        case .version(let found): throw AssertionRefusal(.versionRefused, found)
        }
    }
}

/// A proof can be written and not read: decoded bytes would prove nothing. A server stores only the
/// counter of an assertion.
extension VerifiedAssertion: Encodable {
    private enum CodingKeys: String, CodingKey {
        case app = "app_id_hash"
        case counter
        case extensions
    }
}
