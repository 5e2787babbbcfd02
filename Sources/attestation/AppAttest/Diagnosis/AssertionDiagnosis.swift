internal import Encodings
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
///
/// May grow: a `switch` over it has an `@unknown default`.
@nonexhaustive(warn)
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

/// The values that a client may have handed to `attestKey` or `generateAssertion` in place of
/// SHA-256 of the client data.
struct ClientDataVariants {
    /// Each mistake with the client data hash it makes, the right one first.
    let hashes: [(mistake: ClientMistake, hash: [UInt8])]

    /// The variants of known client data.
    init(of data: [UInt8]) {
        let hash = SHA256.digest(of: data).array
        var hashes: [(ClientMistake, [UInt8])] = [(.none, hash), (.notHashed, data)]
        hashes += Self.variants(ofHash: hash)
        func add(_ mistake: ClientMistake, _ data: [UInt8]?) {
            if let data { hashes.append((mistake, SHA256.digest(of: data).array)) }
        }
        add(.dataAsBase64, Base64.encode(data))
        add(.dataAsBase64URL, Base64.encodeURL(data))
        add(.dataAsHex, Array(Hex.text(data).utf8))
        add(.dataDecodedFromBase64, Base64.decode(ContiguousArray(data).span))
        add(.dataDecodedFromHex, Hex.decode(String(decoding: data, as: UTF8.self)))
        add(.lineFeedAdded, data + [0x0A])
        add(.lineFeedMissing, data.last == 0x0A ? data.dropLast() : nil)
        add(.carriageReturns, data.flatMap { $0 == 0x0A ? [0x0D, 0x0A] : [$0] })
        add(.jsonCompacted, Self.withoutWhiteSpace(data))
        add(.jsonSlashesEscaped, Self.withSlashesEscaped(data))
        add(.jsonSlashesPlain, Self.withSlashesPlain(data))
        add(.quoted, Self.quoted(data))
        add(.empty, [])
        self.hashes = hashes
    }

    /// The variants of a client data hash, where the data itself is unknown.
    init(ofHash hash: [UInt8]) { hashes = [(.none, hash)] + Self.variants(ofHash: hash) }

    private static func variants(ofHash hash: [UInt8]) -> [(ClientMistake, [UInt8])] {
        let hex = Array(Hex.text(hash).utf8)
        let base64 = Base64.encode(hash)
        return [
            (.hashedTwice, SHA256.digest(of: hash).array),
            (.hashAsHex, hex),
            (.hashAsBase64, base64),
            (.hashOfHexHash, SHA256.digest(of: hex).array),
            (.hashOfBase64Hash, SHA256.digest(of: base64).array),
        ]
    }

    /// Removes white space between tokens of JSON and leaves strings as they are.
    private static func withoutWhiteSpace(_ data: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        var isInString = false
        var isEscaped = false
        for byte in data {
            if isInString {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isInString = false
                }
            } else if [0x20, 0x09, 0x0A, 0x0D].contains(byte) {
                continue
            } else if byte == UInt8(ascii: "\"") {
                isInString = true
            }
            result.append(byte)
        }
        return result
    }

    private static func withSlashesEscaped(_ data: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        for byte in data {
            if byte == UInt8(ascii: "/"), result.last != UInt8(ascii: "\\") {
                result.append(UInt8(ascii: "\\"))
            }
            result.append(byte)
        }
        return result
    }

    private static func withSlashesPlain(_ data: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        for byte in data {
            if byte == UInt8(ascii: "/"), result.last == UInt8(ascii: "\\") { result.removeLast() }
            result.append(byte)
        }
        return result
    }

    private static func quoted(_ data: [UInt8]) -> [UInt8] {
        let quotation = UInt8(ascii: "\"")
        let escaped = data.flatMap { byte in
            byte == quotation || byte == UInt8(ascii: "\\")
                ? [UInt8(ascii: "\\"), byte] : [byte]
        }
        return [quotation] + escaped + [quotation]
    }
}
