internal import Cryptography
internal import Encodings

/// The JSON Web Token of a call to Apple: ES256 over the key's id, the team's id and the time (RFC
/// 7515, RFC 7518 §3.4).
///
/// Apple accepts a token for an hour from `iat`, so one token serves many calls. (Apple,
/// "Establishing a token-based connection to APNs"; DeviceCheck's tokens have the same form.)
package struct ProviderToken: Hashable, Sendable {
    /// Seconds for which a token is used. Ten minutes are left for a wrong clock, and for a call
    /// that waits.
    package static let lifetimeSeconds: Int64 = 50 * 60

    /// The token as text of a field.
    package let text: String
    /// `iat`, seconds since 1970.
    package let issuedAt: Int64

    /// Signs a new token.
    package init(_ credential: AppleCredential, at now: Int64) {
        var header = JSONWriter()
        header.object { out in
            out.member("alg", "ES256")
            out.member("kid", credential.keyID)
        }
        var claims = JSONWriter()
        claims.object { out in
            out.member("iss", credential.teamID)
            out.member("iat", now)
        }
        var signed = Base64.encodeURL(header.bytes.span)
        signed.append(UInt8(ascii: "."))
        signed += Base64.encodeURL(claims.bytes.span)
        let signature = credential.key.joseSignature(message: signed.span)
        signed.append(UInt8(ascii: "."))
        signed += Base64.encodeURL(signature.span)
        text = String(decoding: signed, as: UTF8.self)
        issuedAt = now
    }

    /// Whether it can be used now. If the clock was set back, the token's time is in the future,
    /// which Apple refuses. So it is not used then either.
    package func isGood(at now: Int64) -> Bool {
        let (age, overflow) = now.subtractingReportingOverflow(issuedAt)
        return !overflow && (0..<Self.lifetimeSeconds).contains(age)
    }
}
