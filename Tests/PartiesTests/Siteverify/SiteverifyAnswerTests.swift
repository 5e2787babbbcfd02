import Expectations
import OutboundCalls
import Testing

@testable import Parties

@Suite struct SiteverifyAnswerTests {
    private static func settings(
        _ service: SiteverifySettings.Service = .recaptcha,
        _ change: (inout SiteverifySettings) -> Void = { _ in }
    ) -> SiteverifySettings {
        var settings = SiteverifySettings(
            name: "human",
            service: service,
            url: "https://test.test/siteverify",
            secret: "secret"
        )
        change(&settings)
        return settings
    }

    private static func word(
        _ body: String,
        _ settings: SiteverifySettings = settings(),
        status: Int = 200
    ) -> String {
        let reply = CallReply.answered(status: status, retryAfter: nil, body: Array(body.utf8))
        return SiteverifyVerdict(reply, settings).word
    }

    // Google, "Verifying the user's response"; hCaptcha, "Verify the User Response Server Side";
    // Cloudflare, "Validate the token".
    private static let genuine = [
        #"{"success": true, "challenge_ts": "2026-11-26T05:00:00Z", "hostname": "shop.example"}"#,
        #"{"success": true, "score": 0.9, "action": "order", "hostname": "shop.example"}"#,
        #"{"success":true,"challenge_ts":"2026-11-26T05:00:00Z","hostname":"Shop.Example","#
            + #""credit":false,"new":{"a":[1.5e3,null]}}"#,
        #"{"success":true,"error-codes":[],"hostname":"shop.example","action":"order","cdata":"","#
            + #""metadata":{"ephemeral_id":"x:1"}}"#,
        #"{"success":true,"error-codes":null,"hostname":"shop.example"}"#,
        #"{"success": true, "apk_package_name": "shop.example"}"#,
    ]

    @Test(arguments: genuine)
    func `an answer in the documented form is read`(_ body: String) {
        expectEqual(Self.word(body, Self.settings { $0.hostnames = ["shop.example"] }), "good")
    }

    @Test(arguments: [
        #"{"success": "true"}"#, #"{"success": 1}"#, #"{"success": null}"#, #"{"success": [true]}"#,
        #"{"hostname": "shop.example"}"#, "{}", "", "true", "[]", "null", #"{"success": true"#,
        #"{"success": true} x"#, #"{"success": true, "success": true}"#,
        #"{"success": false, "success": true}"#, #"{"success": true, "error-codes": ["x"]}"#,
        #"{"success": true, "error-codes": "x"}"#, #"{"success": true, "error-codes": [1]}"#,
        #"{"success": true, "score": "0.9"}"#, #"{"success": true, "score": 1.1}"#,
        #"{"success": true, "score": -0.1}"#, #"{"success": true, "score": 1e999}"#,
        #"{"success": true, "score": true}"#, #"{"success": true, "hostname": 1}"#,
        #"{"success": true, "hostname": ["shop.example"]}"#,
        #"{"success": true, "hostname": "a.test", "hostname": "shop.example"}"#,
        #"{"success": true, "hostname": "a.test", "apk_package_name": "shop.example"}"#,
        #"{"success": true, "hostname": "\#(String(repeating: "a", count: 257))"}"#,
        String(repeating: "[", count: 100), "<html>", "\u{1}",
    ])
    func `what is not in the documented form is believed in nothing`(_ body: String) {
        expectEqual(Self.word(body), "unreadable")
    }

