internal import Encodings
package import Signatures

/// What is wrong with a token. The first fault in the order of the cases is reported.
package enum TokenFault: String, Error, CaseIterable, Hashable, Sendable {
    /// It can't be read.
    case malformed
    /// The configuration does not name its algorithm.
    case algorithm
    /// The issuer has no such key, as far as it is known.
    case unknownKey = "unknown-key"
    case signature
    /// It is a token of another kind.
    case type
    case issuer
    case audience
    case expired
    case notYet = "not-yet"
    /// A claim that the configuration asks for is missing, or has another value, or the claims that
    /// the issuer has signed can't be read.
    case claim
    /// It is to be good once, and has no `jti`, or lives for too long to be remembered.
    case use
}

/// A token whose signature and claims are good.
package struct VerifiedToken: Hashable, Sendable {
    /// Names the token among all of its issuer, where it is good once: SHA-256 over `iss`, a zero
    /// and `jti`.
    package let use: SHA256Digest?
    /// From this second of Unix time on it is refused in any case; where it is good once, whatever
    /// `leeway` a reload sets: it must not be forgotten while it may be good again.
    package let end: Int64

    fileprivate init(use: SHA256Digest?, end: Int64) {
        self.use = use
        self.end = end
    }
}

/// Verifies tokens by the terms of one proof.
package struct TokenVerifier: Sendable {
    /// The longest that a token which is good once may live, in seconds: it is remembered until it
    /// ends.
    package static let onceLifetimeMax: Int64 = 7 * 86_400
    /// The longest `jti`.
    private static let idBytesMax = 256

    package let terms: TokenTerms
    /// The claims that are read beside those that every token has.
    private let asked: Set<[UInt8]>
    private let issuer: [UInt8]
    private let audiences: [[UInt8]]
    /// The name of the type, as ``typeName(_:)`` has it; `nil` for any type.
    private let type: [UInt8]?

    package init(_ terms: TokenTerms) {
        self.terms = terms
        asked = Claims.own.union((terms.required + terms.claims.map(\.name)).map { Array($0.utf8) })
        issuer = Array(terms.issuer.utf8)
        audiences = terms.audiences.map { Array($0.utf8) }
        type = terms.type.map { Self.typeName(Array($0.utf8)) }
    }

    /// The name of a type in one spelling: types have no case, and one without a slash leaves out
    /// `application/` (RFC 7515 §4.1.9).
    private static func typeName(_ text: [UInt8]) -> [UInt8] {
        let upper = UInt8(ascii: "A")...UInt8(ascii: "Z")
        let name = text.map { upper.contains($0) ? $0 | 0x20 : $0 }
        return name.contains(UInt8(ascii: "/")) ? name : Array("application/".utf8) + name
    }

    /// Verifies a token. Checked in the order of ``TokenFault``: no claim is read before the
    /// signature is known to be the issuer's.
    ///
    /// - text: the compact form, at most 8 KiB.
    /// - now: second of Unix time.
    package func verified(
        _ text: Span<UInt8>,
        _ keys: TokenKeySet,
        now: Int64
    ) throws(TokenFault) -> VerifiedToken {
        guard let token = SignedToken(text) else { throw .malformed }
        guard let algorithm = TokenAlgorithm(rawValue: token.algorithm),
            terms.algorithms.contains(algorithm)
        else { throw .algorithm }
        let isValid = keys.isValid(
            token.signature,
            over: text.extracting(token.signed),
            keyID: token.keyID,
            algorithm: algorithm
        )
        guard let isValid else { throw .unknownKey }
        guard isValid else { throw .signature }
        // RFC 8725 §3.11: a token that its issuer has made for another purpose is none.
        guard type == nil || token.type.map(Self.typeName) == type else { throw .type }
        let claims: Claims
        do throws(JSONError) {
            claims = try Claims(token.claims.span, asked)
        } catch {
            throw .claim
        }
        return try judged(claims, now)
    }

    private func judged(_ claims: Claims, _ now: Int64) throws(TokenFault) -> VerifiedToken {
        guard claims["iss"] == .text(issuer) else { throw .issuer }
        guard claims["aud"]?.texts.contains(where: audiences.contains) == true else {
            throw .audience
        }
        guard case .number(let expiry) = claims["exp"] else { throw .claim }
        let (end, isEndless) = expiry.addingReportingOverflow(terms.leeway)
        guard isEndless || now < end else { throw .expired }
        if let early = claims["nbf"] {
            guard case .number(let start) = early else { throw .claim }
            guard start <= now &+ terms.leeway else { throw .notYet }
        }
        try judgeAge(claims["iat"], now)
        for name in terms.required where claims[name]?.isThere != true { throw .claim }
        for claim in terms.claims {
            let has = claims[claim.name]?.words(of: claim.name) ?? []
            guard claim.values.contains(where: has.contains) else { throw .claim }
        }
        switch terms.use {
        case .unlimited: return VerifiedToken(use: nil, end: isEndless ? .max : end)
        case .once:
            guard case .text(let id) = claims["jti"], (1...Self.idBytesMax).contains(id.count),
                !isEndless, expiry - now <= Self.onceLifetimeMax + terms.leeway
            else { throw .use }
            return VerifiedToken(
                use: SHA256.digest(of: issuer + [0] + id),
                end: expiry &+ TokenTerms.leewayMax
            )
        }
    }

    private func judgeAge(_ claim: Claims.Value?, _ now: Int64) throws(TokenFault) {
        guard let claim else {
            guard terms.ageMax == nil else { throw .claim }
            return
        }
        guard case .number(let issued) = claim, issued >= 0 else { throw .claim }
        guard issued <= now &+ terms.leeway else { throw .notYet }
        if let ageMax = terms.ageMax, now - issued > ageMax &+ terms.leeway { throw .expired }
    }
}

