import AppAttest
import Cryptography
import Expectations
import Foundation
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// Sessions: opened with one assertion, then one code for each request.
    @Suite(.overEachClient) struct Sessions {
        static let target = "/.well-known/app-attest/sessions"
        static let signing = SigningForm.lines(.all, headers: [])

        static let rules = """
            - id: chatty
              match: { path: /v1/chat/** }
              mode: enforce
              accept: [assertion, session]
              sign: [method, target, body, challenge]
            - id: unchallenged
              match: { path: /v1/unchallenged }
              mode: enforce
              accept: [assertion, session]
              sign: [method, target, body]
              headers: [idempotency-key]
              body: { digest: streamed }
            - id: observed
              match: { path: /v1/observed }
              mode: observe
              accept: [assertion, session]
              sign: [method, target, body, challenge]
            - id: money
              match: { path: /v1/money }
              mode: enforce
              sign: [method, target, body, challenge]
            - id: open
              match: { path: /v1/open }
              mode: off
            """

        /// A gateway with these rules, its origin and a key.
        private final class Stage {
            let scenario: Scenario
            let origin: RecordingOrigin
            private(set) var gateway: GatewayProcess
            private(set) var client: HTTPClient
            var key: SoftwareKey

            init(more: String = "") throws {
                scenario = try Scenario()
                origin = try scenario.origin()
                try scenario.configure(origin, rules: Sessions.rules, more: more)
                key = try scenario.imported()[0]
                gateway = try scenario.serve()
                client = gateway.client()
            }

            func end() { scenario.end() }

            /// Starts the gateway anew on the same store.
            func restart() throws {
                try expectEqual(gateway.stop(), 0)
                gateway = try scenario.serve()
                client = gateway.client()
            }

            func ask(fields: [(name: String, value: String)] = []) throws -> Answer {
                let request = SoftwareKey.Request(
                    method: "POST",
                    target: Sessions.target,
                    challenge: try gateway.challenges("assertion", client)[0]
                )
                return try client.send(
                    request,
                    key.proof(of: request, signing: Sessions.signing),
                    more: fields
                )
            }

            func openSession() throws -> SoftwareSession {
                let answer = try ask()
                guard let session = SoftwareSession(answer: answer.body) else {
                    throw ChildProcess.Failure(description: "\(answer.status) \(answer.text)")
                }
                return session
            }

            /// Sends a request that is signed with the session's next number.
            func send(
                _ session: inout SoftwareSession,
                _ path: String = "/v1/chat/1",
                method: String = "POST",
                content: String = "hello",
                signing: SigningForm = Sessions.signing,
                fields: [String: String] = [:],
                more: [(name: String, value: String)] = []
            ) throws -> Answer {
                let request = SoftwareKey.Request(
                    method: method,
                    target: path,
                    content: Array(content.utf8),
                    fields: fields
                )
                guard let proof = session.proof(of: request, signing: signing) else {
                    throw ChildProcess.Failure(description: "no proof")
                }
                return try send(request, proof, more: more)
            }

            func send(
                _ request: SoftwareKey.Request,
                _ proof: SessionProof,
                more: [(name: String, value: String)] = []
            ) throws -> Answer {
                try client.send(
                    request.method,
                    request.target,
                    proof.fields + request.fields.map { ($0.key, $0.value) } + more,
                    content: request.content.isEmpty ? nil : request.content
                )
            }
        }

        @Test
        func `a session is opened with an assertion, and its requests reach the origin as proven`()
            throws
        {
            let stage = try Stage()
            defer { stage.end() }
            let opened = try stage.ask()
            expectEqual(opened.status, 201)
            expectEqual(opened.value("Cache-Control"), "no-store")
            expectEqual(opened.value("App-Attest-Challenge")?.isEmpty, false)
            #expect(opened.object?["expires_in"] as? Int == 600)
            #expect(opened.object?["window"] as? Int == 256)
            var session = try #require(SoftwareSession(answer: opened.body))
            expectEqual(session.secret.count, 32)
            for content in ["hello", "", String(repeating: "x", count: 100_000)] {
                try expectEqual(stage.send(&session, content: content).status, 200)
            }
            let lines = SigningForm.lines(
                [.method, .target, .body],
                headers: ["idempotency-key"]
            )
            let streamed = try stage.send(
                &session,
                "/v1/unchallenged",
                signing: lines,
                fields: ["idempotency-key": "7"]
            )
            expectEqual(streamed.status, 200)
            for seen in try stage.origin.seen(4) {
                expectEqual(seen.head.all("App-Attest-Verdict"), ["pass"])
                expectEqual(seen.head.all("App-Attest-Proof"), ["session"])
                expectEqual(seen.head.all("App-Attest-Key-Id"), [stage.key.keyID.base64])
                expectEqual(seen.head.all("App-Attest-App-Id"), [Scenario.appID])
                for name in ["Session", "Sequence", "Signature"] {
                    #expect(seen.head.all("App-Attest-\(name)").isEmpty, "\(name)")
                }
            }
            let request = SoftwareKey.Request(
                method: "POST",
                target: "/v1/chat/1",
                challenge: opened.value("App-Attest-Challenge")
            )
            let proof = stage.key.proof(of: request, signing: Self.signing)
            try expectEqual(stage.client.send(request, proof).status, 200)
            try expectEqual(stage.origin.seen(5)[4].head.all("App-Attest-Proof"), ["assertion"])
            try expectEqual(stage.gateway.stop(), 0)
        }

        @Test func `what a client says of its proof never reaches an origin, whatever the mode`()
            throws
        {
            let stage = try Stage()
            defer { stage.end() }
            var session = try stage.openSession()
            let forged = [
                ("App-Attest-Proof", "assertion"), ("App_Attest_Proof", "assertion"),
                ("App_Attest_Session", "x"), ("App_Attest_Signature", "x"),
                ("App.Attest.Sequence", "1"),
            ]
            for path in ["/v1/chat/1", "/v1/observed", "/v1/open"] {
                try expectEqual(stage.send(&session, path, more: forged).status, 200)
            }
            let seen = try stage.origin.seen(3)
            for (one, proof) in zip(seen, [["session"], ["session"], []]) {
                expectEqual(one.head.all("App-Attest-Proof"), proof)
                for name in ["Session", "Sequence", "Signature", "Proof"] {
                    #expect(one.head.all("App_Attest_\(name)").isEmpty)
                    #expect(one.head.all("App.Attest.\(name)").isEmpty)
                }
                for name in ["Session", "Sequence", "Signature"] {
                    #expect(one.head.all("App-Attest-\(name)").isEmpty, "\(one.target) \(name)")
                }
            }
        }

        @Test func `a replayed request is refused, also on another loop`() throws {
            let stage = try Stage()
            defer { stage.end() }
            let session = try stage.openSession()
            let request = SoftwareKey.Request(method: "GET", target: "/v1/chat/1")
            let proof = try #require(session.proof(of: request, signing: Self.signing, as: .first))
            let answers = try (0..<12).map { _ in
                try stage.gateway.client().send("GET", "/v1/chat/1", proof.fields)
            }
            let expected = [200] + Array(repeating: 401, count: 11)
            expectEqual(answers.map(\.status), expected)
            expectEqual(Set(answers.dropFirst().map(\.reason)), ["session-replayed"])
            expectEqual(answers[1].member("next"), "sign-again")
            expectEqual(answers[1].value("App-Attest-Challenge")?.isEmpty, false)
            expectEqual(stage.origin.seen.count, 1)
        }

        @Test func `one number that many loops get at once is admitted once`() throws {
            let stage = try Stage()
            defer { stage.end() }
            let session = try stage.openSession()
            let clients = (0..<8).map { _ in stage.gateway.client() }
            for round in 1...20 {
                let number = try #require(SequenceNumber(UInt64(round)))
                let request = SoftwareKey.Request(method: "GET", target: "/v1/chat/\(round)")
                let proof = try #require(
                    session.proof(of: request, signing: Self.signing, as: number)
                )
                let fields = proof.fields
                let racing = clients.map { client in
                    Thread.Answer { try client.send("GET", request.target, fields) }
                }
                let statuses = try racing.map { try $0.value().status }
                let expected = [200] + Array(repeating: 401, count: 7)
                expectEqual(statuses.sorted(), expected)
            }
            expectEqual(stage.origin.seen.count, 20)
        }

        @Test func `after a restart a session is unknown, and an assertion opens another`() throws {
            let stage = try Stage()
            defer { stage.end() }
            var session = try stage.openSession()
            try expectEqual(stage.send(&session).status, 200)
            try stage.restart()
            let answer = try stage.send(&session)
            expectEqual(answer.status, 401)
            expectEqual(answer.reason, "session-unknown")
            expectEqual(answer.member("next"), "sign-again")
            session = try stage.openSession()
            try expectEqual(stage.send(&session).status, 200)
        }

        @Test func `where a rule observes, a client is told that its session has ended`() throws {
            let stage = try Stage()
            defer { stage.end() }
            var session = try stage.openSession()
            let before = try stage.send(&session, "/v1/observed")
            expectEqual(before.status, 200)
            expectEqual(before.value("App-Attest-Next"), nil)
            try stage.restart()
            let answer = try stage.send(&session, "/v1/observed")
            expectEqual(answer.status, 200)
            let next = try #require(answer.value("App-Attest-Next"))
            #expect(next.hasPrefix("sign-again;sign="))
            #expect(next.hasSuffix(#";error="session-unknown""#))
        }

        @Test func `a revoked key has no session from the moment the command returned`() throws {
            let stage = try Stage()
            defer { stage.end() }
            var session = try stage.openSession()
            try expectEqual(stage.send(&session).status, 200)
            let file = stage.scenario.path("portcullis.yaml")
            let id = stage.key.keyID.base64
            let revoked = try stage.scenario.portcullis("keys", "revoke", "--config", file, id)
            expectEqual(revoked.status, 0)
            let answer = try stage.send(&session)
            expectEqual(answer.status, 403)
            expectEqual(answer.reason, "key-revoked")
            try expectEqual(stage.ask().reason, "key-revoked")
            expectEqual(stage.origin.seen.count, 1)
        }

        @Test func `an id that was stolen without its secret is good for nothing`() throws {
            let stage = try Stage()
            defer { stage.end() }
            var session = try stage.openSession()
            var thief = SoftwareSession(id: session.id, secret: Array(repeating: 7, count: 32))
            let taken = try stage.send(&thief)
            expectEqual(taken.status, 401)
            expectEqual(taken.reason, "session-mismatch")
            // Nor does the thief use up the owner's numbers.
            let request = SoftwareKey.Request(method: "GET", target: "/v1/chat/1")
            let far = try #require(thief.proof(of: request, signing: Self.signing, as: .max))
            try expectEqual(stage.send(request, far).reason, "session-mismatch")
            try expectEqual(stage.send(&session).status, 200)
        }

        @Test func `forged codes use up none of the address's verifications`() throws {
            let stage = try Stage(more: "limits: { address_failures: 1/m }")
            defer { stage.end() }
            var session = try stage.openSession()
            var thief = SoftwareSession(id: session.id, secret: Array(repeating: 7, count: 32))
            for _ in 0..<20 { try expectEqual(stage.send(&thief).reason, "session-mismatch") }
            try expectEqual(stage.send(&session).status, 200)
            try expectEqual(stage.ask().status, 201)
        }

        @Test func `fields that can't be read are the client's fault`() throws {
            let stage = try Stage()
            defer { stage.end() }
            let session = try stage.openSession()
            let request = SoftwareKey.Request(method: "GET", target: "/v1/chat/1")
            let good = try #require(session.proof(of: request, signing: Self.signing, as: .first))
            let edits: [(String, Int, String, (inout SessionProof) -> Void)] = [
                ("leading zero", 400, "assertion-malformed", { $0.sequence = "01" }),
                ("zero", 400, "assertion-malformed", { $0.sequence = "0" }),
                ("2^53", 400, "assertion-malformed", { $0.sequence = "9007199254740992" }),
                (
                    "long", 400, "assertion-malformed",
                    { $0.sequence = String(repeating: "1", count: 9_000) }
                ),
                ("code", 400, "assertion-malformed", { $0.signature = "AAAA" }),
                (
                    "long code", 400, "assertion-malformed",
                    { $0.signature = String(repeating: "A", count: 9_000) }
                ),
                (
                    "long id", 401, "session-unknown",
                    { $0.session = String(repeating: "A", count: 9_000) }
                ),
                (
                    "other id", 401, "session-unknown",
                    { $0.session = String(repeating: "A", count: 44) }
                ),
                ("no id", 401, "session-unknown", { $0.session = "" }),
            ]
            for (name, status, reason, edit) in edits {
                var proof = good
                edit(&proof)
                let answer = try stage.send(request, proof)
                expectEqual(answer.status, status, "\(name)")
                expectEqual(answer.reason, reason, "\(name)")
            }
            let challenge = try stage.gateway.challenges("assertion", stage.client)[0]
            var signed = request
            signed.challenge = challenge
            let assertion = stage.key.proof(of: signed, signing: Self.signing)
            let both = try stage.send(request, good, more: assertion.fields)
            expectEqual(both.status, 400)
            expectEqual(both.reason, "assertion-malformed")
            try expectEqual(stage.send(request, good).status, 200)
            expectEqual(stage.origin.seen.count, 1)
        }

        @Test func `a rule that guards money takes assertions alone`() throws {
            let stage = try Stage()
            defer { stage.end() }
            var session = try stage.openSession()
            let answer = try stage.send(&session, "/v1/money")
            expectEqual(answer.status, 401)
            expectEqual(answer.reason, "session-refused")
            try expectEqual(stage.send(&session).status, 200)
        }

        @Test func `a session ends when its time is over, and the clock may step back`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let more = "sessions: { lifetime: 30m, window: 64, limit: 1 }"
            try scenario.configure(try scenario.origin(), rules: Self.rules, more: more)
            let key = try scenario.imported(2)
            let gateway = try SteppedGateway(scenario, at: Scenario.now.seconds)
            defer { gateway.stop() }
            let client = gateway.client()
            func open(_ key: inout SoftwareKey) throws -> Answer {
                try gateway.post(Self.target, by: &key, client, signing: Self.signing)
            }
            func send(_ session: inout SoftwareSession) throws -> String {
                let request = SoftwareKey.Request(method: "GET", target: "/v1/chat/1")
                let next = session.proof(of: request, signing: Self.signing)
                let proof = try #require(next)
                let answer = try client.send("GET", request.target, proof.fields)
                return answer.status == 200 ? "pass" : answer.reason
            }
            var (first, second) = (key[0], key[1])
            let answer = try open(&first)
            #expect(answer.object?["expires_in"] as? Int == 1_800)
            #expect(answer.object?["window"] as? Int == 64)
            var session = try #require(SoftwareSession(answer: answer.body))
            try expectEqual(send(&session), "pass")
            gateway.step(hours: -1)
            try expectEqual(send(&session), "pass")
            gateway.step(hours: 2)
            try expectEqual(send(&session), "session-expired")
            // There is room for one: the other key's ends it.
            session = try #require(SoftwareSession(answer: try open(&first).body))
            var other = try #require(SoftwareSession(answer: try open(&second).body))
            try expectEqual(send(&other), "pass")
            try expectEqual(send(&session), "session-unknown")
        }

        @Test func `without a rule that takes sessions there is no such endpoint`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let rules = Self.rules.replacing("  accept: [assertion, session]\n", with: "")
            try scenario.configure(try scenario.origin(), rules: rules)
            let gateway = try scenario.serve()
            let answer = try gateway.client().send("POST", Self.target)
            expectEqual(answer.status, 404)
            expectEqual(answer.reason, "no-such-endpoint")
        }

        @Test func `the endpoint refuses as any enforcing rule does`() throws {
            let stage = try Stage()
            defer { stage.end() }
            let bare = try stage.client.send("POST", Self.target)
            expectEqual(bare.status, 401)
            expectEqual(bare.reason, "assertion-missing")
            expectEqual(bare.value("WWW-Authenticate")?.hasPrefix("AppAttest "), true)
            let read = try stage.client.send("GET", Self.target)
            expectEqual(read.status, 405)
            let content = try stage.client.send("POST", Self.target, content: [1])
            expectEqual(content.status, 413)
            var session = try stage.openSession()
            let renewed = try stage.send(&session, Self.target, content: "")
            expectEqual(renewed.reason, "session-refused")
            var stranger = Scenario.device.makeKey()
            swap(&stranger, &stage.key)
            try expectEqual(stage.ask().reason, "key-unknown")
            #expect(stage.origin.seen.isEmpty)
        }

        @Test func `log and metrics say by what a request was proven, and nothing secret`() throws {
            let stage = try Stage()
            defer { stage.end() }
            let admin = try stage.gateway.adminClient()
            var session = try stage.openSession()
            try expectEqual(stage.send(&session, "/v1/chat/by-session").status, 200)
            let before = session
            try expectEqual(stage.send(&session, "/v1/money").status, 401)
            let metrics = try Metrics(admin)
            expectEqual(metrics["sessions_opened_total"], 1)
            expectEqual(metrics["session_passes_total"], 1)
            expectEqual(metrics["sessions"], 1)
            var pages = try ["/metrics", "/status"].map { try admin.send("GET", $0).text }
            let line = try stage.gateway.line(about: "/v1/chat/by-session")
            #expect(line["proof"] as? String == "session")
            #expect(line["verdict"] as? String == "pass")
            let opened = try stage.gateway.line(about: Self.target)
            #expect(opened["endpoint"] as? String == "sessions")
            #expect(opened["proof"] as? String == "assertion")
            _ = try stage.gateway.line(about: "/v1/money")
            try expectEqual(stage.gateway.stop(), 0)
            pages.append(stage.gateway.child.printed + stage.gateway.child.complained)
            let request = SoftwareKey.Request(
                method: "POST",
                target: "/v1/money",
                content: Array("hello".utf8)
            )
            let proof = try #require(
                before.proof(of: request, signing: Self.signing, as: before.next ?? .max)
            )
            let secret = Data(before.secret)
            for text in [
                session.id, String(session.id.suffix(20)), proof.signature,
                String(proof.signature.prefix(20)), secret.base64EncodedString(),
                secret.map { String(format: "%02x", $0) }.joined(),
            ] {
                for page in pages { #expect(!page.contains(text)) }
            }
        }
    }
}
