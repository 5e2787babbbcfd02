package import Cryptography
internal import Encodings
package import OutboundCalls
import Verification

/// Apple as a party that is called: the tokens, and how calls are written.
package struct AppleCalls: CalledParty {
    private var settings: AppleSettings
    private var tokens: [AppleCredential: ProviderToken] = [:]
    package private(set) var tokensSigned: UInt64 = 0

    package init(_ settings: AppleSettings) { self.settings = settings }

    /// An unchanged key keeps its token.
    package mutating func replace(by next: AppleSettings) {
        settings = next
        tokens = tokens.filter { next.credentials.contains($0.key) }
    }

    package func limits(of host: AppleHost) -> CallLine.Limits? { settings.limits }

    package func obstacle(to call: AppleCall) -> CallFailure? {
        if credential(of: call) == nil { return .noCredential }
        return settings.hosts[call.host] == nil ? .noHost : nil
    }

    private func credential(of call: AppleCall) -> AppleCredential? {
        guard let team = call.teamID else {
            return settings.credentials.count == 1 ? settings.credentials.first : nil
        }
        return settings.credentials.first { $0.teamID == team }
    }

    package mutating func written(_ call: AppleCall, at wall: Int64) -> CallRequest {
        guard let credential = credential(of: call), let address = settings.hosts[call.host] else {
            preconditionFailure("AppleCalls: a call with an obstacle is written")
        }
        let token = token(of: credential, at: wall)
        let isBearer = call.service.family == .deviceCheck || settings.authorization == .bearer
        let authorization = isBearer ? "Bearer \(token.text)" : token.text
        var request = CallRequest(
            url: address + call.service.path,
            fields: [CallRequest.Field("Authorization", authorization)],
            contentType: call.service.contentType,
            content: call.body
        )
        request.roots = settings.roots
        request.proxy = settings.proxy
        return request
    }

    private mutating func token(of credential: AppleCredential, at wall: Int64) -> ProviderToken {
        if let token = tokens[credential], token.isGood(at: wall) { return token }
        let token = ProviderToken(credential, at: wall)
        tokens[credential] = token
        tokensSigned &+= 1
        return token
    }

    package mutating func renews(_ refused: CallRequest, of call: AppleCall) -> Bool {
        guard let credential = credential(of: call) else { return false }
        // Another call may have made a new token meanwhile.
        if let token = tokens[credential],
            refused.fields.contains(where: { $0.value.hasSuffix(token.text) })
        {
            tokens[credential] = nil
        }
        return true
    }
}

/// The calls to Apple's servers: which, with which keys, and how often.
package struct AppleSettings: Sendable {
    /// The form of a token in the field `Authorization` of a call about a receipt.
    package enum Authorization: String, CaseIterable, Hashable, Sendable {
        /// Only the token, as in Apple's example.
        case plain
        /// After the word Bearer, as DeviceCheck requires.
        case bearer
    }

    /// `keys`: the credentials of teams. Default none; then no call is made.
    package var credentials: [AppleCredential] = []
    /// `authorization`: default `plain`. Calls of DeviceCheck always have `Bearer`.
    package var authorization = Authorization.plain
    /// `hosts`: the addresses of Apple's services, without a slash at the end. Default Apple's own;
    /// none for keys of a test authority.
    package var hosts: [AppleHost: String] = [:]
    /// `roots`: the certificates of a PEM file, instead of the system's; `nil` for the system's.
    package var roots: [UInt8]?
    /// `proxy`: a proxy that supports CONNECT. Default none.
    package var proxy: String?
    /// `timeout`: of a call without its own timeout, from the hand-in to the answer. Default 10s,
    /// 100ms…5m.
    package var timeout = Duration.seconds(10)
    /// `concurrent`: concurrent calls to one host. Default 8, 1…64.
    package var concurrent = 8
    /// `queue`: calls that wait for one host. Default 1000, 1…100000. A further call is not made.
    package var queue = 1_000
    /// `rate`: calls to one host per second. Default 50, 1…1000.
    package var perSecond = 50
    /// `receipts`: the renewal of receipts.
    package var receipts = RenewalSettings()

    package init() {
        for host in AppleHost.all { hosts[host] = host.address }
    }

    var limits: CallLine.Limits {
        CallLine.Limits(concurrent: concurrent, queue: queue, perSecond: perSecond)
    }
}

