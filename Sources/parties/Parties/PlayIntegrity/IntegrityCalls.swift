internal import CryptoExtras
internal import Encodings
package import OutboundCalls
package import SettingsReading
internal import Signatures
package import Tokens

/// A proof of `kind: play-integrity`: who reads its tokens, and how old they may be.
package struct IntegritySettings: ProofPartySettings {
    package typealias Draft = IntegrityDraft

    package static let kind = "play-integrity"
    package static let field: String? = "app-attest-integrity-token"
    package static let isBound = true

    /// Who reads the tokens.
    package enum Decoder: Sendable {
        /// Google's service: tokens of both kinds of requests.
        case service(IntegrityService)
        /// This machine: tokens of classic requests.
        case local(ClassicTokenKeys)
    }

    /// The name of the proof.
    package let name: String
    package var decoder: Decoder
    /// `max_token_age`: seconds from Google's timestamp on for which a token is good. Default 5m,
    /// 10s…1h.
    package var ageMax: Int64 = 300

    package init(name: String, decoder: Decoder) { (self.name, self.decoder) = (name, decoder) }

    package func changes(to next: Self, at keyPath: String) -> [SettingChange] {
        let isSame = service == next.service && ageMax == next.ageMax
        return isSame ? [] : [SettingChange(keyPath: keyPath)]
    }

    /// The service that is called; `nil` for a local decoder.
    package var service: IntegrityService? {
        if case .service(let service) = decoder { service } else { nil }
    }
}

/// Google's service that reads tokens (Google, REST, `v1.decodeIntegrityToken`).
package struct IntegrityService: Hashable, Sendable {
    /// Google's address.
    package static let address = "https://playintegrity.googleapis.com"

    /// The name of the proof.
    package let name: String
    /// `service_account`
    package var account: ServiceAccount
    /// `url`: the service, before `/v1/`. Default ``address``.
    package var url = Self.address
    package var calls = TokenCallSettings()

    package init(name: String, account: ServiceAccount) {
        (self.name, self.account) = (name, account)
    }
}

/// A call to Google for a proof.
package struct IntegrityCall: OutboundCall {
    package enum Question: Sendable {
        /// For an access token.
        case grant
        /// What a token of this package says.
        case token([UInt8], package: String, AccessToken)
    }

    package let proof: String
    package let question: Question
    package let timeout: Duration

    package init(_ service: IntegrityService, _ question: Question) {
        (proof, timeout) = (service.name, service.calls.timeout)
        self.question = question
    }

    /// Access tokens come from another host. No proof has a colon in its name.
    package var host: String {
        switch question {
        case .grant: proof + ":grant"
        case .token: proof
        }
    }

    package var kind: String { host }
    package var family: String { host }

    /// Whether Google may have made this token: its alphabet is that of `token68` (RFC 9110 §11.2).
    /// Others cost no call.
    package static func isToken(_ text: [UInt8]) -> Bool {
        guard (1...ClassicTokenKeys.tokenBytesMax).contains(text.count) else { return false }
        return text.allSatisfy(\.isToken68)
    }
}

/// Google's service as a party that is called.
package struct IntegrityCalls: CalledParty {
    private var services: TokenParties<IntegrityService>

    package init(_ settings: [IntegrityService]) { services = TokenParties(settings, \.name) }

    package mutating func replace(by settings: [IntegrityService]) {
        services.replace(by: settings, \.name)
    }

    package func limits(of host: String) -> CallLine.Limits? {
        services[String(host.prefix { $0 != ":" })]?.calls.limits
    }

    package func obstacle(to call: IntegrityCall) -> CallFailure? {
        services[call.proof] == nil ? .noHost : nil
    }

    /// The longest answer that is read. Google's have some thousand bytes.
    package static let answerBytesMax = 64 << 10

    package mutating func written(_ call: IntegrityCall, at wall: Int64) -> CallRequest {
        guard let service = services[call.proof] else {
            preconditionFailure("IntegrityCalls: a call with an obstacle is written")
        }
        var request: CallRequest
        switch call.question {
        case .grant:
            request = CallRequest(
                url: service.account.tokenURL,
                fields: [],
                contentType: "application/x-www-form-urlencoded",
                content: service.account.grant(at: wall)
            )
        case .token(let token, let package, let access):
            var json = JSONWriter()
            json.object { $0.member("integrityToken", String(decoding: token, as: UTF8.self)) }
            request = CallRequest(
                url: "\(service.url)/v1/\(package):decodeIntegrityToken",
                fields: [CallRequest.Field("Authorization", "Bearer \(access.text)")],
                contentType: "application/json",
                content: json.bytes
            )
        }
        request.roots = service.calls.roots
        request.proxy = service.calls.proxy
        request.answerBytesMax = Self.answerBytesMax
        return request
    }

    /// Another access token has to be asked for first.
    package mutating func renews(_ refused: CallRequest, of call: IntegrityCall) -> Bool { false }
}

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
    package init(_ reply: CallReply, askedAt wall: Int64) throws(PartyFault) {
        if let fault = PartyFault(reply) { throw fault }
        guard case .answered(200, _, let body) = reply else { throw .credentialRefused }
        guard let read = Self.read(body.span, wall) else { throw .unreadable }
        (text, end) = read
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
