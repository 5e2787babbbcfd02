internal import CryptoExtras
internal import Encodings
internal import Signatures

/// A service account of Google Cloud, by which the gateway proves to Google who calls: the key file
/// that the console gives out (`"type": "service_account"`).
package struct ServiceAccount: Hashable, Sendable {
    /// Why a text is no such file.
    package struct Fault: Error, Hashable, Sendable {
        /// For people; no part of the key.
        package let detail: String
    }

    package static let fileBytesMax = 16 << 10
    /// What its calls may do.
    package static let scope = "https://www.googleapis.com/auth/playintegrity"
    /// Google's longest, in seconds.
    private static let assertionLifetime: Int64 = 3_600
    private static let textBytesMax = 1_024

    /// `client_email`
    package let email: String
    /// `private_key_id`
    package let keyID: String
    /// `token_uri`, where access tokens are asked for.
    package let tokenURL: String
    private let key: _RSA.Signing.PrivateKey
    /// SHA-256 of the private key's text.
    private let keyDigest: [UInt8]

    /// Reads the file. Members that are not needed are skipped.
    package init(json: [UInt8]) throws(Fault) {
        let members: [String: String]
        do throws(JSONError) {
            members = try Self.members(json.span)
        } catch {
            throw Fault(detail: "\(error.text) at \(error.column)")
        }
        func member(_ name: String) throws(Fault) -> String {
            guard let value = members[name], !value.isEmpty else {
                throw Fault(detail: "\(name) is missing")
            }
            return value
        }
        guard try member("type") == "service_account" else {
            throw Fault(detail: "its type is not service_account")
        }
        email = try member("client_email")
        keyID = try member("private_key_id")
        tokenURL = try member("token_uri")
        let pem = try member("private_key")
        do {
            key = try _RSA.Signing.PrivateKey(pemRepresentation: pem)
        } catch {
            throw Fault(detail: "private_key is no RSA key of 2048 bits or more in PEM")
        }
        keyDigest = Signatures.SHA256.digest(of: Array(pem.utf8)).array
    }

    private static func members(_ text: Span<UInt8>) throws(JSONError) -> [String: String] {
        let names: Set = ["type", "client_email", "private_key_id", "private_key", "token_uri"]
        var reader = JSONReader()
        var members: [String: String] = [:]
        try reader.beginObject(text)
        while let name = try reader.nextName(text).map({ String(decoding: $0, as: UTF8.self) }) {
            guard names.contains(name) else {
                try reader.skipValue(text, depth: 1)
                continue
            }
            guard members[name] == nil else { throw reader.error("\(name) occurs twice") }
            guard case .string(let value) = try reader.scalar(text),
                name == "private_key" || value.count <= textBytesMax
            else { throw reader.error("\(name) is no text, or too long") }
            members[name] = String(decoding: value, as: UTF8.self)
        }
        try reader.end(text)
        return members
    }

    /// The request for an access token (RFC 7523 §2.1): a JSON Web Token, signed with RS256.
    ///
    /// - wall: seconds since 1970.
    func grant(at wall: Int64) -> [UInt8] {
        var header = JSONWriter()
        header.object { out in
            out.member("alg", "RS256")
            out.member("typ", "JWT")
            out.member("kid", keyID)
        }
        var claims = JSONWriter()
        claims.object { out in
            out.member("iss", email)
            out.member("scope", Self.scope)
            out.member("aud", tokenURL)
            out.member("iat", wall)
            out.member("exp", wall + Self.assertionLifetime)
        }
        let full = [UInt8(ascii: ".")]
        let signed = Base64.encodeURL(header.bytes) + full + Base64.encodeURL(claims.bytes)
        let signature: [UInt8]
        do {
            signature = Array(
                try key.signature(for: signed, padding: .insecurePKCS1v1_5).rawRepresentation
            )
        } catch {
            preconditionFailure("ServiceAccount: a key that was read can't sign: \(error)")
        }
        // Neither part has a byte that a form would escape.
        let type = "urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer"
        return Array("grant_type=\(type)&assertion=".utf8) + signed + full
            + Base64.encodeURL(signature)
    }

    package static func == (left: Self, right: Self) -> Bool {
        left.email == right.email && left.keyID == right.keyID && left.tokenURL == right.tokenURL
            && left.keyDigest == right.keyDigest
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(keyDigest) }
}

/// What Google gives for a service account: it opens the calls for an hour.
package struct AccessToken: Hashable, Sendable {
    /// Seconds before its end from which on it is not used. A call may wait, and clocks differ.
    package static let margin: Int64 = 120
    private static let textBytesMax = 4_096
    private static let lifetimes: ClosedRange<Int64> = 1...86_400

    /// It never belongs into a log.
    let text: String
    /// Second of Unix time from which on another one is asked for.
    private let end: Int64

    /// Reads a reply to ``ServiceAccount/grant(at:)`` (RFC 6749 §5.1).
    ///
    /// - wall: second of Unix time at which it was asked for.
    package init(_ reply: CallReply, askedAt wall: Int64) throws(IntegrityFault) {
        switch reply {
        case .unsent(let failure), .failed(let failure): throw .unanswered(failure)
        case .answered(200, _, let body):
            guard let read = Self.read(body.span, wall) else { throw .unreadable }
            (text, end) = read
        case .answered(429, _, _): throw .tooMany
        case .answered(500..., _, _): throw .broken
        case .answered: throw .accountRefused
        }
    }

    private static func read(_ content: Span<UInt8>, _ wall: Int64) -> (String, Int64)? {
        guard let answer = JSONDocument(content, members: ["access_token", "expires_in"]),
            let text = answer.string("access_token"), (1...textBytesMax).contains(text.utf8.count),
            text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }),
            let lifetime = answer.integer("expires_in").map({ Int64($0) }),
            lifetimes.contains(lifetime)
        else { return nil }
        return (text, wall + max(lifetime - margin, 1))
    }

    /// Whether it is used now. After a clock was set back, another one is asked for.
    package func isGood(at wall: Int64) -> Bool { wall < end && wall > end - 2 * 86_400 }
}
