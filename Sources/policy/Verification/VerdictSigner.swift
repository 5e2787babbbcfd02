internal import AppAttest
package import Cryptography
internal import Encodings
internal import KeyStore
internal import RequestBinding
package import Rules
package import Signatures

/// Signs verdicts for origins that others than the gateway can reach: a compact JWT (RFC 7519, RFC
/// 7515 §7.1) that is bound to one request.
///
/// The claims are those of an attestation result (draft-ietf-rats-ear-04 §3), with an extension of
/// the gateway's own:
///
/// | claim | value |
/// |---|---|
/// | `iss`, `aud` | ``Claims/issuer``, and the audience of the origin |
/// | `iat`, `exp` | seconds since 1970: now, and ``Claims/ttl`` later |
/// | `eat_profile`, `ear_verifier_id` | the draft's profile; the gateway and its version |
/// | `submods.request.ear_status` | pass: `affirming`; refusal: `contraindicated`; else `none` |
/// | `portcullis` | what origins get in fields, the origin, and what the request asks for |
///
/// `content` is the digest as in Content-Digest (RFC 9530), of content that was verified.
package final class VerdictSigner: Sendable {
    /// The key, and who can verify with it.
    package enum Key: Sendable {
        /// ES256: all who have the public key. A verified request takes 40 % more CPU.
        case p256(P256PrivateKey)
        /// HS256: those who have the same secret, and they could sign too. It takes 3 % more.
        case secret([UInt8])
    }

    /// What is said in every token.
    package struct Claims: Hashable, Sendable {
        /// `issuer`: default portcullis.
        package var issuer = "portcullis"
        /// `audience`: of origins that have none of their own. An origin must look for its name.
        package var audience: String
        /// `ttl`: seconds for which a token is good. Default 60s, 1s…1h.
        package var ttl: Int64 = 60

        package init(audience: String) { self.audience = audience }
    }

    /// An origin that gets tokens.
    package struct Origin: Hashable, Sendable {
        /// Its name in the configuration.
        let name: String
        /// `origins.*.audience`; `nil` for ``Claims/audience``.
        let audience: String?

        package init(_ name: String, audience: String? = nil) {
            (self.name, self.audience) = (name, audience)
        }
    }

    /// The shortest secret, in bytes: as long as the code (RFC 7518 §3.2).
    package static let secretBytesMin = 32

    private enum Signing {
        case p256(P256PrivateKey)
        case secret(HMACSHA256.Key)
    }

    private let signing: Signing
    private let ttl: Int64
    /// In the order of the configuration's origins.
    private let beginnings: [Beginnings]
    /// A JSON Web Key Set (RFC 7517) with the public key; `nil` where there is none to show.
    package let keySet: [UInt8]?

    /// - origins: those that requests are about, in the order of the configuration.
    /// - build: the gateway's version.
    package init(_ key: Key, _ claims: Claims, origins: [Origin], build: String) {
        ttl = claims.ttl
        var header = JSONWriter()
        switch key {
        case .p256(let key):
            signing = .p256(key)
            let web = WebKey(key.publicKey)
            header.object { out in
                out.member("alg", "ES256")
                out.member("typ", "JWT")
                out.member("kid", web.id)
            }
            keySet = web.set
        case .secret(let bytes):
            signing = .secret(HMACSHA256.Key(bytes.span))
            // No key id: a hash of the secret would let others try secrets.
            header.object { out in
                out.member("alg", "HS256")
                out.member("typ", "JWT")
            }
            keySet = nil
        }
        beginnings = origins.map {
            Beginnings(header: header.bytes, claims, of: $0, build: build)
        }
    }

    /// The encoded beginning of a token, for each status: the header, a point, and the claims that
    /// no request changes. Writing them for each request would add a fifth to an HS256 token.
    private struct Beginnings {
        let affirming: [UInt8]
        let contraindicated: [UInt8]
        let none: [UInt8]

        init(header: [UInt8], _ claims: Claims, of origin: Origin, build: String) {
            func beginning(_ status: String) -> [UInt8] {
                var json = JSONWriter()
                // The claims of a request follow in the same objects.
                json.beginObject()
                json.member("iss", claims.issuer)
                json.member("aud", origin.audience ?? claims.audience)
                json.member("eat_profile", "tag:ietf.org,2026:rats/ear#04")
                json.object("ear_verifier_id") { out in
                    out.member("developer", "portcullis")
                    out.member("build", build)
                }
                json.object("submods") { out in
                    out.object("request") { $0.member("ear_status", status) }
                }
                json.name("portcullis")
                json.beginObject()
                json.member("origin", origin.name)
                var text = json.bytes + [UInt8(ascii: ",")]
                // Base64 takes three bytes at a time; spaces (RFC 8259 §2) fill the last three.
                while text.count % 3 != 0 { text.append(UInt8(ascii: " ")) }
                return Base64.encodeURL(header) + [UInt8(ascii: ".")] + Base64.encodeURL(text)
            }
            affirming = beginning("affirming")
            contraindicated = beginning("contraindicated")
            none = beginning("none")
        }

        subscript(outcome: Verdict.Outcome) -> [UInt8] {
            switch outcome {
            case .pass: affirming
            case .refuse: contraindicated
            case .failure: none
            }
        }
    }

    /// What a token is about.
    package struct Request {
        let id: String
        /// The authority that the client asks for, as it is written; empty where there is none.
        let host: [UInt8]
        /// The place of its origin in the configuration.
        package var origin = 0
        /// The id of its rule.
        package var rule = ""
        let method: [UInt8]
        /// As the origin gets it: in origin-form, or `*`.
        let target: [UInt8]
        /// The digest of the content; `nil` where it was not verified.
        package var content: SHA256Digest?

        package init(id: String, host: [UInt8], method: [UInt8], target: [UInt8]) {
            self.id = id
            self.host = host
            self.method = method
            self.target = target
        }
    }

    /// The token of a request.
    ///
    /// - now: seconds since 1970.
    package func token(_ verdict: Verdict, _ request: Request, at now: Int64) -> [UInt8] {
        // A target of 400 bytes fits; a longer one takes more memory.
        var json = JSONWriter(capacity: 1024)
        // The beginning has the braces of both objects.
        json.beginObject()
        json.beginObject()
        Self.write(verdict, request, to: &json)
        json.endObject()
        json.name("iat")
        json.value(now)
        json.name("exp")
        json.value(now &+ ttl)
        json.endObject()
        let beginning = beginnings[request.origin][verdict.outcome]
        var token: [UInt8] = []
        // Base64 of the claims, a point and 86 digits of signature follow.
        token.reserveCapacity(beginning.count + json.bytes.count * 4 / 3 + 128)
        token += beginning
        Base64.appendURL(json.bytes.span.extracting(droppingFirst: 2), to: &token)
        let signature: [UInt8] =
            switch signing {
            case .p256(let key): key.joseSignature(message: token.span)
            case .secret(let key): key.code(token.span).array
            }
        token.append(UInt8(ascii: "."))
        Base64.appendURL(signature.span, to: &token)
        return token
    }

    private static func write(_ verdict: Verdict, _ request: Request, to out: inout JSONWriter) {
        func member(_ name: StaticString, _ text: String) {
            out.name(name)
            out.value(text)
        }
        member("request", request.id)
        member("rule", request.rule)
        member("verdict", verdict.outcome.word)
        let reason = verdict.outcome.reason
        if !reason.isEmpty { member("reason", reason) }
        out.name("host")
        out.value(latin1: request.host.span)
        out.name("method")
        out.value(latin1: request.method.span)
        out.name("target")
        out.value(latin1: request.target.span)
        if let content = request.content {
            member("content", "sha-256=:\(Base64.text(content.array)):")
        }
        if verdict.signer != nil, let context = verdict.context {
            member("context", Base64.text(context))
        }
        if let risk = verdict.risk { member("risk", risk.text) }
        if let note = verdict.integrity { member("integrity", note.text) }
        guard verdict.outcome == .pass else { return }
        if let taken = verdict.takenProofs { member("proof", taken) }
        guard let keyID = verdict.keyID else { return }
        member("key_id", keyID.base64)
        member("app_id", verdict.appID)
        if let environment = verdict.environment { member("environment", environment.rawValue) }
    }

    /// A public key as RFC 7517 writes it.
    private struct WebKey {
        private let x: String
        private let y: String

        init(_ key: P256PublicKey) {
            let point = key.x963
            x = Base64.urlText(point[1..<33])
            y = Base64.urlText(point[33..<65])
        }

        /// The thumbprint: SHA-256 of the key's members in the order of their names (RFC 7638 §3).
        var id: String {
            let members = #"{"crv":"P-256","kty":"EC","x":"\#(x)","y":"\#(y)"}"#
            return Base64.urlText(SHA256.digest(of: Array(members.utf8)).array)
        }

        var set: [UInt8] {
            var json = JSONWriter()
            json.object { out in
                out.array("keys") { out in
                    out.object { out in
                        out.member("kty", "EC")
                        out.member("crv", "P-256")
                        out.member("x", x)
                        out.member("y", y)
                        out.member("kid", id)
                        out.member("use", "sig")
                        out.member("alg", "ES256")
                    }
                }
            }
            return json.line
        }
    }
}

extension Rule {
    package var signsContent: Bool { signing.coversBody }
}