/// The JSON Web Token of a call to Apple: ES256 over the key's id, the team's id and the time (RFC
/// 7515, RFC 7518 §3.4).
///
/// Apple accepts a token for an hour from `iat`, so one token serves many calls. (Apple,
/// "Establishing a token-based connection to APNs"; DeviceCheck's tokens have the same form.)
package struct ProviderToken: Hashable, Sendable {
    /// Seconds for which a token is used. Ten minutes are left for a wrong clock, and for a call
    /// that waits.
    package static let lifetimeSeconds: Int64 = 50 * 60

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

/// The credential by which a team proves its identity to Apple: a key that was made at
/// developer.apple.com, with DeviceCheck enabled.
package struct AppleCredential: Hashable, Sendable {
    /// The team's id, `iss` of the tokens.
    package let teamID: String
    /// The key's id, `kid` of the tokens.
    package let keyID: String
    let key: P256PrivateKey

    package init(teamID: String, keyID: String, key: P256PrivateKey) {
        self.teamID = teamID
        self.keyID = keyID
        self.key = key
    }

    /// Reads the private key of a `.p8` file: PKCS #8 in PEM, not encrypted, an EC key on P-256.
    package init(teamID: String, keyID: String, pem: String) throws(AppleKeyFault) {
        func has(_ label: String) -> Bool { pem.contains("-----BEGIN \(label)-----") }
        if has("ENCRYPTED PRIVATE KEY") { throw .encrypted }
        if has("EC PRIVATE KEY") || has("RSA PRIVATE KEY") { throw .notPKCS8 }
        guard has("PRIVATE KEY") else { throw .noPrivateKey }
        guard let key = ECPrivateKey(pem: pem).flatMap({ P256PrivateKey($0) }) else {
            throw .notP256
        }
        self.init(teamID: teamID, keyID: keyID, key: key)
    }

    /// The longest file that is read. Apple's have 257 bytes.
    package static let fileBytesMax = 16 * 1024

    /// Whether a text is a team's or a key's id: ten capital letters and digits.
    package static func isID(_ text: String) -> Bool {
        text.utf8.count == 10
            && text.utf8.allSatisfy {
                (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0)
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
            }
    }

    /// Whether both make the same tokens.
    package static func == (left: Self, right: Self) -> Bool {
        left.teamID == right.teamID && left.keyID == right.keyID
            && left.key.publicKey == right.key.publicKey
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(teamID)
        hasher.combine(keyID)
    }
}

/// Why a `.p8` file is not accepted.
package enum AppleKeyFault: Error, Hashable, Sendable {
    case noPrivateKey
    /// It needs a passphrase.
    case encrypted
    /// Its key has an older form than PKCS #8.
    case notPKCS8
    /// Its key is damaged, or not on the curve P-256.
    case notP256

    /// The finding, in the words of a problem.
    package var found: String {
        switch self {
        case .noPrivateKey: "a file without a private key in PEM"
        case .encrypted: "a private key with a passphrase"
        case .notPKCS8: "a private key that is not in PKCS #8"
        case .notP256: "a private key that is damaged, or not an EC key on P-256"
        }
    }

    /// The next step.
    package var use: String {
        switch self {
        case .noPrivateKey, .notP256: "the .p8 file as it was downloaded from developer.apple.com"
        case .encrypted: "a key without passphrase (openssl pkcs8 -in KEY -out PLAIN)"
        case .notPKCS8: "PKCS #8 (openssl pkcs8 -topk8 -nocrypt -in KEY -out FILE.p8)"
        }
    }
}
