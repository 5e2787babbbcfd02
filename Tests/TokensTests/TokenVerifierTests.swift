import Cryptography
import Encodings
import Expectations
import Signatures
import Testing

@testable import Tokens

/// An issuer in the tests' process, with one key on P-256.
private struct Issuer {
    let key = P256PrivateKey(seed: Array("issuer".utf8).span)

    /// A key as RFC 7517 writes it.
    static func entry(_ key: P256PrivateKey, id: String?, more: String = "") -> String {
        let point = key.publicKey.x963
        func text(_ bytes: ArraySlice<UInt8>) -> String {
            String(decoding: Base64.encodeURL(bytes), as: UTF8.self)
        }
        let kid = id.map { "\"kid\":\"\($0)\"," } ?? ""
        return """
            {"kty":"EC","crv":"P-256",\(kid)\(more)"x":"\(text(point[1..<33]))",\
            "y":"\(text(point[33..<65]))"}
            """
    }

    func keys(_ entries: String...) throws -> TokenKeySet {
        try TokenKeySet(json: Array("{\"keys\":[\(entries.joined(separator: ","))]}".utf8))
    }

    var keys: TokenKeySet { get throws { try keys(Self.entry(key, id: "one")) } }

    static func part(_ text: String) -> String {
        String(decoding: Base64.encodeURL(Array(text.utf8)), as: UTF8.self)
    }

    /// A token with a genuine signature over whatever it says.
    func token(
        _ claims: String,
        header: String = #"{"alg":"ES256","kid":"one"}"#,
        key: P256PrivateKey? = nil
    ) -> [UInt8] {
        let signed = "\(Self.part(header)).\(Self.part(claims))"
        let signature = (key ?? self.key).joseSignature(message: Array(signed.utf8).span)
        return Array(signed.utf8) + [UInt8(ascii: ".")] + Base64.encodeURL(signature)
    }
}

struct TokenVerifierTests {
    private static let issuer = Issuer()
    private static let now: Int64 = 1_800_000_000
    private static let good = #"{"iss":"joe","aud":"shop","exp":1800000060}"#

    private static func terms(_ change: (inout TokenTerms) -> Void = { _ in }) -> TokenTerms {
        var terms = TokenTerms(issuer: "joe", audiences: ["shop", "till"], algorithms: [.es256])
        change(&terms)
        return terms
    }

    /// The fault of a token; `nil` for a good one.
    private static func fault(
        _ token: [UInt8],
        _ terms: TokenTerms = terms(),
        keys: TokenKeySet? = nil,
        now: Int64 = now
    ) throws -> TokenFault? {
        let keys = try keys ?? issuer.keys
        do throws(TokenFault) {
            _ = try TokenVerifier(terms).verified(token.span, keys, now: now)
            return nil
        } catch {
            return error
        }
    }

    @Test func `a token of the issuer is good`() throws {
        try expectEqual(Self.fault(Self.issuer.token(Self.good)), nil)
    }

    // MARK: Headers

