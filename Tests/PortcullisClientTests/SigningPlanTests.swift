import Expectations
import Foundation
import RequestBinding
import Testing

@testable import PortcullisClient

@Suite struct SigningPlanTests {
    private static let text = """
        {"portcullis_plan":1,"endpoints":"/.well-known/app-attest","rules":[
          {"name":"orders","hosts":["api.example.com"],"methods":["POST"],"paths":["/v1/orders/**"],
           "sign":["method","target","body","challenge"],"form":"lines",
           "headers":["idempotency-key"],"challenge":"required","digest":"held",
           "counter":"strict","accept":["assertion"]},
          {"name":"assets","hosts":["*.example.com"],"methods":["GET","HEAD"],"paths":["/assets/*"],
           "sign":[],"form":"lines","headers":[],"challenge":"none","digest":"none","counter":64,
           "accept":["assertion"]},
          {"name":"chat","hosts":["*"],"methods":["GET","POST"],"paths":["/chat"],
           "sign":["method","target","body"],"form":"lines","headers":[],"challenge":"none",
           "digest":"streamed","counter":64,"accept":["assertion","session","passkey"],
           "device":true,"fields":{"key_id":"X-Key"}},
          {"name":"raw","hosts":["*"],"methods":["POST"],"paths":["/raw"],"sign":["content"],
           "form":"content","headers":[],"challenge":"required","challenge_pointer":"/c",
           "digest":"held","counter":64,"accept":["assertion"]}],
         "unmatched":null}
        """

    private let plan: SigningPlan

    init() throws { plan = try SigningPlan(json: Data(Self.text.utf8)) }

    private func name(_ method: String, _ url: String) throws -> String {
        switch plan.answer(method: method, url: try #require(URL(string: url))) {
        case .rule(let name, _): name
        case .off(let name): "off " + name
        case .unmatched: "unmatched"
        case .silent: "silent"
        }
    }

    @Test(arguments: [
        ("POST", "https://api.example.com/v1/orders", "orders"),
        ("POST", "https://API.example.com./v1/orders/7?a=/b", "orders"),
        ("POST", "https://api.example.com/v1/%6frders/7", "orders"),
        ("POST", "https://api.example.com/v1/orders/", "orders"),
        ("GET", "https://api.example.com/v1/orders", "silent"),
        ("post", "https://api.example.com/v1/orders", "silent"),
        ("POST", "https://www.example.com/v1/orders", "silent"),
        ("HEAD", "https://a.b.example.com:8443/assets/x.png", "off assets"),
        ("GET", "https://example.com/assets/x.png", "silent"),
        ("GET", "https://notexample.com/assets/x.png", "silent"),
        ("GET", "https://a.example.com/assets/", "silent"),
        ("GET", "https://a.example.com/assets/x/y", "silent"),
        ("GET", "https://127.0.0.1/chat", "chat"),
        ("POST", "https://[::1]/raw", "raw"),
    ])
    func `the first rule that matches counts`(method: String, url: String, rule: String) throws {
        try expectEqual(name(method, url), rule)
    }

    @Test func `what a rule asks is read`() throws {
        let orders = try #require(URL(string: "https://api.example.com/v1/orders"))
        let chat = try #require(URL(string: "https://api.example.com/chat"))
        let raw = try #require(URL(string: "https://api.example.com/raw"))
        var streamed = SigningRequirement(
            form: .lines([.method, .target, .body], headers: []),
            challenge: .none,
            accepts: [.assertion, .session],
            needsDeviceToken: true
        )
        streamed.needsContentDigest = true
        streamed.fields = ProofFieldNames(keyID: "X-Key")
        var pointed = SigningRequirement(form: .content)
        pointed.challengePointer = "/c"
        expectEqual(
            plan.answer(method: "POST", url: orders),
            .rule(
                "orders",
                SigningRequirement(
                    form: .lines(.all, headers: ["idempotency-key"]),
                    counter: .strict
                )
            )
        )
        expectEqual(
            plan.answer(method: "GET", url: chat),
            .rule("chat", streamed)
        )
        expectEqual(
            plan.answer(method: "POST", url: raw),
            .rule("raw", pointed)
        )
    }

    @Test func `what no rule matches is asked as the plan says`() throws {
        let text = Self.text.replacingOccurrences(
            of: "\"unmatched\":null",
            with: "\"unmatched\":{\"sign\":[\"method\"],\"challenge\":\"none\"}"
        )
        let plan = try SigningPlan(json: Data(text.utf8))
        let url = try #require(URL(string: "https://elsewhere.example/"))
        // A plan that says no counter is of an older gateway, which had no other.
        let parts = SigningRequirement(
            form: .lines(.method, headers: []),
            challenge: .none,
            counter: .strict
        )
        expectEqual(plan.answer(method: "GET", url: url), .unmatched(parts))
    }

    @Test(arguments: [
        (#"{"portcullis_plan":2,"rules":7}"#, SigningPlanError.version(2)),
        (
            #"{"portcullis_plan":1,"rules":[{"name":"a","sign":["smell"]}]}"#,
            .unknown(rule: "a", value: "smell")
        ),
        (
            #"{"portcullis_plan":1,"rules":[{"name":"a","sign":["body"],"form":"x"}]}"#,
            .unknown(rule: "a", value: "x")
        ),
    ])
    func `a plan that is not understood is refused`(text: String, error: SigningPlanError) {
        #expect(throws: error) { try SigningPlan(json: Data(text.utf8)) }
    }

    @Test func `a text that is no plan is refused`() {
        #expect(throws: SigningPlanError.self) { try SigningPlan(json: Data("[]".utf8)) }
        #expect(throws: SigningPlanError.self) { try SigningPlan(json: Data()) }
    }
}
