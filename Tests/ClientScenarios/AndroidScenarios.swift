import AppleStandIn
import Expectations
import Foundation
import KeyAttestation
import LoopbackKit
import SoftwareAuthenticator
import TestSupport
import Testing

extension ClientScenarios {
    /// The client for Android, on the Java machine, before a gateway that does as a test says.
    @Suite(.enabled(if: AndroidApp.isPossible)) struct Android {
        final class Stand {
            let gateway: AndroidGateway
            let app: AndroidApp
            let folder = FileManager.default.temporaryDirectory
                .appending(path: "portcullis-android-\(UUID().uuidString)")

            init() throws {
                try FileManager.default.createDirectory(
                    at: folder,
                    withIntermediateDirectories: true
                )
                gateway = try AndroidGateway()
                app = try AndroidApp(authority: gateway.makers)
            }

            /// Starts the app: again, or with a record of another name for another install.
            func start(
                _ name: String = "record",
                _ options: String = "",
                at address: String? = nil
            ) throws {
                let record = folder.appending(path: name).path
                let address = address ?? gateway.address
                let words = "start http://\(address) \(AndroidApp.package) \(record)"
                try app.tell(options.isEmpty ? words : "\(words) \(options)")
            }

            /// The real one; where it asks for tokens, at an enrolment too.
            func gateway(
                before origin: TestOrigin,
                askingForTokens asks: Bool = false
            ) throws -> ClientGateway {
                let console = AndroidGateway.console
                for (name, text) in [
                    ("root.pem", AndroidGateway.rootPEM), ("decrypt.key", console.decryptionKey),
                    ("verify.key", console.verificationKey),
                ] {
                    let file = folder.appending(path: name)
                    try text.write(to: file, atomically: true, encoding: .utf8)
                    try FileManager.default.setAttributes(
                        [.posixPermissions: 0o600],
                        ofItemAtPath: file.path
                    )
                }
                let signer = String(repeating: "07", count: 32)
                let token = asks ? ", integrity: { device: [device], action: refuse }" : ""
                let app =
                    "{ android: \(AndroidApp.package), signers: [\"\(signer)\"], "
                    + "environments: [test], test_root: root.pem, on_error: forward\(token) }"
                let rules = [
                    "orders": "headers: [idempotency-key]", "strict": "counter: strict",
                    "chat": "accept: [assertion, session]",
                    "pay": "integrity: { device: [device], action: refuse }",
                    "marked": "integrity: { device: [device] }",
                ].map { name, words in
                    "  - { id: \(name), match: { path: /v1/\(name) }, mode: enforce, "
                        + "apps: [\(AndroidApp.package)], \(words) }\n"
                }
                return try ClientGateway(
                    in: folder,
                    """
                    listen: [{ address: "127.0.0.1:0" }]
                    event_loops: 2
                    origins: { shop: { servers: ["\(origin.address)"] } }
                    apps: [\(app)]
                    proofs: { play: { kind: play-integrity, decryption_key: decrypt.key,
                      verification_key: verify.key } }
                    store: { sqlite: portcullis.db }
                    default: { origin: shop, mode: off }
                    timeouts: { drain_idle: 100ms }
                    rules:
                    \(rules.joined())
                    """
                )
            }

            func phone(_ faults: String) throws {
                try app.tell("phone \(gateway.makers) \(faults)")
            }

            func get(_ target: String = "/v1/orders") throws -> String {
                try app.tell("send GET \(target) -")
            }

            func end() {
                app.end()
                gateway.stop()
                try? FileManager.default.removeItem(at: folder)
            }
        }

        @Test func `a phone enrols once, signs what it sends, and counts on after a restart`()
            throws
        {
            let stand = try Stand()
            defer { stand.end() }
            stand.gateway.rule(.init(headers: ["idempotency-key", "absent", "user-agent", "host"]))
            try stand.start("record", "strongbox")
            let order = #"send POST /v1/orders?dry=1 {"item":"lamp"} Idempotency-Key:8e03978e"#
            // What the rule signs is learned from the 401 that comes after the mismatch.
            try expectEqual(stand.app.tell(order), "200 proven")
            expectEqual(stand.gateway.requests("dry=1").count, 3)
            try expectEqual(stand.app.tell(order), "200 proven")
            expectEqual(stand.gateway.requests("dry=1").count, 1)
            expectEqual(stand.gateway.levels, [.strongBox])
            // One challenge to enrol, one call for four; the next ones come with the answers.
            expectEqual(stand.gateway.requests("challenges").count, 2)
            let before = stand.gateway.counters
            try stand.start("record", "strongbox")
            stand.gateway.rule(.init())
            try expectEqual(stand.get(), "200 proven")
            expectEqual(stand.gateway.counters.max(), (before.max() ?? 0) + 1)
            expectEqual(stand.gateway.requests("keys").count, 1)
            try expectEqual(stand.app.tell("made"), "strongbox")

            // Nothing that could be used is in the log.
            let log = try stand.app.tell("log")
            #expect(log.contains("enrolled") && log.contains("signature-mismatch"))
            #expect(!log.contains("Challenge_") && !log.contains("v1.") && !log.contains("="))
        }

        @Test func `no number is given twice, to whatever thread`() throws {
            let stand = try Stand()
            defer { stand.end() }
            try stand.start()
            try expectEqual(stand.app.tell("crowd 16 /v1/orders"), "200 proven x16")
            expectEqual(stand.gateway.counters, Array(1...16))
            // A StrongBox takes long for each signature: an app has to ask for it.
            try expectEqual(stand.app.tell("made"), "tee")
            // A strict rule has one request at a time, once it has said so.
            stand.gateway.rule(.init(isStrict: true))
            stand.gateway.refuse("/strict", .init(reason: "counter-replayed", next: "sign-again"))
            try expectEqual(stand.get("/v1/strict"), "200 proven")
            expectEqual(stand.gateway.requests("/strict").count, 2)
            try expectEqual(stand.app.tell("crowd 16 /v1/strict"), "200 proven x16")
            expectEqual(stand.gateway.requests("/strict").count, 16)
        }

        @Test func `a phone without StrongBox has its key in the TEE, and a context is attested`()
            throws
        {
            let stand = try Stand()
            defer { stand.end() }
            try stand.phone("no-strongbox")
            try stand.start("record", "context=account-17 strongbox")
            try expectEqual(stand.app.tell("prepare"), "true")
            expectEqual(stand.gateway.levels, [.trustedEnvironment])
            let document = try #require(stand.gateway.requests("keys").first)
            #expect(
                String(decoding: document.body, as: UTF8.self).contains(
                    #""context":"YWNjb3VudC0xNw==""#
                )
            )
            try expectEqual(stand.get(), "200 proven")
        }

