import AppleStandIn
import Expectations
import Foundation
import LoopbackKit
import Parties
import SoftwareAuthenticator
import TestSupport
import Testing

extension Scenarios {
    /// Requests with a token of a test for people.
    @Suite(.enabled(if: Scenario.isPossible)) struct TestsForPeople {
        @Test func `each service is asked once about a token, in its own form`() throws {
            let stand = try PeopleStand()
            defer { stand.end() }
            for service in PeopleStand.services {
                let token = stand.token()
                let answer = try stand.send(service.rawValue, token)
                expectEqual(answer.status, 200, "\(service) \(answer.text)")
                let call = try #require(stand.tests.testCalls.last)
                #expect(call.service == service && call.method == "POST" && call.status == 200)
                expectEqual(call.token, token)
                #expect(call.address == nil && call.cookie == nil)
                // The second time it costs no call.
                let again = try stand.send(service.rawValue, token)
                #expect(again.status == 401 && again.reason == "proof-spent")
            }
            expectEqual(stand.tests.testCalls.count, PeopleStand.services.count)
            let seen = try stand.origin.seen(PeopleStand.services.count)
            expectEqual(
                seen.map { $0.head.value("App-Attest-Proof") },
                PeopleStand.services.map(\.rawValue)
            )
        }

        @Test func `a token of another site, another action or a low score is refused`() throws {
            let stand = try PeopleStand()
            defer { stand.end() }
            for service in PeopleStand.services.map(\.rawValue) {
                for test in [
                    StandInTest(hostname: "localhost.evil.test"), StandInTest(hostname: ""),
                    StandInTest(action: "login"), StandInTest(action: ""),
                    StandInTest(score: 0.4),
                ] {
                    let answer = try stand.send(service, stand.token(test))
                    #expect(answer.status == 403 && answer.reason == "proof-refused", "\(test)")
                }
                let unknown = try stand.send(service, "no-such-token")
                #expect(unknown.status == 401 && unknown.reason == "proof-invalid")
                let missing = try stand.send(service, nil)
                #expect(missing.status == 401 && missing.reason == "proof-missing")
            }
            #expect(stand.origin.seen.isEmpty)
        }

        /// 52 calls a second were paid for tokens of another site from one address.
        @Test func `calls that were paid in vain count against the address`() throws {
            let stand = try PeopleStand(limits: "{ address_failures: 3/m }")
            defer { stand.end() }
            for test in [
                StandInTest(hostname: "localhost.evil.test"), StandInTest(action: "login"),
                StandInTest(score: 0.1),
            ] {
                let answer = try stand.send("turnstile", stand.token(test))
                #expect(answer.status == 403 && answer.reason == "proof-refused")
            }
            expectEqual(stand.tests.testCalls.count, 3)
            for service in ["turnstile", "lenient", "hcaptcha"] {
                let answer = try stand.send(service, stand.token())
                #expect(answer.status == 429 && answer.reason == "proof-throttled")
                #expect(answer.value("Retry-After") != nil)
            }
            expectEqual(stand.tests.testCalls.count, 3)
            try expectEqual(stand.send("turnstile", nil).reason, "proof-missing")
        }

        @Test func `what no service has made costs no call`() throws {
            let stand = try PeopleStand()
            defer { stand.end() }
            let long = String(repeating: "a", count: 8_193)
            for token in ["a b", "a&secret=x", "a%26b", "\"", "<a>", "' OR 1=1", long] {
                let answer = try stand.send("turnstile", token)
                #expect(answer.status == 400 && answer.reason == "proof-malformed", "\(token)")
            }
            let token = stand.token()
            let twice = try stand.client.send(
                "POST",
                "/v1/turnstile",
                [(PeopleStand.field, token), (PeopleStand.field, token)]
            )
            #expect(twice.status == 400 && twice.reason == "proof-malformed")
            #expect(stand.tests.testCalls.isEmpty && stand.origin.seen.isEmpty)
        }

        @Test func `of many requests with one token, at two gateways, one is forwarded`() throws {
            let stand = try PeopleStand()
            defer { stand.end() }
            let token = stand.token()
            stand.tests.playNextTests(.slow(milliseconds: 300))
            let wires = try (0..<8).map { _ in try stand.begin("turnstile", token) }
            #expect(stand.awaitCalls(1))
            let other = try stand.send("turnstile", token, on: stand.otherClient)
            let answers = try wires.map { try $0.readFinalResponse(to: "POST") } + [other]
            expectEqual(answers.count { $0.status == 200 }, 1)
            expectEqual(answers.count { $0.status == 401 && $0.reason == "proof-spent" }, 8)
            try expectEqual(stand.origin.seen(1).count, 1)
            expectEqual(stand.tests.testCalls.count, 2)
        }

        private static let answersInAnotherForm: [StandInPlay] = [
            .status(200, body: #"{"success": "true", "hostname": "localhost"}"#),
            .status(200, body: #"{"success": true, "success": true}"#),
            .status(200, body: "<html>"), .status(200), .status(204),
            .redirect(to: "https://localhost/turnstile"), .status(403), .status(404), .status(500),
            .garbage, .cut, .long(bytes: 10 << 20), .drip(milliseconds: 100), .hang,
            .status(200, body: #"{"success": false, "error-codes": ["invalid-input-secret"]}"#),
        ]

        @Test func `an answer in another form is believed in nothing, and on_error decides`() throws
        {
            // A good call has to come within this on a busy machine, too.
            let stand = try PeopleStand(", timeout: 6s")
            defer { stand.end() }
            let rules = [("turnstile", 503), ("lenient", 200)]
            for play in Self.answersInAnotherForm {
                // The breaker opens after five failures; a good call between closes it again.
                for (rule, _) in rules {
                    try expectEqual(stand.send(rule, stand.token()).status, 200)
                }
                let before = stand.tests.testCalls.count
                stand.tests.playNextTests(play, play)
                let begin = ContinuousClock.now
                // Both at once: some answers take all of the time that a call has.
                let calls = rules.map { rule, _ in
                    let (client, token) = (HTTPClient(port: stand.port), stand.token())
                    return Thread.Answer { try stand.send(rule, token, on: client) }
                }
                for ((_, status), call) in zip(rules, calls) {
                    let answer = try call.value()
                    expectEqual(answer.status, status, "\(play) \(answer.text)")
                    expectEqual(answer.reason, status == 200 ? "" : "proof-unavailable", "\(play)")
                }
                #expect(ContinuousClock.now - begin < .seconds(20), "\(play)")
                // Nothing was followed or repeated.
                expectEqual(stand.tests.testCalls.count, before + 2, "\(play)")
            }
        }

        /// Otherwise a client could choose a token for which the rule forwards.
        @Test func `what a token can cause refuses it also where on_error forwards`() throws {
            let stand = try PeopleStand()
            defer { stand.end() }
            let codes = [
                "invalid-input-response", "timeout-or-duplicate", "bad-request", "new-code",
                "sitekey-secret-mismatch",
            ]
            let plays =
                codes.map {
                    StandInPlay.status(200, body: #"{"success": false, "error-codes": ["\#($0)"]}"#)
                } + [400, 413, 414, 422].map { .status($0) }
            for play in plays {
                stand.tests.playNextTests(play)
                try expectEqual(stand.send("lenient", stand.token()).status, 401, "\(play)")
            }
            for test in [StandInTest(hostname: "evil.test"), StandInTest(score: 0.1)] {
                try expectEqual(stand.send("lenient", stand.token(test)).status, 403)
            }
            try expectEqual(stand.send("lenient", "a&b").status, 400)
            #expect(stand.origin.seen.isEmpty)
        }

        @Test func `beside a signature both are asked for, and a bad signature costs no call`()
            throws
        {
            let stand = try PeopleStand()
            defer { stand.end() }
            var key = Scenario.device.makeKey()
            try expectEqual(stand.server.enrol(key, stand.client).status, 201)
            func send(_ key: inout SoftwareKey, _ token: String?) throws -> Answer {
                let request = SoftwareKey.Request(
                    method: "POST",
                    target: "/v1/both",
                    content: Array("order".utf8)
                )
                let proof = key.proof(of: request, signing: DeviceStand.parts)
                let fields = token.map { [(name: PeopleStand.field, value: $0)] } ?? []
                return try stand.client.send(request, proof, more: fields)
            }
            var stranger = Scenario.device.makeKey()
            let reasons = try [
                send(&key, nil).reason, send(&stranger, stand.token()).reason,
            ]
            expectEqual(reasons, ["proof-missing", "key-unknown"])
            #expect(stand.tests.testCalls.isEmpty)
            let status = try send(&key, stand.token()).status
            expectEqual(status, 200)
            let taken = try stand.origin.seen(1)[0].head.value("App-Attest-Proof")
            expectEqual(taken, "assertion, turnstile")
            expectEqual(stand.tests.testCalls.count, 1)
        }

        /// How long verified requests take, one after the other: sorted.
        private func times(_ stand: PeopleStand, _ key: inout SoftwareKey) throws -> [Duration] {
            try (0..<200).map { _ in
                let request = SoftwareKey.Request(
                    method: "POST",
                    target: "/v1/plain",
                    content: Array("order".utf8)
                )
                let proof = key.proof(of: request, signing: DeviceStand.parts)
                let begin = ContinuousClock.now
                let status = try stand.client.send(request, proof).status
                expectEqual(status, 200)
                return ContinuousClock.now - begin
            }.sorted()
        }

        private func row(_ name: String, _ times: [Duration]) -> String {
            let columns = [times.count / 2, times.count * 99 / 100].map { place in
                let micros = times[place] / .microseconds(1)
                return String(format: "%9.2f ms", micros / 1_000)
            }
            return name + columns.joined() + "\n"
        }

        @Test func `while the service hangs, p99 of other requests stays`() throws {
            let stand = try PeopleStand(", timeout: 30s")
            defer { stand.end() }
            var key = Scenario.device.makeKey()
            try expectEqual(stand.server.enrol(key, stand.client).status, 201)
            _ = try times(stand, &key)
            let before = try times(stand, &key)
            stand.tests.playTests(.hang)
            // Eight calls are under way, and those of other addresses wait.
            var wires: [Wire] = []
            for host in 2...5 as ClosedRange<UInt8> {
                for _ in 0..<16 {
                    wires.append(try stand.begin("turnstile", stand.token(), from: host))
                }
            }
            #expect(stand.awaitCalls(8))
            let during = try times(stand, &key)
            print(
                "verified requests          p50         p99\n"
                    + row("the service answers", before) + row("the service hangs  ", during)
            )
            // A machine with other work to do may be slow as well, so the bound is far from what
            // is printed, and far below what a wait would make.
            #expect(during[198] <= before[198] * 10 + .seconds(1))
            let metrics = try stand.metrics()
            #expect(metrics.contains(#"proof_calls_under_way{proof="turnstile"} 8"#))
            #expect(metrics.contains(#"proof_calls_waiting{proof="turnstile"} 56"#))
            // A client has sixteen tokens at most that are being checked.
            let client = HTTPClient(port: stand.port, from: 2)
            let answer = try stand.send("turnstile", stand.token(), on: client)
            #expect(answer.status == 429 && answer.reason == "proof-throttled")
            expectEqual(stand.tests.testCalls.count, 8)
            expectEqual(wires.count, 64)
        }

        @Test func `a service that fails is left alone, and works again`() throws {
            let stand = try PeopleStand()
            defer { stand.end() }
            stand.tests.playTests(.status(500))
            let begin = ContinuousClock.now
            for _ in 0..<5 {
                try expectEqual(stand.send("turnstile", stand.token()).status, 503)
                try expectEqual(stand.send("lenient", stand.token()).status, 200)
            }
            let calls = stand.tests.testCalls.count
            expectEqual(calls, 10)
            let open = #"proof_breaker{proof="turnstile",state="open"} 1"#
            #expect(try stand.metrics().contains(open))
            try expectEqual(stand.send("turnstile", stand.token()).reason, "proof-unavailable")
            try expectEqual(stand.send("lenient", stand.token()).status, 200)
            // The pause is at least a second long. A machine with other work to do may need longer.
            let elapsed = ContinuousClock.now - begin
            #expect(stand.tests.testCalls.count == calls || elapsed > .seconds(1))
            // The other services are none of its business.
            stand.tests.playTests(.proper)
            try expectEqual(stand.send("hcaptcha", stand.token()).status, 200)
            #expect(try eventually { try stand.send("turnstile", stand.token()).status == 200 })
        }

        @Test func `a secret that the service does not accept is mended by a reload`() throws {
            let stand = try PeopleStand()
            defer { stand.end() }
            try PeopleStand.writeSecret(stand.scenario, "another\n")
            try stand.reload()
            for service in PeopleStand.services.map(\.rawValue) {
                try expectEqual(stand.send(service, stand.token()).reason, "proof-unavailable")
            }
            let refused = #"proof_verdicts_total{proof="turnstile",verdict="secret-refused"} 1"#
            #expect(try stand.metrics().contains(refused))
            try PeopleStand.writeSecret(stand.scenario, StandInServer.testSecret + "\n")
            try stand.reload()
            for service in PeopleStand.services.map(\.rawValue) {
                try expectEqual(stand.send(service, stand.token()).status, 200)
            }
        }

        @Test func `the doctor asks each service, and finds a secret that is not accepted`() throws
        {
            let stand = try PeopleStand()
            defer { stand.end() }
            let doctor = ["doctor", stand.scenario.path("portcullis.yaml")]
            let well = try stand.scenario.portcullis(doctor).printed
            for service in PeopleStand.services.map(\.rawValue) {
                #expect(well.contains("\(service): \(service) answers, and accepts the secret"))
            }
            try PeopleStand.writeSecret(stand.scenario, "another\n")
            let ill = try stand.scenario.portcullis(doctor)
            expectEqual(ill.status, 1)
            #expect(ill.printed.contains("turnstile: turnstile can't be asked: secret-refused"))
            // A secret for tests takes every token.
            try PeopleStand.writeSecret(stand.scenario, StandInServer.testSecret)
            let body = #"{"success": true, "hostname": "localhost", "action": "order", "score": 1}"#
            stand.tests.playTests(.status(200, body: body))
            let open = try stand.scenario.portcullis(doctor).printed
            #expect(open.contains("turnstile takes a token that it has not made"))
        }
    }
}