/// What a token must say to be good.
package struct TokenTerms: Hashable, Sendable {
    /// A claim that must have one of some values.
    package struct Claim: Hashable, Sendable {
        package let name: String
        /// Texts; a claim that is a list has to hold one of them.
        package let values: [String]

        package init(_ name: String, _ values: [String]) {
            self.name = name
            self.values = values
        }
    }

    /// How often a token is good.
    package enum Use: Hashable, Sendable {
        /// As often as it is shown until it expires.
        case unlimited
        /// Once: its `jti` is spent.
        case once
    }

    /// `issuer`: the `iss` claim.
    package var issuer: String
    /// `audience`: one of them has to be in the `aud` claim.
    package var audiences: [String]
    /// `typ`: the type that the token's header has to state; `nil`, the default, for any.
    package var type: String?
    /// `algorithms`: those that keys of the issuer may be used with.
    package var algorithms: Set<TokenAlgorithm>
    /// `leeway`: how far the issuer's clock may be from this one, in seconds. Default 30s, 0s…5m.
    package var leeway: Int64 = 30
    /// The greatest ``leeway``, in seconds.
    package static let leewayMax: Int64 = 300
    /// `max_age`: the greatest age by the `iat` claim, in seconds; `nil`, the default, for any.
    package var ageMax: Int64?
    /// `required`: claims that have to be there. `exp` always has to.
    package var required: [String] = []
    /// `claims`: claims that have to have one of some values.
    package var claims: [Claim] = []
    /// `once: jti`
    package var use = Use.unlimited

    package init(issuer: String, audiences: [String], algorithms: Set<TokenAlgorithm>) {
        self.issuer = issuer
        self.audiences = audiences
        self.algorithms = algorithms
    }
}

/// A signature algorithm of JSON Web Tokens that a proof may name (RFC 7518 §3.1, RFC 8037 §3.1).
///
/// There is no `none`, and none with a shared secret: who can check such a token can make one.
package enum TokenAlgorithm: String, CaseIterable, Sendable {
    /// ECDSA on P-256 with SHA-256.
    case es256 = "ES256"
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    case rs256 = "RS256"
    /// Ed25519.
    case edDSA = "EdDSA"
}

/// The claims of a token that are asked for.
private struct Claims {
    enum Value: Equatable {
        case text([UInt8])
        /// A whole number.
        case number(Int64)
        case flag(Bool)
        case list([[UInt8]])
        /// An object, a list of other things, or a number that is not whole or too large.
        case other
        case null

        var isThere: Bool { self != .null }

        var texts: [[UInt8]] {
            switch self {
            case .text(let text): [text]
            case .list(let texts): texts
            case .number, .flag, .other, .null: []
            }
        }

        /// The values that a claim of the configuration is compared with. `scope` is a list that is
        /// written as one text (RFC 8693 §4.2).
        func words(of name: String) -> [String] {
            switch self {
            case .text(let text) where name == "scope":
                String(decoding: text, as: UTF8.self).split(separator: " ").map(String.init)
            case .text, .list: texts.map { String(decoding: $0, as: UTF8.self) }
            case .number(let number): [String(number)]
            case .flag(let flag): [flag ? "true" : "false"]
            case .other, .null: []
            }
        }
    }

    /// The most audiences, and elements of another list, in a token.
    private static let elementsMax = 64

    /// Those that every token has, or may have. Their times are whole seconds.
    static let own: Set<[UInt8]> = Set(
        ["iss", "aud", "exp", "nbf", "iat", "jti"].map { Array($0.utf8) }
    )

    private var values: [[UInt8]: Value] = [:]

    init(_ text: Span<UInt8>, _ asked: Set<[UInt8]>) throws(JSONError) {
        var reader = JSONReader()
        var names = MemberNames()
        try reader.beginObject(text)
        while let name = try reader.nextName(text) {
            try names.add(name, reader)
            guard asked.contains(name) else {
                try reader.skipValue(text, depth: 1)
                continue
            }
            values[name] = try Self.value(&reader, text, isOwn: Self.own.contains(name))
        }
        try reader.end(text)
    }

    subscript(name: String) -> Value? { values[Array(name.utf8)] }

    private static func value(
        _ reader: inout JSONReader,
        _ text: Span<UInt8>,
        isOwn: Bool
    ) throws(JSONError) -> Value {
        switch reader.peek(text) {
        case UInt8(ascii: "{"):
            try reader.skipValue(text, depth: 1)
            return .other
        case UInt8(ascii: "["): return try list(&reader, text)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            var whole = reader
            if let scalar = try? whole.scalar(text), case .number(let number) = scalar {
                reader = whole
                return .number(number)
            }
            guard !isOwn else { throw reader.error("use a whole number") }
            try reader.skipValue(text, depth: 1)
            return .other
        default:
            switch try reader.scalar(text) {
            case .string(let text): return .text(text)
            case .number(let number): return .number(number)
            case .boolean(let flag): return .flag(flag)
            case .null: return .null
            }
        }
    }

    private static func list(
        _ reader: inout JSONReader,
        _ text: Span<UInt8>
    ) throws(JSONError) -> Value {
        var texts: [[UInt8]] = []
        var isOfTexts = true
        var count = 0
        try reader.beginArray(text)
        while try reader.nextElement(text) {
            count += 1
            guard count <= elementsMax else { throw reader.error("too many elements") }
            guard reader.peek(text) == UInt8(ascii: "\"") else {
                isOfTexts = false
                try reader.skipValue(text, depth: 2)
                continue
            }
            texts.append(try reader.string(text))
        }
        return isOfTexts ? .list(texts) : .other
    }
}
