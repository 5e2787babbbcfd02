import AppAttest
import Cryptography
import Expectations
import Foundation
import LoopbackKit
import RequestBinding
import Rules
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// Apple's risk metric in rules.
    @Suite(.ofApple) struct Risk {
        private static func rules(_ risk: String) -> String {
            """
            - id: limited
              match: { path: /v1/limited }
              mode: enforce
              risk: \(risk)
            - id: bare
              match: { path: /v1/bare }
              mode: enforce
            """
        }

        private static let signing = SigningForm.lines(.all, headers: [])

        /// Stores keys of devices with this metric.
        private func imported(
            _ count: Int,
            metric: String,
            _ scenario: Scenario
        ) throws -> [SoftwareKey] {
            let keys = (0..<count).map { _ in Scenario.device.makeKey() }
            let now = UnixTime(seconds: Int64(Date().timeIntervalSince1970)).iso8601
            let lines = keys.map { key in
                String(key.importLine(as: .test).dropLast())
                    + #", "receipt": "AQ==", "risk_metric": \#(metric), "#
                    + #""risk_metric_at": "\#(now)"}"# + "\n"
            }
            try scenario.write("keys.jsonl", lines.joined())
            let result = try scenario.portcullis(
                "keys",
                "import",
                "--config",
                scenario.path("portcullis.yaml"),
                scenario.path("keys.jsonl")
            )
            expectEqual(result.status, 0, "\(result)")
            return keys
        }

        private func send(
            _ key: inout SoftwareKey,
            _ gateway: GatewayProcess,
            _ client: HTTPClient,
            to path: String = "/v1/limited",
            more: [(name: String, value: String)] = []
        ) throws -> Answer {
            let request = SoftwareKey.Request(
                method: "GET",
                target: path,
                challenge: try gateway.challenges("assertion", client)[0]
            )
            let proof = key.proof(of: request, signing: Self.signing)
            return try client.send(request, proof, more: more)
        }

        @Test func `the origin is told the metric and the mark, and no client's copy`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules("{ max: 8 }"))
            var low = try imported(1, metric: "8", scenario)[0]
            var high = try imported(1, metric: "9", scenario)[0]
            var unknown = try scenario.imported()[0]
            let gateway = try scenario.serve()
            let client = gateway.client()
            let forged: [(name: String, value: String)] = [
                ("App-Attest-Risk", "0"), ("App_Attest_Risk", "0"), ("App.Attest.Risk", "0"),
                ("X-App-Attest-Risk", "0"),
            ]
            try expectEqual(send(&low, gateway, client, more: forged).status, 200)
            try expectEqual(send(&high, gateway, client, more: forged).status, 200)
            try expectEqual(send(&unknown, gateway, client, more: forged).status, 200)
            try expectEqual(send(&high, gateway, client, to: "/v1/bare", more: forged).status, 200)
            try expectEqual(client.send("GET", "/elsewhere", forged).status, 200)
            let seen = try origin.seen(5).map(\.head)
            let told = seen.map { $0.all("App-Attest-Risk") }
            expectEqual(told, [["8"], ["9;mark=risk-exceeded"], ["unknown"], [], []])
            for head in seen {
                for (name, _) in forged.dropFirst() { #expect(head.all(name).isEmpty, "\(name)") }
            }
            expectEqual(seen[1].all("App-Attest-Verdict"), ["pass"])
            try expectEqual(Metrics(gateway.adminClient())["risk_marks_total"], 1)
            let shown = try scenario.portcullis(
                "keys",
                "list",
                "--risk",
                "9",
                "--config",
                scenario.path("portcullis.yaml")
            )
            expectEqual(shown.printed.split(separator: "\n").count, 1)
            #expect(shown.printed.hasPrefix(high.keyID.base64))
            #expect(shown.printed.contains("\t9\t"))
        }

        @Test func `a limit is ramped from mark to a quarter of the keys by a reload`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules("{ max: 8 }"))
            var keys = try imported(40, metric: "20", scenario)
            let gateway = try scenario.serve()
            let client = gateway.client()
            for index in keys.indices {
                try expectEqual(send(&keys[index], gateway, client).status, 200)
            }
            try scenario.configure(
                origin,
                rules: Self.rules("{ max: 8, action: refuse, rollout: { percent: 25% } }")
            )
            gateway.child.signal(SIGHUP)
            _ = try gateway.child.wait(for: "a reload") { _, complained in
                complained.contains("generation 2") ? true : nil
            }
            let share = try #require(Share(percent: "25%"))
            let rollout = Rollout(.fixed(share), salt: "limited/risk")
            var refused = 0
            for index in keys.indices {
                let answer = try send(&keys[index], gateway, client)
                let bytes = keys[index].keyID.digest.bytes
                let isIn = rollout.enforces(bytes.span, at: UnixTime(seconds: 0))
                expectEqual(answer.status, isIn ? 403 : 200)
                if isIn {
                    refused += 1
                    expectEqual(answer.member("reason"), "risk-exceeded")
                }
                // The rule without a limit takes them all.
                try expectEqual(send(&keys[index], gateway, client, to: "/v1/bare").status, 200)
            }
            #expect((1..<40).contains(refused))
            let metrics = try Metrics(gateway.adminClient())
            expectEqual(metrics["risk_marks_total"], Double(80 - refused))
        }
    }
}