    @Test func `a list of codes has a limit`() {
        let codes = { (count: Int) in
            let list = Array(repeating: #""bad-request""#, count: count).joined(separator: ",")
            return #"{"success": false, "error-codes": [\#(list)]}"#
        }
        expectEqual(Self.word(codes(SiteverifyAnswer.codesMax)), "call-malformed")
        expectEqual(Self.word(codes(SiteverifyAnswer.codesMax + 1)), "unreadable")
    }

    @Test(arguments: [
        ("invalid-input-response", "invalid"), ("missing-input-response", "invalid"),
        ("timeout-or-duplicate", "expired-or-used"), ("expired-input-response", "expired"),
        ("already-seen-response", "used"), ("invalid-or-already-seen-response", "used"),
        ("sitekey-secret-mismatch", "other-key"), ("not-using-dummy-passcode", "other-key"),
        ("bad-request", "call-malformed"), ("browser-error", "browser"),
        ("a-new-code", "unknown-code"), ("", "unknown-code"),
        ("missing-input-secret", "secret-refused"), ("invalid-input-secret", "secret-refused"),
        ("invalid-remoteip", "call-refused"), ("internal-error", "server-error"),
    ])
    func `each code says whose fault it is`(_ code: String, _ word: String) {
        let body = #"{"success": false, "error-codes": ["\#(code)"]}"#
        expectEqual(Self.word(body), word)
        // Turnstile answers 400 with codes.
        expectEqual(Self.word(body, status: 400), word)
    }

    @Test func `without a code the token is refused, and among several the gateway's fault counts`()
    {
        expectEqual(Self.word(#"{"success": false}"#), "invalid")
        expectEqual(Self.word(#"{"success": false, "error-codes": []}"#), "invalid")
        let both = #"["invalid-input-response", "invalid-input-secret"]"#
        expectEqual(Self.word(#"{"success": false, "error-codes": \#(both)}"#), "secret-refused")
    }

    /// Otherwise a client could choose a token for which a rule forwards.
    @Test(arguments: [400, 413, 414, 422])
    func `a status that a token may cause refuses it`(_ status: Int) {
        expectEqual(Self.word("", status: status), "call-malformed")
        expectEqual(Self.word(#"{"success": false}"#, status: status), "call-malformed")
    }

    @Test(arguments: [
        (301, "call-refused"), (302, "call-refused"), (307, "call-refused"),
        (401, "secret-refused"),
        (403, "secret-refused"), (404, "call-refused"), (204, "call-refused"),
        (429, "too-many"), (500, "server-error"), (503, "server-error"),
    ])
    func `no other status says anything of a token`(_ status: Int, _ word: String) {
        expectEqual(Self.word("", status: status), word)
        // A success in such an answer is none.
        #expect(Self.word(#"{"success": true}"#, status: status) != "good")
    }

    @Test func `a call without answer says why`() {
        let settings = Self.settings()
        for failure in CallFailure.allCases {
            expectEqual(SiteverifyVerdict(.failed(failure), settings).word, failure.rawValue)
            expectEqual(SiteverifyVerdict(.unsent(failure), settings).word, failure.rawValue)
        }
    }

    @Test func `site, action and score are compared with what is asked for`() {
        let strict = Self.settings { settings in
            settings.hostnames = ["shop.example", "www.shop.example"]
            settings.action = "order"
            settings.scoreMin = TestScore("0.7")
        }
        func answer(_ hostname: String, _ action: String, _ score: String) -> String {
            #"{"success":true,"hostname":"\#(hostname)","action":"\#(action)","score":\#(score)}"#
        }
        expectEqual(Self.word(answer("www.shop.example", "order", "0.7"), strict), "good")
        expectEqual(Self.word(answer("shop.example.evil.test", "order", "0.9"), strict), "hostname")
        expectEqual(Self.word(answer("", "order", "0.9"), strict), "hostname")
        expectEqual(Self.word(answer("shop.example", "Order", "0.9"), strict), "action")
        expectEqual(Self.word(answer("shop.example", "order", "0.69"), strict), "score")
        expectEqual(Self.word(answer("shop.example", "order", "6.9e-1"), strict), "score")
        expectEqual(Self.word(#"{"success": true}"#, strict), "hostname")
        let scored = Self.settings { $0.scoreMin = TestScore("0.1") }
        expectEqual(Self.word(#"{"success": true}"#, scored), "no-score")
        expectEqual(Self.word(#"{"success": true, "score": 0}"#, scored), "score")
    }

    @Test func `the score of hCaptcha is a risk`() {
        let settings = Self.settings(.hcaptcha) { $0.scoreMax = TestScore("0.8") }
        expectEqual(Self.word(#"{"success": true, "score": 0.8}"#, settings), "good")
        expectEqual(Self.word(#"{"success": true, "score": 0.81}"#, settings), "score")
        expectEqual(Self.word(#"{"success": true}"#, settings), "no-score")
    }

    // MARK: Assessments

    private static func assessment(
        _ properties: String,
        _ risk: String = #""riskAnalysis": {"score": 0.8999999761581421, "reasons": []},"#
    ) -> String {
        #"{"name": "projects/1/assessments/2", "event": {"token": "t", "valid": true}, \#(risk) "#
            + #""tokenProperties": \#(properties)}"#
    }

    @Test func `an assessment is read by its own members`() {
        let settings = Self.settings(.enterprise) { settings in
            settings.hostnames = ["shop.example"]
            settings.action = "order"
            settings.scoreMin = TestScore("0.9")
        }
        let good =
            #"{"valid": true, "invalidReason": "INVALID_REASON_UNSPECIFIED", "#
            + #""hostname": "shop.example", "androidPackageName": "", "iosBundleId": "", "#
            + #""action": "order", "createTime": "2026-11-26T05:00:00Z"}"#
        expectEqual(Self.word(Self.assessment(good), settings), "good")
        expectEqual(
            Self.word(Self.assessment(good, #""riskAnalysis": {"score": 0.5},"#), settings),
            "score"
        )
        // A score of 0 may be left out, and so may the whole analysis of an unscored key.
        expectEqual(Self.word(Self.assessment(good, #""riskAnalysis": {},"#), settings), "score")
        expectEqual(Self.word(Self.assessment(good, ""), settings), "no-score")
        let app =
            #"{"valid": true, "hostname": "", "androidPackageName": "shop.example", "#
            + #""action": "order"}"#
        expectEqual(Self.word(Self.assessment(app), settings), "good")
    }

    @Test(arguments: [
        ("MALFORMED", "invalid"), ("EXPIRED", "expired"), ("DUPE", "used"),
        ("MISSING", "invalid"), ("BROWSER_ERROR", "browser"),
        ("UNKNOWN_INVALID_REASON", "unknown-code"),
    ])
    func `each reason of an assessment refuses the token`(_ reason: String, _ word: String) {
        let settings = Self.settings(.enterprise)
        let named = #""invalidReason": "\#(reason)""#
        expectEqual(Self.word(Self.assessment("{\"valid\": false, \(named)}"), settings), word)
        expectEqual(Self.word(Self.assessment("{\(named)}"), settings), word)
    }

    @Test(arguments: [
        #"{"valid": "true"}"#, #"{"valid": 1}"#, #"{"valid": true, "valid": true}"#, "true", "null",
        #"{"valid": true, "hostname": "a.test", "iosBundleId": "b.test"}"#,
    ])
    func `an assessment in another form is believed in nothing`(_ properties: String) {
        let settings = Self.settings(.enterprise)
        expectEqual(Self.word(Self.assessment(properties), settings), "unreadable")
        expectEqual(Self.word(#"{"success": true}"#, settings), "unreadable")
        // Nor does the one shape pass as the other.
        expectEqual(Self.word(Self.assessment(#"{"valid": true}"#), Self.settings()), "unreadable")
    }

    @Test(arguments: [("0", 0), ("0.5", 500), ("1", 1_000), ("1.0", 1_000), ("0.999", 999)])
    func `a score is written with a point`(_ text: String, _ thousandths: Int) {
        expectEqual(TestScore(text)?.thousandths, thousandths)
    }

    @Test(arguments: ["", "1.1", "-0", "2", "0,5", "5e-1", "nan", "0.5.5", "0x1", ".", "0.12345"])
    func `nothing else is a score`(_ text: String) {
        expectEqual(TestScore(text), nil)
    }
}