        @Test func `the real gateway takes what the client sends`() throws {
            let stand = try Stand()
            defer { stand.end() }
            let origin = try TestOrigin()
            defer { origin.stop() }
            let gateway = try stand.gateway(before: origin)
            defer { gateway.kill() }
            try stand.start("record", "context=account-17", at: "127.0.0.1:\(gateway.port)")
            let order = #"send POST /v1/orders?dry=1 {"item":"lamp"} Idempotency-Key:8e03978e"#
            try expectEqual(stand.app.tell(order), "200 proven")
            let seen = try #require(origin.requests.last)
            expectEqual(seen.head.value("app-attest-verdict"), "pass")
            expectEqual(seen.head.value("app-attest-app-id"), AndroidApp.package)
            expectEqual(seen.head.value("app-attest-context"), "YWNjb3VudC0xNw==")
            try expectEqual(stand.get(), "200 proven")
            try expectEqual(stand.app.tell("crowd 16 /v1/orders"), "200 proven x16")
            try expectEqual(stand.app.tell("made"), "tee")
            // Its challenges have ended with it; the counter goes on.
            try gateway.restart()
            try expectEqual(stand.app.tell(order), "200 proven")
            try gateway.restart(wipingStore: true)
            try expectEqual(stand.app.tell(order), "200 proven")
            try expectEqual(stand.app.tell("made"), "tee tee")
            try expectEqual(stand.get("/v1/strict"), "200 proven")
            let keyID = try #require(origin.requests.last?.head.value("app-attest-key-id"))
            try gateway.revoke(keyID)
            try expectEqual(stand.app.tell(order), "403 proven")
            #expect(try stand.app.tell("log").hasSuffix("refused key-revoked, next none"))
        }

