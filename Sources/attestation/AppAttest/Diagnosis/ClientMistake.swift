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
