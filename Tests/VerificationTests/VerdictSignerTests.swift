import AppAttest
import Cryptography
import Encodings
import Expectations
import Foundation
import Rules
import Signatures
import Testing

@testable import Verification

@Suite struct VerdictSignerTests {
    private static let now: Int64 = 1_795_000_000

    private static func claims() -> VerdictSigner.Claims {
        var claims = VerdictSigner.Claims(audience: "orders")
        claims.ttl = 30
        return claims
    }

    private static func request() -> VerdictSigner.Request {
        var request = VerdictSigner.Request(
            id: "4bf9",
            host: Array("api.example.com".utf8),
            method: Array("POST".utf8),
            target: Array("/v1/orders?dry=1\"".utf8)
        )
        request.rule = "place-order"
        request.content = SHA256.digest(of: Array("order".utf8))
        return request
    }

    /// Header and claims, as objects, the signed bytes and the signature.
    private static func parts(
        _ token: [UInt8]
    ) throws -> (header: [String: Any], claims: [String: Any], signed: [UInt8], code: [UInt8]) {
        let pieces = token.split(separator: UInt8(ascii: ".")).map(Array.init)
        try #require(pieces.count == 3)
        func object(_ piece: [UInt8]) throws -> [String: Any] {
            let text = String(decoding: piece, as: UTF8.self)
            let bytes = try #require(Base64.decode(text))
            let json = try JSONSerialization.jsonObject(with: Data(bytes))
            return try #require(json as? [String: Any])
        }
        let code = try #require(Base64.decode(String(decoding: pieces[2], as: UTF8.self)))
        return (
            try object(pieces[0]), try object(pieces[1]),
            pieces[0] + [UInt8(ascii: ".")] + pieces[1], code
        )
    }

    @Test func `a token is of one request, and all who have the public key can check it`() throws {
        let key = P256PrivateKey()
        let signer = VerdictSigner(
            .p256(key),
            Self.claims(),
            origins: [.init("shop")],
            build: "1.2"
        )
        var verdict = Verdict(.pass, keyID: KeyID(of: key.publicKey), proof: .assertion)
        verdict.appID = "TEAM123456.com.example.shop"
        let token = signer.token(verdict, Self.request(), at: Self.now)
        let (header, claims, signed, code) = try Self.parts(token)
        func isValid(_ signed: [UInt8]) -> Bool {
            key.publicKey.isValidJOSESignature(code.span, message: signed.span)
        }
        #expect(isValid(signed))
        #expect(!isValid(signed + [0x41]))

        #expect(header["alg"] as? String == "ES256")
        let set = try #require(signer.keySet)
        let document = try JSONSerialization.jsonObject(with: Data(set)) as? [String: Any]
        let web = try #require((document?["keys"] as? [[String: Any]])?.first)
        #expect(web["kid"] as? String == header["kid"] as? String)
        let x = try #require((web["x"] as? String).flatMap { Base64.decode($0) })
        let y = try #require((web["y"] as? String).flatMap { Base64.decode($0) })
        let point: [UInt8] = [4] + x + y
        expectEqual(point, key.publicKey.x963)

        #expect(claims["aud"] as? String == "orders")
        #expect(claims["iat"] as? Int64 == Self.now)
        #expect(claims["exp"] as? Int64 == Self.now + 30)
        #expect(claims["eat_profile"] as? String == "tag:ietf.org,2026:rats/ear#04")
        let status = (claims["submods"] as? [String: [String: String]])?["request"]?["ear_status"]
        expectEqual(status, "affirming")
        let own = try #require(claims["portcullis"] as? [String: String])
        expectEqual(own["verdict"], "pass")
        expectEqual(own["rule"], "place-order")
        expectEqual(own["host"], "api.example.com")
        expectEqual(own["origin"], "shop")
        expectEqual(own["method"], "POST")
        expectEqual(own["target"], "/v1/orders?dry=1\"")
        expectEqual(own["content"], "sha-256=:\(Base64.text(Self.request().content?.array ?? [])):")
        expectEqual(own["app_id"], verdict.appID)
        expectEqual(own["proof"], "assertion")
    }