        @Test func `a session saves assertions, and what ends it costs one`() throws {
            let stand = try Stand()
            defer { stand.end() }
            let origin = try TestOrigin()
            defer { origin.stop() }
            let gateway = try stand.gateway(before: origin)
            defer { gateway.kill() }
            try stand.start("record", at: "127.0.0.1:\(gateway.port)")
            try stand.app.tell("plan session")
            let hello = "send POST /v1/chat hello"
            try expectEqual(stand.app.tell("crowd 16 /v1/chat"), "200 in-session x16")
            try expectEqual(stand.app.tell(hello), "200 in-session")
            try expectEqual(stand.app.tell("log"), "enrolled | session opened")
            let told = try #require(origin.requests.last?.head)
            expectEqual(told.value("app-attest-proof"), "session")
            expectEqual(told.value("app-attest-app-id"), AndroidApp.package)
            // A rule that takes none is learned once.
            try expectEqual(stand.get("/v1/strict"), "200 proven")
            try expectEqual(stand.get("/v1/strict"), "200 proven")
            let log = "refused session-refused, next sign-again"
            try expectEqual(stand.app.tell("log"), log)
            // It ended with the gateway.
            try gateway.restart()
            try expectEqual(stand.app.tell(hello), "200 proven")
            try expectEqual(stand.app.tell(hello), "200 in-session")
            let again = "refused session-unknown, next sign-again | "
            #expect(try stand.app.tell("log").hasPrefix(again))
            // Before its end another one is opened, beside the requests.
            try stand.app.tell("later 500")
            try expectEqual(stand.app.tell(hello), "200 in-session")
            #expect(try eventually { try stand.app.tell("log").contains("session opened") })
            // It is over, so the next one is waited for.
            try stand.app.tell("later 700")
            try expectEqual(stand.app.tell(hello), "200 in-session")
            try expectEqual(stand.app.tell("log"), "session opened")
            // A new key has a new session, for the request that found the old one lost, too.
            try gateway.restart(wipingStore: true)
            try expectEqual(stand.app.tell(hello), "200 in-session")
            try expectEqual(stand.app.tell("made"), "tee tee")
            let keyID = try #require(origin.requests.last?.head.value("app-attest-key-id"))
            try gateway.revoke(keyID)
            try expectEqual(stand.app.tell(hello), "403 in-session")
        }

        @Test func `a session that an observing rule does not know is opened again`() throws {
            let stand = try Stand()
            defer { stand.end() }
            stand.gateway.rule(.init(takesSessions: true))
            try stand.start()
            try stand.app.tell("plan session")
            try expectEqual(stand.get(), "200 in-session")
            let advice =
                #"App-Attest-Next: sign-again;sign="method target body challenge";"#
                + #"accept="assertion session";counter=64;error="session-unknown""# + "\r\n"
            stand.gateway.refuse(
                "/v1/orders",
                .init(status: 200, reason: "observed", next: nil, fields: advice)
            )
            try expectEqual(stand.get(), "200 in-session")
            // No request to a rule that observes waits for the next one.
            try expectEqual(stand.get(), "200 proven")
            #expect(try eventually { try stand.get() == "200 in-session" })
            expectEqual(stand.gateway.requests("sessions").count, 2)
        }