    @Test(arguments: [
        (#"{"alg":"none","kid":"one"}"#, TokenFault.algorithm, "none"),
        (#"{"alg":"None","kid":"one"}"#, .algorithm, "another spelling of none"),
        (#"{"alg":"HS256","kid":"one"}"#, .algorithm, "a shared secret"),
        (#"{"alg":"RS256","kid":"one"}"#, .algorithm, "an algorithm that is not named"),
        (#"{"alg":"es256","kid":"one"}"#, .algorithm, "another case"),
        (#"{"alg":"ES256","kid":"two"}"#, .unknownKey, "an unknown key"),
        (#"{"alg":"ES256","kid":""}"#, .unknownKey, "an empty kid"),
        (#"{"alg":"ES256","kid":1}"#, .malformed, "a kid that is no text"),
        (#"{"kid":"one"}"#, .malformed, "no algorithm"),
        (#"{"alg":["ES256"],"kid":"one"}"#, .malformed, "a list of algorithms"),
        (#"{"alg":"ES256","alg":"ES256","kid":"one"}"#, .malformed, "alg twice"),
        (#"{"alg":"ES256","kid":"one","kid":"one"}"#, .malformed, "kid twice"),
        (#"{"alg":"ES256","kid":"one","x":1,"x":2}"#, .malformed, "another member twice"),
        (#"{"alg":"ES256","kid":"one","crit":["exp"],"exp":1}"#, .malformed, "crit"),
        (#"{"alg":"ES256","kid":"one","crit":[]}"#, .malformed, "an empty crit"),
        (#"{"alg":"ES256","kid":"one","b64":false}"#, .malformed, "content that is not encoded"),
        (#"{"alg":"ES256","kid":"one","cty":"JWT"}"#, .malformed, "a token in the token"),
        (#"{"alg":"ES256","kid":"one","typ":7}"#, .malformed, "a typ that is no text"),
        (#"{"alg":"ES256","kid":"one","typ":"a","typ":"a"}"#, .malformed, "typ twice"),
        (#"["ES256"]"#, .malformed, "no object"),
        (#"{"alg":"ES256","kid":"one"} {}"#, .malformed, "more after the object"),
        (#"{"alg":"ES256","kid":"one",}"#, .malformed, "a comma too many"),
    ])
    func `a header that says something else is refused`(
        _ header: String,
        _ fault: TokenFault,
        _ note: String
    ) throws {
        try expectEqual(Self.fault(Self.issuer.token(Self.good, header: header)), fault, "\(note)")
    }

    /// RFC 8725 §3.11: an ID token of the same issuer and audience is no access token.
    @Test(arguments: [
        ("at+jwt", "at+jwt", true), ("at+jwt", "AT+JWT", true),
        ("at+jwt", "application/at+jwt", true), ("application/at+jwt", "at+jwt", true),
        ("AT+jwt", "Application/At+Jwt", true), ("at+jwt", "JWT", false), ("at+jwt", "", false),
        ("at+jwt", "at+jwt ", false), ("at+jwt", "xapplication/at+jwt", false),
        ("at+jwt", "text/at+jwt", false), ("at+jwt", "application/application/at+jwt", false),
        ("text/x", "x", false), ("text/x", "text/x", true), ("JWT", "jwt", true),
    ])
    func `a token of another kind is refused where its kind is named`(
        _ asked: String,
        _ type: String,
        _ isGood: Bool
    ) throws {
        let terms = Self.terms { $0.type = asked }
        let header = "{\"alg\":\"ES256\",\"kid\":\"one\",\"typ\":\"\(type)\"}"
        let token = Self.issuer.token(Self.good, header: header)
        try expectEqual(Self.fault(token, terms), isGood ? nil : .type)
        try expectEqual(Self.fault(token), nil)
        try expectEqual(Self.fault(Self.issuer.token(Self.good), terms), .type)
        // What a stranger writes says nothing of a token.
        let thief = P256PrivateKey(seed: Array("thief".utf8).span)
        let forged = Self.issuer.token(Self.good, header: header, key: thief)
        try expectEqual(Self.fault(forged, terms), .signature)
    }

    @Test func `a key inside the token is not used`() throws {
        let thief = P256PrivateKey(seed: Array("thief".utf8).span)
        let jwk = Issuer.entry(thief, id: "one")
        for member in [
            "\"jwk\":\(jwk)", #""jku":"https://thief.example/keys""#, #""x5c":["MIIB"]"#,
            #""x5u":"https://thief.example/chain""#,
        ] {
            let header = "{\"alg\":\"ES256\",\"kid\":\"one\",\(member)}"
            let forged = Self.issuer.token(Self.good, header: header, key: thief)
            try expectEqual(Self.fault(forged), .signature, "\(member)")
            try expectEqual(Self.fault(Self.issuer.token(Self.good, header: header)), nil)
        }
    }

    @Test func `the public key is no secret of HS256`() throws {
        let signed = "\(Issuer.part(#"{"alg":"HS256","kid":"one"}"#)).\(Issuer.part(Self.good))"
        let code = HMACSHA256.code(
            Array(signed.utf8).span,
            key: Self.issuer.key.publicKey.x963.span
        )
        let token =
            Array(signed.utf8) + [UInt8(ascii: ".")] + Base64.encodeURL(code.array)
        try expectEqual(Self.fault(token), .algorithm)
    }

    @Test func `only one spelling of base64 is read`() throws {
        let token = Self.issuer.token(Self.good)
        for (place, byte) in token.enumerated() where byte == UInt8(ascii: ".") {
            #expect(try Self.fault(token[..<place] + [UInt8(ascii: "=")] + token[place...]) != nil)
            #expect(try Self.fault(token[..<place] + [0x0A] + token[place...]) != nil)
        }
        try expectEqual(Self.fault(token + [UInt8(ascii: "=")]), .malformed)
        try expectEqual(Self.fault([]), .malformed)
        try expectEqual(Self.fault(Array("..".utf8)), .malformed)
        try expectEqual(Self.fault(Array(repeating: UInt8(ascii: "."), count: 8_192)), .malformed)
        let flat = token.filter { $0 != UInt8(ascii: ".") }
        try expectEqual(Self.fault(flat), .malformed)
        try expectEqual(Self.fault(Array(repeating: UInt8(ascii: "a"), count: 8_192)), .malformed)
    }

    @Test func `a header with more members than the limit is refused`() throws {
        let more = (0..<SignedToken.membersMax).map { ",\"m\($0)\":1" }.joined()
        let header = "{\"alg\":\"ES256\",\"kid\":\"one\"\(more)}"
        try expectEqual(Self.fault(Self.issuer.token(Self.good, header: header)), .malformed)
    }

    @Test func `a signature of another key, in DER, or of zeros is refused`() throws {
        let other = P256PrivateKey(seed: Array("other".utf8).span)
        try expectEqual(Self.fault(Self.issuer.token(Self.good, key: other)), .signature)
        let header = #"{"alg":"ES256","kid":"one"}"#
        let signed = Array("\(Issuer.part(header)).\(Issuer.part(Self.good))".utf8)
        let der = Self.issuer.key.signature(message: signed.span)
        let zeros = [UInt8](repeating: 0, count: 64)
        for signature in [der, zeros, Array(zeros.dropLast()), zeros + [0]] {
            let token = signed + [UInt8(ascii: ".")] + Base64.encodeURL(signature)
            try expectEqual(Self.fault(token), .signature)
        }
    }

    // MARK: Claims

    @Test(arguments: [
        (#"{"iss":"jim","aud":"shop","exp":1800000060}"#, TokenFault.issuer),
        (#"{"aud":"shop","exp":1800000060}"#, .issuer),
        (#"{"iss":["joe"],"aud":"shop","exp":1800000060}"#, .issuer),
        (#"{"iss":"joe","exp":1800000060}"#, .audience),
        (#"{"iss":"joe","aud":"Shop","exp":1800000060}"#, .audience),
        (#"{"iss":"joe","aud":[],"exp":1800000060}"#, .audience),
        (#"{"iss":"joe","aud":["shop",1],"exp":1800000060}"#, .audience),
        (#"{"iss":"joe","aud":{"shop":1},"exp":1800000060}"#, .audience),
        (#"{"iss":"joe","aud":"shop"}"#, .claim),
        (#"{"iss":"joe","aud":"shop","exp":"1800000060"}"#, .claim),
        (#"{"iss":"joe","aud":"shop","exp":1799999970}"#, .expired),
        (#"{"iss":"joe","aud":"shop","exp":-1}"#, .expired),
        (#"{"iss":"joe","aud":"shop","exp":1800000060,"nbf":1800000031}"#, .notYet),
        (#"{"iss":"joe","aud":"shop","exp":1800000060,"nbf":"now"}"#, .claim),
        (#"{"iss":"joe","aud":"shop","exp":1800000060,"iat":1800000031}"#, .notYet),
        (#"{"iss":"joe","aud":"shop","exp":1800000060,"iat":null}"#, .claim),
        (#"{"iss":"joe","aud":"shop","exp":1800000060,"exp":1800000061}"#, .claim),
        (#"{"iss":"joe","iss":"joe","aud":"shop","exp":1800000060}"#, .claim),
        (#"{"iss":"joe","aud":"shop","exp":1800000060,"a":1,"a":1}"#, .claim),
        (#"{"iss":"joe","aud":"shop","exp":1e99}"#, .claim),
        (#"{"iss":"joe","aud":"shop","exp":18446744073709551615}"#, .claim),
        (#"[{"iss":"joe","aud":"shop","exp":1800000060}]"#, .claim),
        (#"{"iss":"joe","aud":"shop","exp":1800000060"#, .claim),
    ])
    func `claims that are not those of the terms are refused`(
        _ claims: String,
        _ fault: TokenFault
    ) throws {
        try expectEqual(Self.fault(Self.issuer.token(claims)), fault)
    }

    @Test(arguments: [
        #"{"iss":"joe","aud":["x","till"],"exp":1800000060}"#,
        #"{"iss":"joe","aud":"shop","exp":1799999971}"#,
        #"{"iss":"joe","aud":"shop","exp":1800000060,"nbf":1800000030,"iat":1800000030}"#,
        #"{"iss":"joe","aud":"shop","exp":9223372036854775807}"#,
        #"{"iss":"\u006aoe","aud":"shop","exp":1800000060,"deep":{"a":[{"b":{}}]}}"#,
    ])
    func `claims within the terms are good`(_ claims: String) throws {
        try expectEqual(Self.fault(Self.issuer.token(claims)), nil)
    }

    @Test func `no claim is judged before the signature is`() throws {
        let other = P256PrivateKey(seed: Array("other".utf8).span)
        let old = #"{"iss":"jim","aud":"x","exp":1}"#
        try expectEqual(Self.fault(Self.issuer.token(old, key: other)), .signature)
    }

    @Test func `a claim of the configuration has to have one of its values`() throws {
        let terms = Self.terms { terms in
            terms.required = ["sub"]
            terms.claims = [
                TokenTerms.Claim("app", ["1:2:ios", "7"]), TokenTerms.Claim("scope", ["orders"]),
            ]
        }
        func fault(_ more: String) throws -> TokenFault? {
            let claims = #"{"iss":"joe","aud":"shop","exp":1800000060,\#(more)}"#
            return try Self.fault(Self.issuer.token(claims), terms)
        }
        try expectEqual(fault(#""sub":"a","app":"1:2:ios","scope":"read orders""#), nil)
        try expectEqual(fault(#""sub":"a","app":7,"scope":["orders"]"#), nil)
        try expectEqual(fault(#""sub":null,"app":7,"scope":"orders""#), .claim)
        try expectEqual(fault(#""app":7,"scope":"orders""#), .claim)
        try expectEqual(fault(#""sub":"a","app":"1:2","scope":"orders""#), .claim)
        try expectEqual(fault(#""sub":"a","app":7,"scope":"borders""#), .claim)
        try expectEqual(fault(#""sub":"a","app":7"#), .claim)
    }

    @Test(arguments: ["0.9", "-1e-3", "18446744073709551615"])
    func `a claim that has to be there may be any number`(_ number: String) throws {
        let claims = #"{"iss":"joe","aud":"shop","exp":1800000060,"score":\#(number)}"#
        let token = Self.issuer.token(claims)
        try expectEqual(Self.fault(token, Self.terms { $0.required = ["score"] }), nil)
        let compared = Self.terms { $0.claims = [TokenTerms.Claim("score", [number])] }
        try expectEqual(Self.fault(token, compared), .claim)
    }

    @Test func `a token is no older than max_age`() throws {
        let terms = Self.terms { $0.ageMax = 60 }
        func fault(_ iat: Int64) throws -> TokenFault? {
            let claims = #"{"iss":"joe","aud":"shop","exp":1800000060,"iat":\#(iat)}"#
            return try Self.fault(Self.issuer.token(claims), terms)
        }
        try expectEqual(fault(Self.now - 90), nil)
        try expectEqual(fault(Self.now - 91), .expired)
        try expectEqual(fault(-1), .claim)
        try expectEqual(Self.fault(Self.issuer.token(Self.good), terms), .claim)
    }

    @Test func `a token that is good once has an id and a near end`() throws {
        let verifier = TokenVerifier(Self.terms { $0.use = .once })
        func verified(_ claims: String) throws -> VerifiedToken {
            let token = Self.issuer.token(claims)
            return try verifier.verified(token.span, Self.issuer.keys, now: Self.now)
        }
        let one = try verified(#"{"iss":"joe","aud":"shop","exp":1800000060,"jti":"a"}"#)
        let again = try verified(#"{"jti":"a","iss":"joe","aud":"till","exp":1800000090}"#)
        let other = try verified(#"{"iss":"joe","aud":"shop","exp":1800000060,"jti":"b"}"#)
        #expect(one.use != nil && one.use == again.use && one.use != other.use)
        // A reload may set the greatest leeway.
        expectEqual(one.end, 1_800_000_360)
        #expect(throws: TokenFault.use) { try verified(Self.good) }
        #expect(throws: TokenFault.use) {
            try verified(#"{"iss":"joe","aud":"shop","exp":1800000060,"jti":""}"#)
        }
        #expect(throws: TokenFault.use) {
            try verified(#"{"iss":"joe","aud":"shop","exp":1800604831,"jti":"a"}"#)
        }
        // Seven days by a clock that is ahead by as much as it may.
        let longest = try verified(#"{"iss":"joe","aud":"shop","exp":1800604830,"jti":"a"}"#)
        expectEqual(longest.end, 1_800_605_130)
    }

    // MARK: Sets of keys

    @Test func `a key that a set has for something else verifies nothing`() throws {
        let token = Self.issuer.token(Self.good)
        let key = Self.issuer.key
        let ours = Issuer.entry(key, id: "two")
        for more in [
            #""use":"enc","#, #""alg":"ES384","#, #""alg":"HS256","#, #""key_ops":["encrypt"],"#,
            #""key_ops":[],"#,
        ] {
            let keys = try Self.issuer.keys(Issuer.entry(key, id: "one", more: more), ours)
            try expectEqual(Self.fault(token, keys: keys), .unknownKey, "\(more)")
        }
        let able = Issuer.entry(key, id: "one", more: #""key_ops":["sign","verify"],"#)
        try expectEqual(Self.fault(token, keys: Self.issuer.keys(able)), nil)
        let secret = #"{"kty":"oct","kid":"one","k":"AAAA"}"#
        try expectEqual(Self.fault(token, keys: Self.issuer.keys(secret, ours)), .unknownKey)
    }

    @Test func `a token without a kid means the only key of its algorithm`() throws {
        let token = Self.issuer.token(Self.good, header: #"{"alg":"ES256"}"#)
        let entry = Issuer.entry(Self.issuer.key, id: "one")
        let other = Issuer.entry(P256PrivateKey(seed: [1].span), id: nil)
        try expectEqual(Self.fault(token), nil)
        try expectEqual(Self.fault(token, keys: Self.issuer.keys(entry, other)), .unknownKey)
    }

    @Test(arguments: [
        "", "[]", "{}", #"{"keys":{}}"#, #"{"keys":[]}"#, #"{"keys":[1]}"#,
        #"{"keys":[{"kty":"oct","k":"AAAA"}]}"#,
        #"{"keys":[{"kty":"EC","crv":"P-256","x":"AAAA","y":"AAAA"}]}"#,
        #"{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]}"#,
        #"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AAAA"}]}"#,
        #"{"keys":[],"keys":[]}"#,
        #"{"keys":[{"kty":"OKP","key_ops":"verify"}]}"#,
        #"{"keys":[{"kty":"OKP","key_ops":[1]}]}"#,
        #"{"keys":[{"kty":"OKP","key_ops":[],"key_ops":[]}]}"#,
    ])
    func `a text that is no set of keys is refused`(_ text: String) {
        #expect(throws: TokenKeySet.Fault.self) { try TokenKeySet(json: Array(text.utf8)) }
    }

    @Test func `a set in which two keys have one kid is refused`() {
        let one = Issuer.entry(Self.issuer.key, id: "one")
        let other = Issuer.entry(P256PrivateKey(seed: [1].span), id: "one")
        #expect(throws: TokenKeySet.Fault.self) { try Self.issuer.keys(one, other) }
    }

    @Test func `a set with too many keys is refused`() {
        let entries = (0...TokenKeySet.keysMax).map { number in
            Issuer.entry(P256PrivateKey(seed: [UInt8(number)].span), id: "\(number)")
        }
        let text = "{\"keys\":[\(entries.joined(separator: ","))]}"
        #expect(throws: TokenKeySet.Fault.self) { try TokenKeySet(json: Array(text.utf8)) }
    }
}