    @Test func `a secret signs with HS256, and nothing of it is shown`() throws {
        let secret = [UInt8](repeating: 7, count: 32)
        let signer = VerdictSigner(
            .secret(secret),
            Self.claims(),
            origins: [.init("shop")],
            build: "1.2"
        )
        let token = signer.token(Verdict(.pass), Self.request(), at: Self.now)
        let (header, _, signed, code) = try Self.parts(token)
        let isValid = HMACSHA256.Key(secret.span).isValid(code.span, for: signed.span)
        #expect(isValid)
        #expect(header as? [String: String] == ["alg": "HS256", "typ": "JWT"])
        expectEqual(signer.keySet, nil)
    }

    /// The claims that never change are encoded apart, in groups of three bytes.
    @Test(arguments: ["shop", "shops", "shopss"])
    func `claims are one object, however long those are that never change`(
        _ audience: String
    ) throws {
        let signer = VerdictSigner(
            .secret([UInt8](repeating: 7, count: 32)),
            VerdictSigner.Claims(audience: audience),
            origins: [.init("shop")],
            build: "1.2"
        )
        let token = signer.token(Verdict(.pass), Self.request(), at: Self.now)
        let (_, claims, _, _) = try Self.parts(token)
        expectEqual(claims["aud"] as? String, audience)
        expectEqual(claims["iat"] as? Int64, Self.now)
        let names = [
            "iss", "aud", "eat_profile", "ear_verifier_id", "submods", "iat", "exp", "portcullis",
        ]
        expectEqual(claims.keys.sorted(), names.sorted())
    }

    /// Otherwise one origin could show its token to another.
    @Test func `a token names its origin, and has that origin's audience`() throws {
        let signer = VerdictSigner(
            .secret([UInt8](repeating: 7, count: 32)),
            Self.claims(),
            origins: [.init("shop"), .init("till", audience: "cash")],
            build: "1.2"
        )
        for (place, audience, name) in [(0, "orders", "shop"), (1, "cash", "till")] {
            var request = Self.request()
            request.origin = place
            for outcome in [Verdict.Outcome.pass, .refuse(.keyUnknown), .failure(.store)] {
                let token = signer.token(Verdict(outcome), request, at: Self.now)
                let (_, claims, _, _) = try Self.parts(token)
                expectEqual(claims["aud"] as? String, audience)
                let own = try #require(claims["portcullis"] as? [String: String])
                expectEqual(own["origin"], name)
                expectEqual(own["verdict"], outcome.word)
            }
        }
    }

    /// What an origin sees of a request that a rule observes.
    @Test func `a refusal is contraindicated, names no key, and a failed party leaves no claim`()
        throws
    {
        let signer = VerdictSigner(
            .secret([UInt8](repeating: 7, count: 32)),
            Self.claims(),
            origins: [.init("shop")],
            build: "1.2"
        )
        let key = KeyID(of: P256PrivateKey().publicKey)
        let outcomes: [(Verdict.Outcome, String)] = [
            (.refuse(.signatureMismatch), "contraindicated"), (.failure(.store), "none"),
        ]
        for (outcome, status) in outcomes {
            var request = Self.request()
            request.content = nil
            let verdict = Verdict(outcome, keyID: key, proof: .assertion)
            let (_, claims, _, _) = try Self.parts(signer.token(verdict, request, at: Self.now))
            let submods = claims["submods"] as? [String: [String: String]]
            expectEqual(submods?["request"]?["ear_status"], status)
            let own = try #require(claims["portcullis"] as? [String: String])
            expectEqual(own["reason"], outcome.reason)
            expectEqual(own["key_id"], nil)
            expectEqual(own["content"], nil)
        }
    }
}
