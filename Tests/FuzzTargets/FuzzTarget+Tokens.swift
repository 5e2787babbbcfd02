import Cryptography
import Encodings
import Foundation
import Parties
import Rules
import Tokens
import Verification

extension FuzzTarget {
    private static let now: Int64 = 1_800_000_000
    private static let header = #"{"alg":"ES256","kid":"one"}"#
    private static let claims = #"{"iss":"joe","aud":"shop","exp":1800000060}"#
    private static let key = P256PrivateKey(seed: Array("issuer".utf8).span)
    private static let genuine = token(Array(header.utf8), Array(claims.utf8))
    private static let verifier = TokenVerifier(
        TokenTerms(issuer: "joe", audiences: ["shop"], algorithms: [.es256])
    )

    private static let keys: TokenKeySet? = {
        let point = key.publicKey.x963
        let x = String(decoding: Base64.encodeURL(point[1..<33]), as: UTF8.self)
        let y = String(decoding: Base64.encodeURL(point[33..<65]), as: UTF8.self)
        let set = #"{"keys":[{"kty":"EC","crv":"P-256","kid":"one","x":"\#(x)","y":"\#(y)"}]}"#
        return try? TokenKeySet(json: Array(set.utf8))
    }()

    /// Tokens, their issuers' keys, and what services say of them. The first byte says what the
    /// others are.
    static func tokens(_ bytes: [UInt8]) {
        guard let first = bytes.first, let keys else { return }
        let rest = Array(bytes.dropFirst())
        switch first {
        case UInt8(ascii: "t"): strangersToken(rest, keys)
        case UInt8(ascii: "h"):
            guard isVerified(token(rest, Array(claims.utf8)), keys), let found = object(rest)
            else { return }
            demand(found["alg"] as? String == "ES256", "a header names its algorithm")
        case UInt8(ascii: "c"):
            if isVerified(token(Array(header.utf8), rest), keys) { checkClaims(rest) }
        case UInt8(ascii: "k"):
            if let set = try? TokenKeySet(json: rest) {
                demand((1...TokenKeySet.keysMax).contains(set.count), "a set has a few keys")
            }
        case UInt8(ascii: "g"): googlesWord(rest)
        case UInt8(ascii: "n"): cookies(rest)
        case UInt8(ascii: "e"):
            let opened = try? classicKeys?.payload(of: rest.span)
            demand(opened == nil, "nobody makes a classic token up")
        default:
            let all = SiteverifySettings.Service.allCases
            serviceAnswer(rest, of: all[Int(first) % all.count])
        }
    }

    /// A token with a genuine signature over whatever it says.
    private static func token(_ header: [UInt8], _ claims: [UInt8]) -> [UInt8] {
        let full = [UInt8(ascii: ".")]
        let signed = Base64.encodeURL(header) + full + Base64.encodeURL(claims)
        return signed + full + Base64.encodeURL(key.joseSignature(message: signed.span))
    }

    private static func isVerified(_ text: [UInt8], _ keys: TokenKeySet) -> Bool {
        (try? verifier.verified(text.span, keys, now: now)) != nil
    }

    /// Nobody makes a token up, and none is good with any bit changed.
    private static func strangersToken(_ bytes: [UInt8], _ keys: TokenKeySet) {
        demand(isVerified(genuine, keys), "the issuer's token is good")
        demand(bytes == genuine || !isVerified(bytes, keys), "nobody makes a token up")
        var changed = genuine
        for (index, byte) in bytes.prefix(genuine.count).enumerated() { changed[index] ^= byte }
        demand(changed == genuine || !isVerified(changed, keys), "a changed token is no good")
    }

    private static func object(_ text: [UInt8]) -> [String: Any]? {
        guard isForFoundation(text) else { return nil }
        let parsed = try? JSONSerialization.jsonObject(with: Data(text)) as? [String: Any]
        demand(parsed != nil, "what is believed is a JSON object")
        return parsed
    }