        @Test func `an app that sends each request once goes on with no refused key or session`()
            throws
        {
            let stand = try Stand()
            defer { stand.end() }
            stand.gateway.rule(.init(takesSessions: true))
            try stand.start("record", "attempts=1")
            try stand.app.tell("plan session")
            try expectEqual(stand.get(), "200 in-session")
            for refusal in [
                AndroidGateway.Refusal(reason: "session-unknown", next: "sign-again"),
                AndroidGateway.Refusal(reason: "key-unknown", next: "enrol"),
            ] {
                stand.gateway.refuse("/v1/orders", refusal)
                try expectEqual(stand.get(), "401 in-session")
                try expectEqual(stand.get(), "200 in-session")
            }
            expectEqual(stand.gateway.requests("sessions").count, 3)
            expectEqual(stand.gateway.requests("keys").count, 2)
        }

        @Test func `a token of Google Play goes where a rule asks for one, and nowhere else`()
            throws
        {
            let stand = try Stand()
            defer { stand.end() }
            let origin = try TestOrigin()
            defer { origin.stop() }
            let gateway = try stand.gateway(before: origin, askingForTokens: true)
            defer { gateway.kill() }
            let address = "127.0.0.1:\(gateway.port)"
            /// How often a token was asked for meanwhile.
            func tokens(_ ways: String) throws -> Int? {
                Int(try stand.app.tell("tokens \(ways)"))
            }
            func pay() throws -> String { try stand.app.tell("send POST /v1/pay 100") }

            // Without Google Play the phone is not enrolled, and makes no second key.
            try stand.start("record", at: address)
            try expectEqual(stand.get(), "401 held")
            try stand.app.tell("later 4000")
            // The key is good still, when a token comes. The challenge is not, an hour later.
            _ = try tokens("fail")
            try stand.start("other", "tokens", at: address)
            try expectEqual(stand.get(), "401 held")
            try expectEqual(tokens("old good"), 1)
            try stand.app.tell("later 10")
            try stand.app.tell("log")
            try expectEqual(stand.get(), "200 proven")
            #expect(try stand.app.tell("log").hasSuffix("enrolled"))
            try expectEqual(tokens("good"), 2)
            try expectEqual(stand.app.tell("made"), "tee tee")

            // The rule's 401 is the lesson.
            try expectEqual(pay(), "200 proven")
            try expectEqual(tokens("good"), 1)
            try expectEqual(stand.app.tell("log"), "refused proof-missing, next get-token")
            try expectEqual(pay(), "200 proven")
            try expectEqual(tokens("old good"), 1)
            let told = try #require(origin.requests.last?.head)
            expectEqual(told.value("app-attest-proof"), "assertion, play")
            expectEqual(told.value("app-attest-integrity")?.hasPrefix("met;"), true)
            try expectEqual(pay(), "200 proven")
            try expectEqual(tokens("old"), 2)
            try expectEqual(pay(), "401 proven get-token")
            try expectEqual(tokens("fail"), 2)
            try expectEqual(pay(), "401 proven token-failed get-token")
            try expectEqual(tokens("fail"), 1)
            try expectEqual(stand.get(), "200 proven")
            try expectEqual(tokens("fail"), 0)
            // A rule that marks refuses nobody, so the app has to know that it asks.
            try stand.app.tell("plan token")
            try expectEqual(stand.get("/v1/marked"), "200 proven token-failed")
            let marked = origin.requests.last { $0.target == "/v1/marked" }
            expectEqual(marked?.head.value("app-attest-integrity"), "missing")
            // A service that never answers, to more requests at once than may ask it.
            _ = try tokens("hang")
            try stand.start("other", "tokens", at: address)
            try expectEqual(stand.app.tell("crowd 12 /v1/marked"), "200 proven token-late x12")
            try expectEqual(tokens("good"), 8)
            try expectEqual(stand.get("/v1/marked"), "200 proven token-late")
            try stand.app.tell("plan")
            try expectEqual(stand.get(), "200 proven")
            let log = try stand.app.tell("log")
            #expect(log.contains("no token of Google Play: late") && !log.contains("eyJ"))
        }

        private struct Row {
            let refusal: AndroidGateway.Refusal
            let times: Int
            /// How often the request is sent, how many keys are enrolled, and what the app gets.
            let sent: Int
            let keys: Int
            let answer: String
            /// What is refused, in an app that opens sessions.
            var end = "/v1/orders"
            var plan = ""

