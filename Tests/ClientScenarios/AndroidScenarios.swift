import Foundation
import KeyAttestation
import LoopbackKit
import Testing

extension ClientScenarios {
    /// The client for Android, on the Java machine, before a gateway that does as a test says.
    @Suite(.enabled(if: AndroidApp.isPossible)) struct Android {
        private final class Stand {
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
                app = try AndroidApp(attestedAt: gateway.attester)
            }

            /// Starts the app: again, or with a record of another name for another install.
            func start(
                _ name: String = "record",
                context: String = "",
                at address: String? = nil
            ) throws {
                let record = folder.appending(path: name).path
                let address = address ?? gateway.address
                let words = "start http://\(address) \(AndroidApp.package) \(record)"
                try app.tell(context.isEmpty ? words : "\(words) \(context)")
            }

            func phone(_ faults: String) throws {
                try app.tell("phone \(gateway.attester) \(faults)")
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
            try stand.start()
            let order = #"send POST /v1/orders?dry=1 {"item":"lamp"} Idempotency-Key:8e03978e"#
            // What the rule signs is learned from the 401 that comes after the mismatch.
            #expect(try stand.app.tell(order) == "200 proven")
            #expect(stand.gateway.requests("dry=1").count == 3)
            #expect(try stand.app.tell(order) == "200 proven")
            #expect(stand.gateway.requests("dry=1").count == 1)
            #expect(stand.gateway.levels == [.strongBox])
            // One challenge to enrol, one call for four; the next ones come with the answers.
            #expect(stand.gateway.requests("challenges").count == 2)
            let before = stand.gateway.counters
            try stand.start()
            stand.gateway.rule(.init())
            #expect(try stand.get() == "200 proven")
            #expect(stand.gateway.counters.max() == (before.max() ?? 0) + 1)
            #expect(stand.gateway.requests("keys").count == 1)
            #expect(try stand.app.tell("made") == "strongbox")

            // Nothing that could be used is in the log.
            let log = try stand.app.tell("log")
            #expect(log.contains("enrolled") && log.contains("signature-mismatch"))
            #expect(!log.contains("Challenge_") && !log.contains("v1.") && !log.contains("="))
        }

        @Test func `no number is given twice, to whatever thread`() throws {
            let stand = try Stand()
            defer { stand.end() }
            try stand.start()
            #expect(try stand.app.tell("crowd 16 /v1/orders") == "200 proven x16")
            #expect(stand.gateway.counters == Array(1...16))
            #expect(try stand.app.tell("made") == "strongbox")
            // A strict rule has one request at a time, once it has said so.
            stand.gateway.rule(.init(isStrict: true))
            stand.gateway.refuse("/strict", .init(reason: "counter-replayed", next: "sign-again"))
            #expect(try stand.get("/v1/strict") == "200 proven")
            #expect(stand.gateway.requests("/strict").count == 2)
            #expect(try stand.app.tell("crowd 16 /v1/strict") == "200 proven x16")
            #expect(stand.gateway.requests("/strict").count == 16)
        }

        @Test func `a phone without StrongBox has its key in the TEE, and a context is attested`()
            throws
        {
            let stand = try Stand()
            defer { stand.end() }
            try stand.phone("no-strongbox")
            try stand.start(context: "account-17")
            #expect(try stand.app.tell("prepare") == "true")
            #expect(stand.gateway.levels == [.trustedEnvironment])
            let document = try #require(stand.gateway.requests("keys").first)
            #expect(
                String(decoding: document.body, as: UTF8.self).contains(
                    #""context":"YWNjb3VudC0xNw==""#
                )
            )
            #expect(try stand.get() == "200 proven")
        }

