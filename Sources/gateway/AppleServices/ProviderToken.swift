internal import ByteCoding
internal import Cryptography
internal import JSONText

/// The JSON Web Token that a call to Apple carries: ES256 over the key's id, the team's id and the
/// time (RFC 7515, RFC 7518 §3.4).
///
/// Apple takes one for an hour, counted from `iat` (Apple, "Establishing a token-based connection
/// to APNs", of which DeviceCheck's tokens have the shape), so one token serves many calls.
package struct ProviderToken: Hashable, Sendable {
    /// Seconds for which a token is used. Ten minutes are left for a clock that is wrong, and for a
    /// call that waits.
    package static let lifetimeSeconds: Int64 = 50 * 60

    /// The token as a field carries it.
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

    /// Whether it can be used now. A clock that was set back makes its time one of the future,
    /// which Apple refuses, so it is not used then either.
    package func isGood(at now: Int64) -> Bool {
        let (age, overflow) = now.subtractingReportingOverflow(issuedAt)
        return !overflow && (0..<Self.lifetimeSeconds).contains(age)
    }
}
