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
