import AppleStandIn
import Cryptography
import Encodings
import Foundation

/// An issuer of tokens, whose keys a stand-in serves.
struct TokenIssuer {
    /// A key and its name.
    struct Key {
        let id: String
        let key: P256PrivateKey

        init(_ id: String) {
            self.id = id
            key = P256PrivateKey(seed: Array(id.utf8).span)
        }

        /// As RFC 7517 writes it.
        fileprivate var entry: String {
            let point = key.publicKey.x963
            func text(_ bytes: ArraySlice<UInt8>) -> String {
                String(decoding: Base64.encodeURL(bytes), as: UTF8.self)
            }
            return """
                {"kty":"EC","crv":"P-256","use":"sig","alg":"ES256","kid":"\(id)",\
                "x":"\(text(point[1..<33]))","y":"\(text(point[33..<65]))"}
                """
        }
    }

    static let name = "https://issuer.example.com/7"

    /// The set of these keys (RFC 7517 §5).
    static func set(_ keys: Key...) -> String {
        "{\"keys\":[\(keys.map(\.entry).joined(separator: ","))]}"
    }

    /// A token that is good for a minute, unless said otherwise.
    ///
    /// - type: `typ`; `nil` for none.
    static func token(
        by key: Key = Key("one"),
        audience: String = "shop",
        seconds: Int64 = 60,
        type: String? = nil,
        more: String = ""
    ) -> String {
        func part(_ text: String) -> String {
            String(decoding: Base64.encodeURL(Array(text.utf8)), as: UTF8.self)
        }
        let now = Int64(Date().timeIntervalSince1970)
        let claims = """
            {"iss":"\(name)","aud":["\(audience)"],"iat":\(now - 1),"exp":\(now + seconds)\(more)}
            """
        let typ = type.map { ",\"typ\":\"\($0)\"" } ?? ""
        let header = "{\"alg\":\"ES256\",\"kid\":\"\(key.id)\"\(typ)}"
        let signed = "\(part(header)).\(part(claims))"
        let signature = key.key.joseSignature(message: Array(signed.utf8).span)
        return signed + "." + String(decoding: Base64.encodeURL(signature), as: UTF8.self)
    }

    /// What clients get that send at once, each on a thread of its own.
    static func atOnce(
        _ count: Int,
        _ send: @escaping @Sendable (Int) throws -> Answer
    ) throws -> [Answer] {
        let threads = (0..<count).map { number in Thread.Answer { try send(number) } }
        return try threads.map { try $0.value() }
    }

    /// The section `proofs` with these, whose keys the stand-in serves.
    static func proofs(_ server: StandInServer, _ lines: String...) -> String {
        let url = "https://localhost:\(server.statusListPort)/attestation/status"
        let common = """
            kind: jwt, issuer: "\(name)", audience: shop, algorithms: [ES256], keys: { url: \
            "\(url)", roots: \(server.rootFile), min_interval: 1s }
            """
        return "proofs:\n" + lines.map { "  " + $0.replacing("KEYS", with: common) + "\n" }.joined()
    }
}