            init(
                _ reason: String,
                _ next: String?,
                _ status: Int = 401,
                after seconds: Int? = nil,
                times: Int = 1,
                sent: Int,
                keys: Int = 1,
                _ answer: String
            ) {
                let fields = seconds.map { "Retry-After: \($0)\r\n" } ?? ""
                refusal = .init(status: status, reason: reason, next: next, fields: fields)
                (self.times, self.sent, self.keys, self.answer) = (times, sent, keys, answer)
            }

            func inSession(_ end: String = "/v1/orders") -> Row {
                var row = self
                (row.end, row.plan) = (end, "session")
                return row
            }
        }

        private static let rows = [
            Row("challenge-spent", "sign-again", sent: 2, "200 proven"),
            Row("challenge-unknown", "sign-again", times: 2, sent: 3, "200 proven"),
            Row("counter-replayed", "sign-again", times: 3, sent: 3, "401 proven"),
            Row("key-unknown", "enrol", sent: 2, keys: 2, "200 proven"),
            Row("key-unknown", "enrol", times: 2, sent: 2, keys: 2, "401 proven"),
            Row("store-unavailable", "retry-later", 503, after: 2, sent: 2, "200 proven"),
            Row("key-held", "retry-later", 429, after: 60, sent: 1, "429 proven"),
            Row("app-mismatch", "none", 403, sent: 1, "403 proven"),
            Row("digest-missing", "fix-client", 400, sent: 1, "400 proven"),
            Row("new-reason", "new-step", 403, sent: 1, "403 proven"),
            Row("proof-missing", "get-token", sent: 1, "401 proven get-token"),
            Row("session-replayed", "sign-again", sent: 2, "200 in-session").inSession(),
            Row("session-replayed", "sign-again", times: 3, sent: 3, "401 in-session").inSession(),
            Row("session-expired", "sign-again", sent: 2, "200 proven").inSession(),
            Row("session-mismatch", "sign-again", sent: 2, "200 proven").inSession(),
            Row("session-refused", "sign-again", sent: 2, "200 proven").inSession(),
            Row("assertion-malformed", "fix-client", 400, sent: 2, "200 proven").inSession(),
            Row("key-unknown", "enrol", sent: 2, keys: 2, "200 in-session").inSession(),
            Row("key-revoked", "none", 403, sent: 1, "403 in-session").inSession(),
            Row("no-such-endpoint", "fix-client", 404, sent: 1, "200 proven").inSession("sessions"),
            Row("store-unavailable", "retry-later", 503, after: 60, sent: 1, "200 proven")
                .inSession("sessions"),
            Row("counter-replayed", "sign-again", sent: 1, "200 in-session").inSession("sessions"),
            Row("key-unknown", "enrol", sent: 1, keys: 2, "200 in-session").inSession("sessions"),
            // An origin's own.
            Row("", nil, sent: 1, "401 proven"),
        ]

        @Test func `each next step is obeyed`() throws {
            let stand = try Stand()
            defer { stand.end() }
            for (number, row) in Self.rows.enumerated() {
                try stand.start("install-\(number)")
                try expectEqual(stand.app.tell("prepare"), "true")
                try stand.app.tell("plan \(row.plan)")
                stand.gateway.rule(.init(takesSessions: !row.plan.isEmpty))
                stand.gateway.refuse(row.end, row.refusal, times: row.times)
                try expectEqual(stand.get(), row.answer, "\(row.refusal)")
                expectEqual(stand.gateway.requests("/v1/orders").count, row.sent, "\(row.refusal)")
                expectEqual(stand.gateway.requests("keys").count, row.keys, "\(row.refusal)")
            }
        }