    /// What was believed is what another reader finds in the claims.
    private static func checkClaims(_ text: [UInt8]) {
        guard let found = object(text) else { return }
        demand(found["iss"] as? String == "joe", "the issuer is the one that is trusted")
        let audiences = found["aud"] as? [Any] ?? [found["aud"] as Any]
        demand(audiences.contains { $0 as? String == "shop" }, "the audience is this gateway's")
        let end = (found["exp"] as? NSNumber)?.int64Value ?? 0
        demand(end > now - verifier.terms.leeway, "it has not expired")
    }

    private static let classicKeys: ClassicTokenKeys? = {
        let prefix = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE"
        let point = Array(key.publicKey.x963.dropFirst())
        return ClassicTokenKeys(
            decryption: [UInt8](repeating: 7, count: 32),
            verification: (Base64.decode(prefix) ?? []) + point
        )
    }()

    /// What was believed of a payload of Play Integrity is what another reader finds in it.
    private static func googlesWord(_ text: [UInt8]) {
        _ = try? IntegrityPayload(answer: text)
        guard let payload = try? IntegrityPayload(payload: text), let found = object(text) else {
            return
        }
        let details = found["requestDetails"] as? [String: Any] ?? [:]
        demand(payload.package == details["requestPackageName"] as? String ?? "", "the package")
        let hash = details["requestHash"] ?? details["nonce"]
        demand(payload.hash == hash as? String, "the hash")
        let app = found["appIntegrity"] as? [String: Any] ?? [:]
        demand(payload.seenPackage == app["packageName"] as? String, "the app that was seen")
        demand(payload.signers == app["certificateSha256Digest"] as? [String] ?? [], "signers")
        let device = found["deviceIntegrity"] as? [String: Any] ?? [:]
        let labels = device["deviceRecognitionVerdict"] as? [String] ?? []
        let isStrong = labels.contains("MEETS_STRONG_INTEGRITY")
        demand(payload.verdict.device.contains(.strong) == isStrong, "the labels")
        let account = found["accountDetails"] as? [String: Any] ?? [:]
        let isLicensed = account["appLicensingVerdict"] as? String == "LICENSED"
        demand(payload.verdict.isLicensed == isLicensed, "the license")
    }

    /// Where a cookie is taken, simple readers find the same one, and no other of its name.
    private static func cookies(_ field: [UInt8]) {
        let name = Array("session".utf8)
        let finding = CookieName(name).finding(in: field.span, 0..<field.count)
        // As Go and Express read it, and with the comma that some proxies put between two fields.
        let pairs = field.split { [UInt8(ascii: ";"), UInt8(ascii: ",")].contains($0) }
        let named = pairs.filter { pair in
            let key = pair.prefix { $0 != UInt8(ascii: "=") }
            return String(decoding: key, as: UTF8.self).lowercased()
                .trimmingCharacters(in: .whitespaces) == "session"
        }
        switch finding {
        case .nothing: demand(named.isEmpty, "a cookie of the name is found")
        case .value(let range):
            demand(named.count == 1, "one cookie has the name")
            demand(range.upperBound <= field.count, "the value is in the field")
            let start = range.lowerBound - name.count - 1
            demand(start >= 0 && field[start...].starts(with: name), "the name stands before it")
            demand(!field[range].contains(UInt8(ascii: ";")), "a value ends at a semicolon")
        case .unclear: break
        }
    }

    private static func serviceAnswer(_ text: [UInt8], of service: SiteverifySettings.Service) {
        guard let answer = try? SiteverifyAnswer(text, of: service) else { return }
        demand(answer.codes.count <= SiteverifyAnswer.codesMax, "an answer has a few codes")
        guard answer.isValid, let found = object(text) else { return }
        let properties = found["tokenProperties"] as? [String: Any]
        let value = service == .enterprise ? properties?["valid"] : found["success"]
        demand(value as? Bool == true, "who passed is who another reader finds to have passed")
    }
}
