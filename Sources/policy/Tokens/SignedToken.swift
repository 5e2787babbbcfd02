internal import Encodings

/// A token in the compact form of JSON Web Signatures (RFC 7515 §7.1), read and not verified.
///
///     BASE64URL(header) "." BASE64URL(claims) "." BASE64URL(signature)
///
/// Read strictly: one spelling of base64url without padding; the header an object whose members
/// stand once; no `crit`, so that nothing has to be understood that is not (§4.1.11); no `cty`, so
/// that the claims are no token in turn (RFC 7519 §5.2). What a header says of keys (`jwk`, `jku`,
/// `x5c`, `x5u`, `x5t`) is not read: §10.7 leaves to the verifier which keys it trusts.
struct SignedToken {
    /// The longest header and claims, in bytes of base64url.
    static let headerBytesMax = 2_048
    static let claimsBytesMax = 6_144
    /// That of RSA with 8192 bits.
    static let signatureBytesMax = 1_366
    /// The most members of an object.
    static let membersMax = 64

    /// `alg`, as the token states it. It is compared with the key's, and chooses nothing.
    let algorithm: String
    /// `kid`
    let keyID: [UInt8]?
    /// `typ`: what kind of token it is, as the token states it.
    let type: [UInt8]?
    /// The bytes of the text that are signed.
    let signed: Range<Int>
    /// The claims, a JSON text.
    let claims: [UInt8]
    let signature: [UInt8]

    /// `nil` for a text that is no such token.
    init?(_ text: Span<UInt8>) {
        guard let parts = Self.parts(text, 3), parts[0].count <= Self.headerBytesMax,
            parts[1].count <= Self.claimsBytesMax, parts[2].count <= Self.signatureBytesMax,
            let header = Base64.decodeURL(text.extracting(parts[0])),
            let claims = Base64.decodeURL(text.extracting(parts[1])),
            let signature = Base64.decodeURL(text.extracting(parts[2])),
            !header.isEmpty, !claims.isEmpty, !signature.isEmpty,
            let read = try? Self.header(header.span)
        else { return nil }
        algorithm = read.algorithm
        keyID = read.keyID
        type = read.type
        signed = 0..<parts[1].upperBound
        self.claims = claims
        self.signature = signature
    }

    /// The places of the parts between the full stops; `nil` for another number of parts.
    static func parts(_ text: Span<UInt8>, _ count: Int) -> [Range<Int>]? {
        var parts: [Range<Int>] = []
        var start = 0
        for index in text.indices where text[index] == UInt8(ascii: ".") {
            guard parts.count < count - 1 else { return nil }
            parts.append(start..<index)
            start = index + 1
        }
        parts.append(start..<text.count)
        return parts.count == count ? parts : nil
    }

    private static func header(
        _ text: Span<UInt8>
    ) throws(JSONError) -> (algorithm: String, keyID: [UInt8]?, type: [UInt8]?) {
        var reader = JSONReader()
        var names = MemberNames()
        var algorithm: String?
        var (keyID, type): ([UInt8]?, [UInt8]?)
        try reader.beginObject(text)
        while let name = try reader.nextName(text) {
            try names.add(name, reader)
            switch String(decoding: name, as: UTF8.self) {
            case "alg":
                guard case .string(let value) = try reader.scalar(text) else {
                    throw reader.error("alg is no string")
                }
                algorithm = String(decoding: value, as: UTF8.self)
            case "kid":
                guard case .string(let value) = try reader.scalar(text),
                    value.count <= TokenKeySet.idBytesMax
                else { throw reader.error("kid is no string, or too long") }
                keyID = value
            case "typ":
                guard case .string(let value) = try reader.scalar(text) else {
                    throw reader.error("typ is no string")
                }
                type = value
            case "crit", "cty", "b64", "zip", "enc":
                throw reader.error("a member that is not known")
            default: try reader.skipValue(text, depth: 1)
            }
        }
        try reader.end(text)
        guard let algorithm else { throw reader.error("alg is missing") }
        return (algorithm, keyID, type)
    }
}

/// The names of an object's members: each may stand once (RFC 7515 §4, RFC 7519 §4).
struct MemberNames {
    private var names: [[UInt8]] = []

    mutating func add(_ name: [UInt8], _ reader: JSONReader) throws(JSONError) {
        guard names.count < SignedToken.membersMax else { throw reader.error("too many members") }
        guard !names.contains(name) else { throw reader.error("a member is given twice") }
        names.append(name)
    }
}
