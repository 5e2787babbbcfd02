import Encodings
import Foundation
package import Parties

/// Tests for people, as reCAPTCHA, hCaptcha, Turnstile and reCAPTCHA Enterprise judge their tokens.
struct TestService {
    /// The paths, one of each service.
    static func path(_ service: SiteverifySettings.Service) -> String { "/\(service.rawValue)" }

    /// The secret, or API key, that the services accept.
    static let secret = "s3cret+&="
    static let siteKey = "site-key-1"

    /// The tokens that are good, with the answer's members beside the verdict.
    private var tokens: [String: StandInTest] = [:]
    private var used: Set<String> = []
    private(set) var calls: [StandInTestCall] = []
    var plays = StandInPlays()

    mutating func add(_ token: String, _ test: StandInTest) { tokens[token] = test }

    mutating func answer(_ request: StandInRequest) -> (StandInPlay, StandInAnswer) {
        let play = plays.take()
        let service = SiteverifySettings.Service.allCases.first { Self.path($0) == request.path }
        let question = service.flatMap { Question(request, $0) }
        var answer = play.answer ?? StandInAnswer(404, "Not Found")
        if play.answer == nil, let service {
            answer =
                question.map { judge($0, service) }
                ?? Self.refused(service, "bad-request", status: 400)
        }
        calls.append(
            StandInTestCall(
                service: service,
                method: request.method,
                token: question?.token,
                address: question?.address,
                cookie: request["Cookie"],
                status: answer.status
            )
        )
        return (play, answer)
    }

    private mutating func judge(
        _ question: Question,
        _ service: SiteverifySettings.Service
    ) -> StandInAnswer {
        let isEnterprise = service == .enterprise
        guard question.secret == Self.secret else {
            if isEnterprise { return StandInAnswer(403, #"{"error": {"code": 403}}"#) }
            return Self.refused(service, "invalid-input-secret", status: 200)
        }
        guard !isEnterprise || question.siteKey == Self.siteKey else {
            return StandInAnswer(400, #"{"error": {"code": 400}}"#)
        }
        guard question.siteKey == nil || question.siteKey == Self.siteKey else {
            return Self.refused(service, "sitekey-secret-mismatch", status: 200)
        }
        guard let test = tokens[question.token] else {
            return Self.refused(service, isEnterprise ? "MALFORMED" : "invalid-input-response")
        }
        guard used.insert(question.token).inserted else {
            let code =
                switch service {
                case .enterprise: "DUPE"
                case .hcaptcha: "already-seen-response"
                case .recaptcha, .turnstile: "timeout-or-duplicate"
                }
            return Self.refused(service, code)
        }
        return .json(200, isEnterprise ? test.assessment : test.siteverify)
    }

    private static func refused(
        _ service: SiteverifySettings.Service,
        _ code: String,
        status: Int = 200
    ) -> StandInAnswer {
        guard service == .enterprise else {
            return .json(status, #"{"success": false, "error-codes": ["\#(code)"]}"#)
        }
        let properties = #"{"valid": false, "invalidReason": "\#(code)"}"#
        return .json(status, #"{"riskAnalysis": {}, "tokenProperties": \#(properties)}"#)
    }
}

extension TestService {
    /// What a call asks; `nil` where it is not in the service's form.
    private struct Question {
        var secret: String?
        var token = ""
        var address: String?
        var siteKey: String?

        init?(_ request: StandInRequest, _ service: SiteverifySettings.Service) {
            guard request.method == "POST" else { return nil }
            guard service != .enterprise else {
                guard request["Content-Type"] == "application/json" else { return nil }
                secret = request["X-Goog-Api-Key"]
                do throws(JSONError) {
                    try readEvent(request.body.span)
                } catch {
                    return nil
                }
                return
            }
            guard request["Content-Type"] == "application/x-www-form-urlencoded",
                let form = Self.form(request.body)
            else { return nil }
            (secret, address, siteKey) = (form["secret"], form["remoteip"], form["sitekey"])
            token = form["response"] ?? ""
        }

        private mutating func readEvent(_ text: Span<UInt8>) throws(JSONError) {
            var reader = JSONReader()
            try reader.beginObject(text)
            guard try reader.nextName(text) == Array("event".utf8) else {
                throw reader.error("event is missing")
            }
            try reader.beginObject(text)
            while let name = try reader.nextName(text) {
                let value = String(decoding: try reader.string(text), as: UTF8.self)
                switch String(decoding: name, as: UTF8.self) {
                case "token": token = value
                case "siteKey": siteKey = value
                case "userIpAddress": address = value
                default: break
                }
            }
            guard try reader.nextName(text) == nil else { throw reader.error("only an event") }
            try reader.end(text)
        }

        /// The members of a form; `nil` where a name occurs twice.
        private static func form(_ body: [UInt8]) -> [String: String]? {
            var form: [String: String] = [:]
            for pair in String(decoding: body, as: UTF8.self).split(separator: "&") {
                let parts = pair.split(separator: "=", maxSplits: 1)
                guard let name = parts.first.map(String.init), form[name] == nil else { return nil }
                let value = parts.count > 1 ? String(parts[1]) : ""
                form[name] = value.replacing("+", with: " ").removingPercentEncoding
            }
            return form
        }
    }
}

/// A test that a person has passed, as the service tells it.
package struct StandInTest: Hashable, Sendable {
    package var hostname: String
    package var action: String
    package var score: Double

    package init(hostname: String = "localhost", action: String = "order", score: Double = 0.9) {
        self.hostname = hostname
        self.action = action
        self.score = score
    }

    fileprivate var siteverify: String {
        #"{"success": true, "challenge_ts": "2026-11-26T05:00:00Z", "hostname": "\#(hostname)", "#
            + #""action": "\#(action)", "score": \#(score)}"#
    }

    fileprivate var assessment: String {
        #"{"name": "projects/1/assessments/2", "event": {"siteKey": "\#(TestService.siteKey)"}, "#
            + #""riskAnalysis": {"score": \#(score), "reasons": []}, "#
            + #""tokenProperties": {"valid": true, "hostname": "\#(hostname)", "#
            + #""androidPackageName": "", "iosBundleId": "", "action": "\#(action)"}}"#
    }
}

/// A question about a token.
package struct StandInTestCall: Hashable, Sendable {
    /// The service that the path names; `nil` for none.
    package let service: SiteverifySettings.Service?
    package let method: String
    /// `nil` where the question is not in the service's form.
    package let token: String?
    package let address: String?
    package let cookie: String?
    package let status: Int
}

extension StandInServer {
    // MARK: Tests for people

    /// The secret that the services accept.
    package static var testSecret: String { TestService.secret }
    /// The site key that they know.
    package static var testSiteKey: String { TestService.siteKey }

    /// The address of a service.
    package func testURL(_ service: SiteverifySettings.Service) -> String {
        "https://localhost:\(testPort)\(TestService.path(service))"
    }

    /// Makes a token good, once.
    package func addTest(_ token: String, _ test: StandInTest = StandInTest()) {
        change { $0.tests.add(token, test) }
    }

    /// Sets the play of all questions that have no script.
    package func playTests(_ play: StandInPlay) { change { $0.tests.plays.always = play } }

    /// Sets the plays of the next questions.
    package func playNextTests(_ plays: StandInPlay...) { change { $0.tests.plays.next += plays } }
}
