import AppleStandIn
import Encodings
import Expectations
import OutboundCalls
import Rules
import Signatures
import SoftwareAuthenticator
import Testing

@testable import Parties

/// What Google says in tokens of Play Integrity, and the calls about them.
struct IntegrityTests {
    private static let hash = SHA256.digest(of: Array("client data".utf8))
    private static let signer = [UInt8](repeating: 7, count: 32)
    private static let now: Int64 = 1_800_000_000
    private static let terms = IntegrityTerms(
        package: "com.example.shop",
        signers: [signer],
        keyID: [UInt8](repeating: 1, count: 32),
        clientDataHash: hash,
        ageMax: 300
    )
    private static let verdict = SoftwarePlayVerdict(
        clientDataHash: hash.array,
        at: now * 1_000,
        signer: signer
    )

    private static func finding(
        _ edit: (inout SoftwarePlayVerdict) -> Void = { _ in }
    ) -> IntegrityFinding {
        var verdict = verdict
        edit(&verdict)
        return answered(200, #"{"tokenPayloadExternal": \#(verdict.json)}"#)
    }

    private static func answered(_ status: Int, _ text: String = "") -> IntegrityFinding {
        let reply = CallReply.answered(status: status, retryAfter: nil, body: Array(text.utf8))
        return IntegrityFinding(reply, terms, now: now)
    }

    @Test func `all that rules ask for is read`() throws {
        guard case .good(let verdict, _, let end) = Self.finding() else {
            return #expect(Bool(false), "\(Self.finding())")
        }
        var expected = IntegrityVerdict()
        expected.device = [.basic, .device]
        (expected.isRecognized, expected.isLicensed) = (true, true)
        (expected.activity, expected.playProtect) = (1, .noIssues)
        expectEqual(verdict, expected)
        // A reload may set the greatest age.
        expectEqual(end, Self.now + 3_601)
        let protects = ["NO_DATA", "POSSIBLE_RISK", "MEDIUM_RISK", "HIGH_RISK", "UNEVALUATED"]
        for word in protects {
            guard case .good(let verdict, _, _) = Self.finding({ $0.playProtect = word }) else {
                return #expect(Bool(false), "\(word)")
            }
            #expect(verdict.playProtect != nil)
        }
    }

    @Test func `words that are not known are no better than none`() {
        let finding = Self.finding { verdict in
            verdict.device = ["MEETS_MARTIAN_INTEGRITY", "meets_device_integrity"]
            (verdict.recognition, verdict.licensing) = ("RECOGNIZED", "licensed")
            (verdict.activity, verdict.playProtect) = ("LEVEL_9", "FINE")
        }
        guard case .good(let verdict, _, _) = finding else {
            return #expect(Bool(false), "\(finding)")
        }
        expectEqual(verdict, IntegrityVerdict())
    }

    @Test func `the first fault in the order of the checks is found`() {
        let faults: [(IntegrityRefusal, (inout SoftwarePlayVerdict) -> Void)] = [
            (.otherPackage, { $0.package = "com.example.other" }),
            (.otherPackage, { $0.appPackage = "com.example.other" }),
            (.unbound, { $0.hash = "" }),
            (.otherRequest, { $0.hash = "AAAA" }), (.otherRequest, { $0.hash = "not base64" }),
            (.otherRequest, { $0.hash = Base64.text(SHA256.digest(of: []).array) }),
            (.otherSigner, { $0.signers = ["AAAA", "!"] }),
            (.notYet, { $0.milliseconds += 61_000 }), (.expired, { $0.milliseconds -= 301_000 }),
        ]
        for (refusal, edit) in faults {
            expectEqual(Self.finding(edit), .refused(refusal))
        }
        let close = [{ (verdict: inout SoftwarePlayVerdict) in verdict.milliseconds -= 300_000 }]
        for edit in close {
            guard case .good = Self.finding(edit) else { return #expect(Bool(false)) }
        }
        // Web-safe base64 with padding, as Android's encoder writes it.
        guard case .good = Self.finding({ $0.hash = Base64.text(Self.hash.array) }) else {
            return #expect(Bool(false))
        }
    }

    @Test func `two tokens of one request have two names, and two spellings one`() {
        func name(_ finding: IntegrityFinding) -> SHA256Digest? {
            if case .good(_, let use, _) = finding { use } else { nil }
        }
        expectEqual(name(Self.finding()), name(Self.finding()))
        #expect(name(Self.finding()) != name(Self.finding { $0.milliseconds += 1 }))
    }

    @Test(arguments: [
        "", "[]", "{}", #"{"tokenPayloadExternal": []}"#, #"{"tokenPayloadExternal": {}} x"#,
        #"{"tokenPayloadExternal": {}, "tokenPayloadExternal": {}}"#,
        #"{"tokenPayloadExternal": {"requestDetails": {"nonce": "a", "requestHash": "b"}}}"#,
        #"{"tokenPayloadExternal": {"requestDetails": {}, "requestDetails": {}}}"#,
        #"{"tokenPayloadExternal": {"requestDetails": {"timestampMillis": "-1"}}}"#,
        #"{"tokenPayloadExternal": {"requestDetails": {"timestampMillis": 1.5}}}"#,
        #"{"tokenPayloadExternal": {"deviceIntegrity": {"deviceRecognitionVerdict": "X"}}}"#,
        #"{"tokenPayloadExternal": {"testingDetails": {"isTestingResponse": "true"}}}"#,
    ])
    func `an answer in another form is believed in nothing`(_ text: String) {
        expectEqual(Self.answered(200, text), .failed(.unreadable))
    }

    @Test func `a section elsewhere is not read`() throws {
        let text = #"{"accountDetails":{"requestDetails":{"requestPackageName":"a"}}}"#
        let payload = try IntegrityPayload(payload: Array(text.utf8))
        #expect(payload.package.isEmpty)
        let nested = #"{"recentDeviceActivity":{"deviceActivityLevel":"LEVEL_1"}}"#
        try expectEqual(IntegrityPayload(payload: Array(nested.utf8)).verdict.activity, nil)
    }

    @Test func `only what no token can cause is a fault of Google's`() {
        expectEqual(Self.answered(400), .refused(.invalid))
        expectEqual(Self.answered(403), .refused(.denied))
        expectEqual(Self.answered(413), .refused(.invalid))
        expectEqual(Self.answered(401), .failed(.credentialRefused))
        expectEqual(Self.answered(404), .failed(.callRefused))
        expectEqual(Self.answered(302), .failed(.callRefused))
        expectEqual(Self.answered(429), .failed(.tooMany()))
        expectEqual(Self.answered(503), .failed(.broken()))
        let silent = IntegrityFinding(.failed(.timeout), Self.terms, now: Self.now)
        expectEqual(silent, .failed(.unanswered(.timeout)))
    }

    // MARK: Access tokens

    private static func access(_ status: Int, _ text: String) -> Result<AccessToken, PartyFault> {
        let reply = CallReply.answered(status: status, retryAfter: nil, body: Array(text.utf8))
        do throws(PartyFault) {
            return .success(try AccessToken(reply, askedAt: now))
        } catch {
            return .failure(error)
        }
    }

    @Test func `an access token is good until shortly before its end`() throws {
        let text = #"{"access_token":"a.b","expires_in":3599,"token_type":"Bearer"}"#
        let token = try Self.access(200, text).get()
        expectEqual(token.text, "a.b")
        #expect(token.isGood(at: Self.now) && token.isGood(at: Self.now + 3_478))
        #expect(!token.isGood(at: Self.now + 3_479))
        // A clock that was set back by years.
        #expect(!token.isGood(at: Self.now - 86_400 * 365))
    }

    @Test func `what is no access token is none`() {
        for text in [
            "", "{}", #"{"access_token":"a"}"#, #"{"access_token":"","expires_in":9}"#,
            #"{"access_token":"a b","expires_in":9}"#, #"{"access_token":"a","expires_in":0}"#,
            #"{"access_token":"a","access_token":"b","expires_in":9}"#,
            #"{"access_token":"a","expires_in":"9"}"#,
        ] {
            expectEqual(Self.access(200, text), .failure(.unreadable), "\(text)")
        }
        expectEqual(Self.access(400, ""), .failure(.credentialRefused))
        expectEqual(Self.access(429, ""), .failure(.tooMany()))
        expectEqual(Self.access(500, ""), .failure(.broken()))
    }

    @Test func `a file that is no service account's is refused, with its fault`() throws {
        let good = try StandInAccount(tokenURL: "https://localhost/token").json
        let account = try ServiceAccount(json: Array(good.utf8))
        expectEqual(account.tokenURL, "https://localhost/token")
        let files = [
            "", "[]", good + "x", good.replacing("service_account", with: "authorized_user"),
            good.replacing("client_email", with: "email"),
            good.replacing("PRIVATE KEY", with: "SECRET"),
            good.replacing("\"project_id\"", with: "\"type\""),
        ]
        for file in files {
            #expect(throws: ServiceAccount.Fault.self) {
                try ServiceAccount(json: Array(file.utf8))
            }
        }
    }

    // MARK: Calls

    @Test func `calls go to the account's and to Google's address`() throws {
        let json = try StandInAccount(tokenURL: "https://oauth.test/token").json
        let account = try ServiceAccount(json: Array(json.utf8))
        let service = IntegrityService(name: "play", account: account)
        var calls = IntegrityCalls([service])
        let grant = IntegrityCall(service, .grant)
        #expect(grant.host == "play:grant" && calls.limits(of: grant.host) != nil)
        let asked = calls.written(grant, at: Self.now).url
        expectEqual(asked, "https://oauth.test/token")
        let access = try Self.access(200, #"{"access_token":"pass","expires_in":9}"#).get()
        let question = IntegrityCall.Question.token(Array("t.\"".utf8), package: "a.b", access)
        let written = calls.written(IntegrityCall(service, question), at: Self.now)
        expectEqual(written.url, IntegrityService.address + "/v1/a.b:decodeIntegrityToken")
        expectEqual(written.fields, [CallRequest.Field("Authorization", "Bearer pass")])
        expectEqual(written.content, Array(#"{"integrityToken":"t.\""}"#.utf8))
        let renews = calls.renews(written, of: grant)
        #expect(!renews)
        calls.replace(by: [])
        expectEqual(calls.obstacle(to: grant), nil)
        calls.replace(by: [])
        expectEqual(calls.obstacle(to: grant), .noHost)
    }

    @Test func `a text that Google does not make costs no call`() {
        #expect(IntegrityCall.isToken(Array("aZ09-._~+/=".utf8)))
        for text in ["", "a b", "a\"", "ä", String(repeating: "a", count: 8_193)] {
            #expect(!IntegrityCall.isToken(Array(text.utf8)))
        }
    }
}