        @Test func `the real gateway takes what the client sends`() throws {
            let stand = try Stand()
            defer { stand.end() }
            let origin = try TestOrigin()
            defer { origin.stop() }
            try AndroidGateway.rootPEM.write(
                to: stand.folder.appending(path: "root.pem"),
                atomically: true,
                encoding: .utf8
            )
            let signer = String(repeating: "07", count: 32)
            let app = """
                { android: \(AndroidApp.package), signers: ["\(signer)"], environments: [test],
                test_root: root.pem, on_error: forward }
                """
            let gateway = try ClientGateway(
                in: stand.folder,
                """
                listen: [{ address: "127.0.0.1:0" }]
                lanes: 2
                origins: { shop: { servers: ["\(origin.address)"] } }
                apps: [\(app.replacing("\n", with: " "))]
                store: { sqlite: portcullis.db }
                default: { origin: shop, mode: off }
                timeouts: { drain_idle: 100ms }
                rules:
                  - { id: orders, match: { path: /v1/orders }, mode: enforce,
                      apps: [\(AndroidApp.package)], headers: [idempotency-key] }
                  - { id: strict, match: { path: /v1/strict }, mode: enforce,
                      apps: [\(AndroidApp.package)], counter: strict }

                """
            )
            defer { gateway.kill() }
            try stand.start(context: "account-17", at: "127.0.0.1:\(gateway.port)")
            let order = #"send POST /v1/orders?dry=1 {"item":"lamp"} Idempotency-Key:8e03978e"#
            #expect(try stand.app.tell(order) == "200 proven")
            let seen = try #require(origin.requests.last)
            #expect(seen.head.value("app-attest-verdict") == "pass")
            #expect(seen.head.value("app-attest-app-id") == AndroidApp.package)
            #expect(seen.head.value("app-attest-context") == "YWNjb3VudC0xNw==")
            #expect(try stand.get() == "200 proven")
            #expect(try stand.app.tell("crowd 16 /v1/orders") == "200 proven x16")
            #expect(try stand.app.tell("made") == "strongbox")
            // Its challenges have ended with it; the counter goes on.
            try gateway.restart()
            #expect(try stand.app.tell(order) == "200 proven")
            try gateway.restart(wipingStore: true)
            #expect(try stand.app.tell(order) == "200 proven")
            #expect(try stand.app.tell("made") == "strongbox strongbox")
            #expect(try stand.get("/v1/strict") == "200 proven")
            let keyID = try #require(origin.requests.last?.head.value("app-attest-key-id"))
            try gateway.revoke(keyID)
            #expect(try stand.app.tell(order) == "403 proven")
            #expect(try stand.app.tell("log").hasSuffix("refused key-revoked, next none"))
        }

        private struct Row {
            let refusal: AndroidGateway.Refusal
            let times: Int
            /// How often the request is sent, how many keys are enrolled, and what the app gets.
            let sent: Int
            let keys: Int
            let answer: String

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
            // An origin's own.
            Row("", nil, sent: 1, "401 proven"),
        ]

        @Test func `each next step is obeyed`() throws {
            let stand = try Stand()
            defer { stand.end() }
            for (number, row) in Self.rows.enumerated() {
                try stand.start("install-\(number)")
                #expect(try stand.app.tell("prepare") == "true")
                stand.gateway.refuse("/v1/orders", row.refusal, times: row.times)
                #expect(try stand.get() == row.answer, "\(row.refusal)")
                #expect(stand.gateway.requests("/v1/orders").count == row.sent, "\(row.refusal)")
                #expect(stand.gateway.requests("keys").count == row.keys, "\(row.refusal)")
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
                later: 5
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
            (first, second, sent) = try enrols("challenges", late, times: 1, later: 65)
            #expect((first, second) == ("401 held", "200 proven"))
            #expect(sent.count == 1)
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
                #expect(try stand.get() == "401 held")
            }
            #expect(sent.count + stand.gateway.requests("keys").count == 3)
        }

        @Test func `a phone that fails says so, and one that lost its key enrols again`() throws {
            let stand = try Stand()
            defer { stand.end() }
            try stand.phone("broken")
            try stand.start("broken")
            #expect(try stand.get() == "401 held")
            try stand.app.tell("later 10")
            #expect(try stand.get() == "401 unsupported")
            let requests = stand.gateway.requests("/v1/orders")
            #expect(requests.map { $0.head.value("app-attest-unsupported") } == [nil, "1"])
            #expect(!requests.contains { $0.head.has("app-attest-assertion") })
            try stand.phone("")
            try stand.app.tell("later 10")
            #expect(try stand.get() == "200 proven")
            try stand.app.tell("lose")
            #expect(try stand.get() == "200 proven")
            #expect(stand.gateway.requests("keys").count == 2)
            #expect(try stand.app.tell("keys") == "1")
            try stand.start("no/folder")
            #expect(try stand.get() == "401 record-unwritable")
        }
    }
}
