import AppAttest
import Expectations
import Foundation
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// Whose keys pass where: apps, hosts, and what no rule is for.
    @Suite(.overEachClient) struct Admissions {
        private static var apps: String {
            """
              - { id: TEAM123456.com.example.live, environments: [production] }
              - \(Scenario.app)
            """
        }
        private static let request = SoftwareKey.Request(method: "GET", target: "/v1/orders")
        private static let signing = SigningForm.lines([.method, .target], headers: [])

        private func serve(
            _ scenario: Scenario,
            _ origin: RecordingOrigin,
            _ rules: String
        ) throws -> (GatewayProcess, SoftwareKey) {
            try scenario.configure(
                origin: "127.0.0.1:\(origin.port)",
                apps: Self.apps,
                rules: rules
            )
            let key = try scenario.imported()[0]
            return (try scenario.serve(), key)
        }

        @Test func `a test app beside production apps passes no rule that does not name it`() throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            var (gateway, key) = try serve(
                scenario,
                origin,
                """
                - id: orders
                  match: { path: /v1/orders }
                  mode: enforce
                  sign: [method, target]
                """
            )
            let answer = try gateway.client()
                .send(Self.request, key.proof(of: Self.request, signing: Self.signing))
            expectEqual(answer.status, 403)
            expectEqual(answer.reason, "app-mismatch")
            #expect(origin.seen.isEmpty)
            let line = try gateway.line(about: "/v1/orders")
            #expect(line["app"] as? String == Scenario.appID)
            #expect(line["environment"] as? String == "test")
        }

        @Test func `keys of an app pass the rules that name it, also after a reload`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            let rules = """
                - id: orders
                  match: { path: /v1/orders }
                  mode: enforce
                  sign: [method, target]
                  apps: [\(Scenario.appID)]
                """
            var (gateway, key) = try serve(scenario, origin, rules)
            let client = gateway.client()
            func send() throws -> Answer {
                try client.send(Self.request, key.proof(of: Self.request, signing: Self.signing))
            }
            try expectEqual(send().status, 200)
            try scenario.configure(
                origin: "127.0.0.1:\(origin.port)",
                apps: Self.apps,
                rules: rules.replacing(Scenario.appID, with: "TEAM123456.com.example.live")
            )
            gateway.child.signal(SIGHUP)
            _ = try gateway.child.wait(for: "reload") { _, complained in
                complained.contains("generation 2") ? true : nil
            }
            try expectEqual(send().reason, "app-mismatch")
        }

        @Test func `an assertion for one host is refused at another where the host is signed`()
            throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            let rules = ["a", "b"].map { host in
                """
                - id: \(host)
                  match: { host: \(host).example }
                  mode: enforce
                  sign: [method, target]
                  headers: [host]
                  apps: [\(Scenario.appID)]
                """
            }
            var (gateway, key) = try serve(scenario, origin, rules.joined(separator: "\n"))
            let client = gateway.client()
            func send(signed: String, sent: String) throws -> Answer {
                let request = SoftwareKey.Request(
                    method: "GET",
                    target: "/v1/orders",
                    fields: ["host": signed]
                )
                let form = SigningForm.lines([.method, .target], headers: ["host"])
                let proof = key.proof(of: request, signing: form)
                let lines = proof.fields.map { "\($0.name): \($0.value)\r\n" }.joined()
                let head = "GET /v1/orders HTTP/1.1\r\nHost: \(sent)\r\n\(lines)\r\n"
                return try client.send(raw: Array(head.utf8))
            }
            try expectEqual(send(signed: "a.example", sent: "a.example").status, 200)
            // It is the value that the client sends, not the name that the rule has.
            try expectEqual(send(signed: "B.Example:443", sent: "B.Example:443").status, 200)
            for sent in ["b.example", "a.example:443", "A.example"] {
                try expectEqual(send(signed: "a.example", sent: sent).reason, "signature-mismatch")
            }
            let hosts = try origin.seen(2).map { $0.head.value("host") }
            expectEqual(hosts, ["a.example", "B.Example:443"])
        }

        @Test func `a denial is counted and logged, and costs no verification`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            let rules = """
                - id: closed
                  match: { path: /v1/orders }
                  mode: deny
                """
            var (gateway, key) = try serve(scenario, origin, rules)
            let answer = try gateway.client()
                .send(Self.request, key.proof(of: Self.request, signing: Self.signing))
            expectEqual(answer.status, 404)
            expectEqual(answer.reason, "no-rule")
            expectEqual(answer.member("next"), "fix-client")
            #expect(origin.seen.isEmpty)
            let line = try gateway.line(about: "/v1/orders")
            #expect(line["rule"] as? String == "closed")
            #expect(line["mode"] as? String == "deny")
            #expect(line["verdict"] as? String == "refuse")
            #expect(line["reason"] as? String == "no-rule")
            #expect(line["enforced"] as? Bool == true)
            #expect(line["origin"] == nil)
            let admin = try gateway.adminClient()
            let page = try admin.send("GET", "/metrics").text
            let counted = page.split(separator: "\n").filter { $0.contains("\"no-rule\"") }
            #expect(counted.count == 1 && counted.allSatisfy { $0.hasSuffix(" 1") }, "\(counted)")
            try expectEqual(Metrics(admin)["verifications_total"], 0)
        }

        @Test func `a key is revoked while somebody edits the rules`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: "[]")
            let key = try scenario.imported()[0]
            let file = scenario.path("portcullis.yaml")
            let text = try String(contentsOfFile: file, encoding: .utf8)
            try FileManager.default.createDirectory(
                atPath: scenario.path("rules"),
                withIntermediateDirectories: false
            )
            try scenario.write("rules/10.yaml", "- { id: half a rule")
            try scenario.write(
                "portcullis.yaml",
                text.replacing("rules:\n  []", with: "rules: rules")
            )
            try expectEqual(scenario.portcullis("check", file).status, 1)
            let revoked = try scenario.portcullis(
                "keys",
                "revoke",
                "--config",
                file,
                key.keyID.base64
            )
            expectEqual(revoked.status, 0, "\(revoked)")
        }
    }
}
