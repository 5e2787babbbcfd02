import CryptoExtras
import Cryptography
import Encodings
import Foundation
import Parties
package import SoftwareAuthenticator

/// Play Integrity, as Google's service reads its tokens, and as Google gives out access tokens.
struct PlayIntegrityService {
    static let grantPath = "/token"

    /// What each token says, and the app that has asked for it.
    private var verdicts: [String: SoftwarePlayVerdict] = [:]
    /// Google clears what it says of a token that it has read before.
    private var read: Set<String> = []
    private var account: StandInAccount?
    private var passes: Set<String> = []
    private var passesGiven = 0
    private(set) var calls: [StandInIntegrityCall] = []
    var plays = StandInPlays()
    /// Seconds for which access tokens are given.
    let lifetime = 3_600
    /// The account's project is linked to the app in the Play Console.
    var isLinked = true

    mutating func add(_ account: StandInAccount) { self.account = account }
    mutating func add(_ token: String, _ verdict: SoftwarePlayVerdict) { verdicts[token] = verdict }
    mutating func refusePasses() { passes = [] }

    mutating func answer(_ request: StandInRequest, now: UnixTime) -> (StandInPlay, StandInAnswer) {
        let play = plays.take()
        let isGrant = request.path == Self.grantPath
        let (answer, token) =
            play.answer.map { ($0, nil) }
            ?? (isGrant ? (grant(request, now), nil) : decode(request))
        calls.append(
            StandInIntegrityCall(
                isGrant: isGrant,
                path: request.path,
                token: token,
                status: answer.status
            )
        )
        return (play, answer)
    }

    /// RFC 7523 §2.1, as Google asks for it ("Using OAuth 2.0 for Server to Server Applications").
    private mutating func grant(_ request: StandInRequest, _ now: UnixTime) -> StandInAnswer {
        let prefix = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion="
        let form = String(decoding: request.body, as: UTF8.self)
        guard request.method == "POST",
            request["Content-Type"] == "application/x-www-form-urlencoded",
            form.hasPrefix(prefix), let account,
            account.accepts(String(form.dropFirst(prefix.count)), at: now)
        else { return .json(400, #"{"error": "invalid_grant"}"#) }
        passesGiven += 1
        let pass = "ya29.pass-\(passesGiven)"
        passes.insert(pass)
        return .json(
            200,
            #"{"access_token": "\#(pass)", "expires_in": \#(lifetime), "token_type": "Bearer"}"#
        )
    }

    private mutating func decode(_ request: StandInRequest) -> (StandInAnswer, String?) {
        let (begin, end) = ("/v1/", ":decodeIntegrityToken")
        guard request.method == "POST", request.path.hasPrefix(begin),
            request.path.hasSuffix(end)
        else { return (.json(404, "{}"), nil) }
        guard let bearer = request["Authorization"], bearer.hasPrefix("Bearer "),
            passes.contains(String(bearer.dropFirst(7)))
        else { return (.json(401, #"{"error": {"code": 401}}"#), nil) }
        guard isLinked else { return (.json(403, #"{"error": {"code": 403}}"#), nil) }
        guard request["Content-Type"] == "application/json",
            let body = JSONDocument(request.body.span, members: ["integrityToken"]),
            let token = body.string("integrityToken")
        else { return (.json(400, #"{"error": {"code": 400}}"#), nil) }
        let package = request.path.dropFirst(begin.count).dropLast(end.count)
        guard let verdict = verdicts[token] else {
            return (.json(400, #"{"error": {"code": 400}}"#), token)
        }
        guard verdict.appPackage == String(package) else {
            return (.json(403, #"{"error": {"code": 403}}"#), token)
        }
        let isFirst = read.insert(token).inserted
        let text = isFirst ? verdict.json : verdict.cleared.json
        return (.json(200, #"{"tokenPayloadExternal": \#(text)}"#), token)
    }
}

/// A call about an integrity token, or for an access token.
package struct StandInIntegrityCall: Hashable, Sendable {
    package let isGrant: Bool
    package let path: String
    /// `nil` where the call was not let in, or asks for an access token.
    package let token: String?
    package let status: Int
}

/// A service account of Google Cloud, with its key.
package struct StandInAccount: Sendable {
    private static let email = "gateway@shop-12345.iam.gserviceaccount.com"
    private static let keyID = "0a1b2c"

    /// The key file.
    package let json: String
    private let tokenURL: String
    private let key: _RSA.Signing.PublicKey

    /// - tokenURL: where access tokens are asked for.
    package init(tokenURL: String) throws {
        let key = try _RSA.Signing.PrivateKey(keySize: .bits2048)
        self.key = key.publicKey
        self.tokenURL = tokenURL
        var json = JSONWriter()
        json.object { json in
            json.member("type", "service_account")
            json.member("project_id", "shop-12345")
            json.member("private_key_id", Self.keyID)
            json.member("private_key", key.pkcs8PEMRepresentation)
            json.member("client_email", Self.email)
            json.member("token_uri", tokenURL)
        }
        self.json = json.text
    }

    /// Whether Google would give an access token for this.
    fileprivate func accepts(_ assertion: String, at now: UnixTime) -> Bool {
        let parts = assertion.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let header = Base64.decode(parts[0]),
            let claims = Base64.decode(parts[1]), let signature = Base64.decode(parts[2]),
            let head = JSONDocument(header.span, members: ["alg", "typ", "kid"]),
            let body = JSONDocument(claims.span, members: ["iss", "scope", "aud", "iat", "exp"]),
            head.string("alg") == "RS256", head.string("typ") == "JWT",
            head.string("kid") == Self.keyID, body.string("iss") == Self.email,
            body.string("scope") == ServiceAccount.scope, body.string("aud") == tokenURL,
            let issued = body.integer("iat"), let end = body.integer("exp"),
            end - issued == 3_600, abs(Int64(issued) - now.seconds) <= 300
        else { return false }
        return key.isValidSignature(
            _RSA.Signing.RSASignature(rawRepresentation: signature),
            for: Array("\(parts[0]).\(parts[1])".utf8),
            padding: .insecurePKCS1v1_5
        )
    }
}

extension StandInServer {
    // MARK: Play Integrity

    /// The address of the service, for `url` of a proof.
    package var integrityURL: String { "https://localhost:\(integrityPort)" }
    /// Where a service account asks for access tokens.
    package var grantURL: String { integrityURL + PlayIntegrityService.grantPath }

    /// Adds a service account, the only one from now on.
    package func add(_ account: StandInAccount) { change { $0.integrity.add(account) } }

    /// Makes a token that says this.
    package func addIntegrity(_ token: String, _ verdict: SoftwarePlayVerdict) {
        change { $0.integrity.add(token, verdict) }
    }

    package func refuseAccessTokens() { change { $0.integrity.refusePasses() } }

    /// Sets the play of all calls that have no script.
    package func playIntegrity(_ play: StandInPlay) { change { $0.integrity.plays.always = play } }

    /// Says whether the account's project is linked to the app.
    package func linkIntegrity(_ isLinked: Bool) { change { $0.integrity.isLinked = isLinked } }

    /// Sets the plays of the next calls.
    package func playNextIntegrity(_ plays: StandInPlay...) {
        change { $0.integrity.plays.next += plays }
    }
}