        @Test func `an enrolment that fails goes on where it was, and makes few keys`() throws {
            let stand = try Stand()
            defer { stand.end() }
            /// What the app gets at first, seconds later, and the documents that the gateway got.
            func enrols(
                _ end: String,
                _ refusal: AndroidGateway.Refusal,
                times: Int = 1,
                later seconds: Int
            ) throws -> (String, String, [[UInt8]]) {
                try stand.start("\(end)-\(refusal.reason)-\(times)")
                stand.gateway.refuse(end, refusal, times: times)
                let first = try stand.get()
                try stand.app.tell("later \(seconds)")
                let second = try stand.get()
                return (first, second, stand.gateway.requests("keys").map(\.body))
            }
            // The answer is lost: the same document again, and no other key.
            var (first, second, sent) = try enrols(
                "keys",
                .init(status: 503, reason: "lost"),
                later: 10
            )
            #expect((first, second) == ("401 held", "200 proven"))
            #expect(sent.count == 2 && sent.first == sent.last)
            // A page of something in between is no answer of the gateway's.
            (first, second, sent) = try enrols(
                "keys",
                .init(status: 200, reason: "page"),
                later: 10
            )
            #expect((first, second) == ("401 held", "200 proven"))
            #expect(sent.count == 2 && sent.first == sent.last)
            let late = AndroidGateway.Refusal(
                status: 429,
                reason: "enrolment-throttled",
                next: "retry-later",
                fields: "Retry-After: 60\r\n"
            )
            (first, second, sent) = try enrols("keys", late, later: 30)
            #expect((first, second) == ("401 held", "401 held"))
            (first, second, sent) = try enrols("challenges", late, times: 1, later: 80)
            #expect((first, second) == ("401 held", "200 proven"))
            expectEqual(sent.count, 1)
            let closed = AndroidGateway.Refusal(status: 403, reason: "app-mismatch", next: "none")
            (first, second, sent) = try enrols("keys", closed, later: 1_000)
            #expect((first, second) == ("401 held", "401 held"))
            // A new key at once, and a second time later; three in a day, whatever is asked.
            let lost = AndroidGateway.Refusal(reason: "nonce-mismatch", next: "enrol")
            (first, second, sent) = try enrols("keys", lost, later: 0)
            #expect((first, second) == ("200 proven", "200 proven"))
            #expect(sent.count == 2 && sent.first != sent.last)
            (first, second, sent) = try enrols("keys", lost, times: 9, later: 4_000)
            #expect((first, second) == ("401 held", "401 held"))
            for _ in 0..<9 {
                try stand.app.tell("later 4000")
                try expectEqual(stand.get(), "401 held")
            }
            expectEqual(sent.count + stand.gateway.requests("keys").count, 3)
            // A clock that is set back, by more than any hold, makes no room for another one.
            try stand.app.tell("later -200000")
            try expectEqual(stand.get(), "401 held")
            #expect(stand.gateway.requests("keys").isEmpty)
        }

        @Test func `a GET with content is not sent as a POST`() throws {
            let stand = try Stand()
            defer { stand.end() }
            try stand.start()
            let answer = try stand.app.tell("send GET /v1/orders lamp")
            expectEqual(answer, "error HttpURLConnection sends no GET with content")
            #expect(stand.gateway.requests("/v1/orders").isEmpty)
            try expectEqual(stand.get(), "200 proven")
        }

        @Test func `fields are found whatever the case of their names, in an app's own map`()
            throws
        {
            let stand = try Stand()
            defer { stand.end() }
            stand.gateway.rule(.init(headers: ["user-agent"]))
            try stand.start("record", "plain")
            // The 401 without a proof says what the rule signs.
            try expectEqual(stand.get(), "200 proven")
            stand.gateway.refuse("/v1/orders", .init(reason: "key-unknown", next: "enrol"))
            try expectEqual(stand.get(), "200 proven")
            expectEqual(stand.gateway.requests("keys").count, 2)
        }

        @Test func `a target that begins with two slashes goes to the gateway`() throws {
            let stand = try Stand()
            defer { stand.end() }
            try stand.start()
            try expectEqual(stand.get("//elsewhere.invalid/v1/orders"), "200 proven")
            let sent = stand.gateway.requests("/v1/orders")
            expectEqual(sent.map(\.target), ["//elsewhere.invalid/v1/orders"])
        }
    }
}
