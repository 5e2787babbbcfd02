import AppAttest
import Expectations
import Foundation
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import TestSupport
import Testing

extension Scenarios {
    /// `portcullis why`, beside a running gateway and without one.
    @Suite struct Whys {
        private static let signing = SigningForm.lines([.method, .target], headers: [])
        private static let rules = """
            - id: orders
              match: { path: /v1/orders }
              mode: enforce
              sign: [method, target]
            - id: watched
              match: { path: /v1/watched }
              mode: observe
              sign: [method, target]
            """

        /// A gateway whose admin listener is a Unix socket, and what asks it why.
        private func configured(
            _ scenario: Scenario,
            more: String = "",
            listeners: String = ""
        ) throws {
            try scenario.configure(
                origin: try scenario.origin().address,
                rules: Self.rules,
                more: more,
                listeners: listeners
            )
            let file = scenario.path("portcullis.yaml")
            let text = try String(contentsOfFile: file, encoding: .utf8)
            let socket = "unix:\(scenario.path("admin.sock"))"
            try scenario.write(
                "portcullis.yaml",
                text.replacing(
                    "admin: { address: 127.0.0.1:0 }",
                    with: "admin: { address: \"\(socket)\" }"
                )
            )
        }

        private func why(_ scenario: Scenario, _ words: String...) throws -> Scenario.Result {
            let file = scenario.path("portcullis.yaml")
            return try scenario.portcullis(["why", "--config", file] + words)
        }

        @Test func `why says what was asked, found and missed, by id and by key`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            try configured(scenario)
            var key = try scenario.imported()[0]
            #expect(try why(scenario, "abcd").complained.contains("no gateway answers at unix:"))
            let gateway = try scenario.serve()
            let client = gateway.client()
            let refused = try client.send("POST", "/v1/orders?secret=1", content: [1])
            let id = try #require(refused.member("request_id"))
            let told = try why(scenario, id)
            expectEqual(told.status, 0)
            let lines = told.printed.split(separator: "\n").map(String.init)
            #expect(lines[0].hasSuffix(" assertion-missing: The request carries no assertion."))
            expectEqual(
                Array(lines.dropFirst()),
                [
                    "  asked   POST api.example.com /v1/orders",
                    "          by 127.0.0.1, request id \(id)",
                    "  rule    orders, enforce", "  found   no key is named", "  answer  401",
                    "  client  signs the request again, with the challenge of the answer",
                ]
            )
            // By key: a signature that covers another request.
            let challenge = try #require(refused.member("challenge"))
            var request = SoftwareKey.Request(
                method: "GET",
                target: "/v1/orders?n=1",
                challenge: challenge
            )
            let proof = key.proof(of: request, signing: Self.signing)
            request.target = "/v1/orders?n=2"
            try expectEqual(client.send(request, proof).reason, "signature-mismatch")
            for name in [key.keyID.base64, key.keyID.logName] {
                let told = try why(scenario, name).printed
                #expect(told.contains(" signature-mismatch: "))
                #expect(
                    told.contains(
                        "key \(key.keyID.logName), \(Scenario.appID), test; it is not shown"
                    )
                )
                #expect(!told.contains(key.keyID.base64) && !told.contains("secret"))
            }
            let json = try why(scenario, id, "--json").printed
            let object = try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any]
            let notes = try #require(object?["refusals"] as? [[String: Any]])
            #expect(notes.first?["reason"] as? String == "assertion-missing")
            #expect(notes.first?["next"] as? String == "sign-again")
            let unknown = try why(scenario, "nobody")
            expectEqual(unknown.status, 1)
            #expect(unknown.complained.contains("no refusal of this name is remembered"))
        }

        @Test func `what is only observed is told, without an access log and after a reload`()
            throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            try configured(scenario, more: "log: { access: off }")
            let gateway = try scenario.serve()
            let stranger = Scenario.device.makeKey()
            let fields = [(name: "App-Attest-Key-Id", value: stranger.keyID.base64)]
            let answer = try gateway.client().send("GET", "/v1/watched", fields)
            expectEqual(answer.status, 200)
            gateway.child.signal(SIGHUP)
            _ = try gateway.child.wait(for: "reload") { _, complained in
                complained.contains("generation 2") ? true : nil
            }
            let told = try why(scenario, stranger.keyID.logName).printed
            #expect(told.contains("  asked   GET api.example.com /v1/watched\n"))
            #expect(told.contains("key \(stranger.keyID.logName), not known"))
            #expect(told.contains("  answer  none of the gateway's: forwarded, since"))
        }

        @Test func `what is refused before a rule is found is told without an access log, too`()
            throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            try configured(
                scenario,
                more: """
                    log: { access: off }
                    limits: { address_requests: 1/s, address_burst: 1 }
                    """
            )
            let gateway = try scenario.serve()
            let client = gateway.client()
            // The first request takes the token of the address; what is no JSON enrols no key.
            let path = "/.well-known/app-attest/keys"
            let refused = try client.send("POST", path, content: [1])
            expectEqual(refused.reason, "request-malformed")
            var throttled = try client.send("GET", "/v1/orders")
            // On a busy machine the address may have its next token meanwhile.
            try eventually {
                if throttled.reason == "address-throttled" { return true }
                throttled = try client.send("GET", "/v1/orders")
                return throttled.reason == "address-throttled"
            }
            expectEqual(throttled.reason, "address-throttled")
            for (answer, asked) in [(refused, "POST"), (throttled, "GET")] {
                let id = try #require(answer.member("request_id"))
                let told = try why(scenario, id).printed
                #expect(told.contains("  asked   \(asked) api.example.com /"), "\(told)")
            }
        }

        @Test func `what is only observed of a request that a proxy asks about is told`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            try ClientSide.inTheClear {
                try configured(
                    scenario,
                    more: "trusted_proxies: [127.0.0.1/32]",
                    listeners: "  - { address: 127.0.0.1:0, decides: ext_authz }"
                )
            }
            let gateway = try ClientSide.inTheClear { try scenario.serve() }
            let proxy = HTTPClient(port: try gateway.port(ofListener: 2))
            let stranger = Scenario.device.makeKey()
            let fields = [(name: "App-Attest-Key-Id", value: stranger.keyID.base64)]
            try expectEqual(proxy.send("GET", "/v1/watched", fields).status, 200)
            let told = try why(scenario, stranger.keyID.logName).printed
            #expect(told.contains("  asked   GET api.example.com /v1/watched\n"), "\(told)")
            #expect(told.contains("  answer  none of the gateway's: forwarded, since"), "\(told)")
        }
    }
}
