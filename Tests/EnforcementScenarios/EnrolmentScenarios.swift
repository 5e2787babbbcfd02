import AppAttest
import Encodings
import Expectations
import Foundation
import LoopbackKit
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// Who is let in to enrol, when, and what of an enrolment outlasts what.
    @Suite struct Enrolments {
        private static let rules = """
            - id: orders
              match: { path: /v1/orders }
              mode: enforce
              sign: [method, target, body, challenge]
              headers: [idempotency-key]
            - id: bare
              match: { path: /v1/bare }
              mode: observe
            """

        private func configure(
            _ scenario: Scenario,
            _ more: String = "",
            _ origin: RecordingOrigin? = nil
        ) throws {
            try scenario.configure(
                origin: "127.0.0.1:\(origin?.port ?? 1)",
                rules: Self.rules,
                more: more + "\nlog: { access: ./access.log, level: trace }"
            )
        }

        private func wait(_ answer: Answer) -> Int {
            answer.value("Retry-After").flatMap { Int($0) } ?? 0
        }

        // MARK: Admission

        @Test func `the rate is applied before Apple is asked, and told how long it is to last`()
            throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            try configure(scenario, "enrolment: { rate: 1/s, burst: 2 }")
            let gateway = try scenario.serve()
            let keys = (0..<4).map { _ in Scenario.device.makeKey() }
            // From addresses of their own, since each has a share only.
            let clients = (0..<4).map { HTTPClient(port: gateway.port, from: UInt8(10 + $0)) }
            let answers = try zip(keys, clients).map { try gateway.askToEnrol($0, $1) }
            expectEqual(answers.map(\.status), [200, 200, 429, 429])
            for answer in answers.suffix(2) {
                expectEqual(answer.reason, "enrolment-throttled")
                expectEqual(answer.member("next"), "retry-later")
                #expect((1...3).contains(wait(answer)))
                expectEqual(answer.member("challenge"), nil)
                expectEqual(answer.value("App-Attest-Challenge"), nil)
            }
            // Who holds a challenge is not throttled any more.
            for (index, answer) in answers.prefix(2).enumerated() {
                let challenges = try #require(answer.object?["challenges"] as? [String])
                let enrolled = try gateway.enrol(keys[index], clients[3], with: challenges[0])
                expectEqual(enrolled.status, 201)
            }
            let metrics = try Metrics(gateway.adminClient())
            expectEqual(metrics["enrolment_challenges_admitted_total"], 2)
            expectEqual(metrics["enrolments_throttled_total"], 2)
            expectEqual(metrics["enrolments_not_yet_total"], 0)
            try expectEqual(gateway.stop(), 0)
            let log = try String(contentsOfFile: scenario.path("access.log"), encoding: .utf8)
            expectEqual(log.split(separator: "\n").count { $0.contains("enrolment-throttled") }, 2)
        }

        @Test func `one address that takes challenges and never uses them keeps no other out`()
            throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            try configure(scenario, "enrolment: { rate: 1/s, burst: 20 }")
            let gateway = try scenario.serve()
            let greedy = gateway.client()
            let call = Array(#"{"purpose":"enrolment","count":8}"#.utf8)
            var taken = 0
            for _ in 0..<100 {
                let path = "/.well-known/app-attest/challenges"
                let answer = try greedy.send("POST", path, content: call)
                taken += (answer.object?["challenges"] as? [String])?.count ?? 0
            }
            #expect((10...15).contains(taken), "\(taken)")
            for host in UInt8(10)..<15 {
                let client = HTTPClient(port: gateway.port, from: host)
                try expectEqual(gateway.enrol(Scenario.device.makeKey(), client).status, 201)
            }
        }

        @Test func `outside the ramp a key is told to come later, and a reload takes it in`() throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            try configure(scenario, "enrolment: { percent: 0% }")
            let gateway = try scenario.serve()
            let client = gateway.client()
            let key = Scenario.device.makeKey()
            let early = try gateway.askToEnrol(key, client)
            expectEqual(early.status, 429)
            expectEqual(early.reason, "enrolment-not-yet")
            expectEqual(early.member("next"), "retry-later")
            #expect((1_800...3_600).contains(wait(early)))
            try expectEqual(Metrics(gateway.adminClient())["enrolments_not_yet_total"], 1)
            try configure(scenario, "enrolment: { percent: 100% }")
            gateway.child.signal(SIGHUP)
            _ = try gateway.child.wait(for: "reload") { _, complained in
                complained.contains("generation 2") ? true : nil
            }
            try expectEqual(gateway.enrol(key, client).status, 201)
            try expectEqual(gateway.stop(), 0)
        }

        @Test func `a neighbour's bad attestations keep nobody out who holds a challenge`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            try configure(scenario, "limits: { address_failures: 2/m }")
            let gateway = try scenario.serve()
            let client = gateway.client()
            let bad = Scenario.device.makeKey()
            let challenge = try gateway.challenges("enrolment", client)[0]
            var reasons: [String] = []
            for _ in 0..<5 {
                let answer = try gateway.enrol(bad, client, with: challenge, damage: .otherNonce)
                reasons.append(answer.reason)
            }
            // Free they are not.
            expectEqual(reasons.suffix(2), ["address-throttled", "address-throttled"])
            for _ in 0..<5 {
                try expectEqual(gateway.enrol(Scenario.device.makeKey(), client).status, 201)
            }
            try expectEqual(gateway.stop(), 0)
        }

        // MARK: Restarts

        @Test func `an enrolment challenge survives a stop and a crash, an assertion's does not`()
            throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try configure(scenario, "", origin)
            let first = try scenario.serve()
            var keys = (0..<3).map { _ in Scenario.device.makeKey() }
            let client = first.client()
            let given = try (0..<3).map { _ in try first.challenges("enrolment", client)[0] }
            let signed = try first.challenges("assertion", client)[0]
            try expectEqual(first.enrol(keys[0], client, with: given[0]).status, 201)
            try expectEqual(first.stop(), 0)

            let second = try scenario.serve()
            let next = second.client()
            try expectEqual(second.enrol(keys[1], next, with: given[1]).status, 201)
            // The answer may have been lost with the process.
            try expectEqual(second.enrol(keys[0], next, with: given[0]).status, 200)
            let request = SoftwareDevices.request(signed)
            let proof = keys[0].proof(of: request, signing: SoftwareDevices.signing)
            try expectEqual(next.send(request, proof).reason, "challenge-unknown")
            try second.crash()

            let third = try scenario.serve()
            let last = third.client()
            try expectEqual(third.enrol(keys[2], last, with: given[2]).status, 201)
            let other = Scenario.device.makeKey()
            let spent = try third.enrol(other, last, with: given[2])
            expectEqual(spent.reason, "challenge-spent")
            expectEqual(spent.member("next"), "enrol")
            expectEqual(spent.member("challenge"), nil)
            // The counter was not reset by any of it.
            let fresh = SoftwareDevices.request(try third.challenges("assertion", last)[0])
            let good = keys[0].proof(of: fresh, signing: SoftwareDevices.signing)
            try expectEqual(last.send(fresh, good).status, 200)
            try expectEqual(third.stop(), 0)
        }

        @Test func `the store's secret is in no log, no export and no admin page`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            try configure(scenario)
            let gateway = try scenario.serve()
            let client = gateway.client()
            try expectEqual(gateway.enrol(Scenario.device.makeKey(), client).status, 201)
            let admin = try gateway.adminClient()
            let pages = try ["/metrics", "/status", "/readiness"].map {
                try admin.send("GET", $0).text
            }
            try expectEqual(gateway.stop(), 0)
            let mode = try FileManager.default.attributesOfItem(
                atPath: scenario.path("portcullis.db")
            )
            #expect(mode[.posixPermissions] as? Int == 0o600)
            let read = """
                import sqlite3, sys
                row = sqlite3.connect(sys.argv[1]).execute("SELECT secret FROM secrets").fetchone()
                print(row[0].hex())
                """
            guard let python = Scenario.tool("python3") else { return }
            let database = scenario.path("portcullis.db")
            let hex = try scenario.run(python, ["-c", read, database]).printed
                .trimmingCharacters(in: .whitespacesAndNewlines)
            let secret = try #require(Hex.decode(hex))
            expectEqual(secret.count, 32)
            let file = scenario.path("portcullis.yaml")
            let export = try scenario.portcullis("keys", "export", "--config", file)
            let log = try String(contentsOfFile: scenario.path("access.log"), encoding: .utf8)
            let texts = pages + [export.printed, export.complained, gateway.child.complained, log]
            for text in texts {
                #expect(!text.contains(hex) && !text.contains(Base64.text(secret)))
            }
        }

        // MARK: Context

        @Test func `the origin gets the context of a key that has signed, and no client's copy`()
            throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try configure(scenario, "", origin)
            let gateway = try scenario.serve()
            let client = gateway.client()
            var key = Scenario.device.makeKey()
            let context = Array("account 7".utf8)
            try expectEqual(gateway.enrol(key, client, context: context).status, 201)
            let forged: [(name: String, value: String)] = [
                ("App-Attest-Context", "Zm9yZ2Vk"), ("App_Attest_Context", "Zm9yZ2Vk"),
                ("App.Attest.Context", "Zm9yZ2Vk"), ("X-App-Attest-Context", "Zm9yZ2Vk"),
            ]
            let request = SoftwareDevices.request(try gateway.challenges("assertion", client)[0])
            let proof = key.proof(of: request, signing: SoftwareDevices.signing)
            try expectEqual(client.send(request, proof, more: forged).status, 200)
            try expectEqual(client.send("GET", "/v1/bare", forged).status, 200)
            try expectEqual(client.send("GET", "/elsewhere", forged).status, 200)
            let seen = try origin.seen(3).map(\.head)
            expectEqual(seen[0].all("App-Attest-Context"), [Base64.text(context)])
            for head in seen.dropFirst() { #expect(head.all("App-Attest-Context").isEmpty) }
            for head in seen {
                for (name, _) in forged.dropFirst() { #expect(head.all(name).isEmpty, "\(name)") }
            }
            // The store keeps it, and a start reads it.
            let file = scenario.path("portcullis.yaml")
            let shown = try scenario.portcullis(
                "keys",
                "show",
                "--json",
                "--config",
                file,
                key.keyID.base64
            )
            #expect(shown.printed.contains(#""context":"\#(Base64.text(context))""#))
            try expectEqual(gateway.stop(), 0)
            let next = try scenario.serve()
            let again = SoftwareDevices.request(
                try next.challenges("assertion", next.client())[0]
            )
            let signed = key.proof(of: again, signing: SoftwareDevices.signing)
            try expectEqual(next.client().send(again, signed).status, 200)
            let last = try #require(try origin.seen(4).last)
            expectEqual(last.head.all("App-Attest-Context"), [Base64.text(context)])
            try expectEqual(next.stop(), 0)
        }

        // MARK: A fleet

        @Test(.ofApple, .enabled(if: Scenario.loadProgram != nil))
        func `a fleet that enrols faster than it may asks Apple once for each device`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            guard let program = Scenario.loadProgram else { return }
            let prepared = try scenario.run(
                program,
                [
                    "prepare", scenario.path("fleet.json"), "--app-id", Scenario.appID,
                    "--devices", "100", "--keys", scenario.path("keys.jsonl"), "--root",
                    scenario.path("root.pem"),
                ]
            )
            expectEqual(prepared.status, 0, "\(prepared)")
            try configure(scenario, "enrolment: { rate: 40/s, burst: 20 }")
            let gateway = try scenario.serve()
            let result = try scenario.run(
                program,
                [
                    "enrol", scenario.path("fleet.json"), "http://127.0.0.1:\(gateway.port)",
                    "--config", scenario.path("portcullis.yaml"), "--connections", "50",
                ]
            )
            expectEqual(result.status, 0, "\(result)")
            #expect(result.printed.hasPrefix("enrolled: 100, enrolled already: 0\n"), "\(result)")
            #expect(result.printed.hasSuffix(", attestKey calls: 100\n"), "\(result)")
            let metrics = try Metrics(gateway.adminClient())
            expectEqual(metrics["enrolment_challenges_admitted_total"], 100)
            expectEqual(metrics["enrolments_total"], 100)
            // How many depends on how fast the machine is beside all else that it does.
            #expect(metrics["enrolments_throttled_total"] > 0)
            try expectEqual(gateway.stop(), 0)
        }
    }
}
