import AppAttest
import Cryptography
import Expectations
import Foundation
import KeyStore
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import TestSupport
import Testing

extension Scenarios {
    /// What clients get, origins see and operators read when the store decides at commit.
    @Suite struct LateDecisions {
        private static let rules = """
            - id: bare
              match: { path: /v1/bare/* }
              mode: enforce
              sign: [method, target]
            - id: lenient
              match: { path: /v1/lenient/* }
              mode: enforce
              sign: [method, target]
              on_error: forward
            - id: signed
              match: { path: /v1/signed/* }
              mode: enforce
              sign: [method, target, body, challenge]
            - id: watched
              match: { path: /v1/watched/* }
              mode: observe
              sign: [method, target]
            """

        private static let heldRule = """
            - id: held
              match: { path: /v1/held/* }
              mode: enforce
              sign: [method, target, body]
              body: { digest: held, limit: 1MiB, memory: 64KiB }
            """

        private static let sessionRule = """
            - id: chatty
              match: { path: /v1/chatty/* }
              mode: enforce
              accept: [assertion, session]
              sign: [method, target, body, challenge]
            """

        /// A gateway on a store that decides at commit, with keys in it.
        private final class Site {
            let scenario: Scenario
            let origin: RecordingOrigin
            let store = DecidingJournal()
            let journal: FaultyJournal
            let gateway: SteppedGateway
            let admin: HTTPClient
            private var keys: [SoftwareKey]

            init(keys count: Int, more: String = "") throws {
                scenario = try Scenario()
                origin = try scenario.origin()
                let rules = [
                    LateDecisions.rules, LateDecisions.heldRule, LateDecisions.sessionRule,
                ].joined(separator: "\n")
                try scenario.configure(origin, rules: rules, more: more)
                keys = (0..<count).map { _ in Scenario.device.makeKey() }
                for key in keys { store.add(Self.record(of: key)) }
                journal = FaultyJournal(store)
                gateway = try SteppedGateway(
                    scenario,
                    at: Scenario.now.seconds,
                    journal: journal
                )
                admin = try gateway.adminClient()
            }

            func end() {
                gateway.stop()
                scenario.end()
            }

            private static func record(of key: SoftwareKey) -> KeyRecord {
                var record = KeyRecord(
                    keyID: key.keyID,
                    appID: Scenario.appID,
                    environment: .test,
                    publicKey: key.publicKey,
                    enrolledAt: nil
                )
                if ClientSide.current == .android { record.platform = .android }
                return record
            }

            func keyID(_ number: Int) -> KeyID { keys[number].keyID }

            /// A signed request of a key.
            func request(_ path: String, _ number: Int, challenge: String? = nil) -> [UInt8] {
                keys[number].get(path, challenge: challenge)
            }

            /// Adds a key of which this gateway hears nothing: another one has enrolled it.
            ///
            /// - Returns: its number.
            func enrolElsewhere() throws -> Int {
                let key = Scenario.device.makeKey()
                _ = try store.commit(JournalBatch(enrolments: [Self.record(of: key)]))
                keys.append(key)
                return keys.count - 1
            }

            /// A signed request with content, of whose digest its head says nothing.
            func upload(_ number: Int) -> [UInt8] {
                let target = "/v1/held/\(number)"
                let request = SoftwareKey.Request(method: "POST", target: target, content: [7, 8])
                let signing = SigningForm.lines([.method, .target, .body], headers: [])
                var fields = keys[number].proof(of: request, signing: signing).fields
                fields.removeAll { $0.name.lowercased() == "content-digest" }
                fields.append(("Content-Length", "2"))
                return Array((HTTPClient.head("POST", target, fields) + "\r\n").utf8) + [7, 8]
            }

            /// A signed request of a key to open a session.
            func opening(_ number: Int) throws -> [UInt8] {
                let request = SoftwareKey.Request(
                    method: "POST",
                    target: "/.well-known/app-attest/sessions",
                    challenge: try gateway.challenges("assertion", gateway.client())[0]
                )
                let signing = SigningForm.lines(.all, headers: [])
                let proof = keys[number].proof(of: request, signing: signing)
                let head = HTTPClient.head(request.method, request.target, proof.fields)
                return Array((head + "Content-Length: 0\r\n\r\n").utf8)
            }

            /// Sends a request; the answer is waited for elsewhere.
            func send(_ raw: [UInt8]) -> Thread.Answer<Answer> {
                let client = gateway.client()
                return Thread.Answer { try client.send(raw: raw) }
            }

            /// Has so many requests wait for one batch, and lets the store decide it.
            func decideTogether(_ raws: [[UInt8]]) throws -> [Answer] {
                // The batch before it stands still until all of them have come.
                let gate = journal.holdUp()
                let first = send(request("/v1/bare/before", 0))
                gate.entered.wait()
                var opened = false
                defer { if !opened { gate.open.signal() } }
                let answers = raws.map(send)
                try gateway.waitUntil("a batch of \(raws.count)", admin) {
                    $0["commits_pending"] == Double(raws.count + 1)
                }
                opened = true
                gate.open.signal()
                try expectEqual(first.value().status, 200)
                return try answers.map { try $0.value() }
            }
        }

        @Test func `of one batch each request gets what the store has decided of it`() throws {
            let site = try Site(keys: 8)
            defer { site.end() }
            let challenge = try site.gateway.challenges("assertion", site.gateway.client())[0]
            // What happened at another gateway, as far as the store knows and this one does not.
            site.store.answer(.refused(.replayed), for: site.keyID(2))
            site.store.answer(.refused(.revoked), for: site.keyID(3))
            site.store.answer(.refused(.challengeSpent), for: site.keyID(4))
            site.store.answer(.refused(.unknown), for: site.keyID(5))
            site.store.answer(.refused(.challengesExhausted), for: site.keyID(6))
            let answers = try site.decideTogether([
                site.request("/v1/bare/1", 1),
                site.request("/v1/bare/2", 2),
                site.request("/v1/bare/3", 3),
                site.request("/v1/signed/4", 4, challenge: challenge),
                site.request("/v1/bare/5", 5),
                site.request("/v1/lenient/6", 6),
                site.request("/v1/bare/7", 7),
            ])
            expectEqual(answers.map(\.status), [200, 401, 403, 401, 401, 503, 200])
            let reasons = [
                "", "counter-replayed", "key-revoked", "challenge-spent", "key-unknown",
                "challenges-exhausted", "",
            ]
            expectEqual(answers.map(\.reason), reasons)
            // The next step of the table goes with it.
            expectEqual(answers[1].value("WWW-Authenticate")?.contains("challenge="), true)
            expectEqual(site.journal.batches.last?.uses.count, answers.count)
            let seen = try site.origin.seen(3).map(\.target)
            expectEqual(Set(seen), ["/v1/bare/before", "/v1/bare/1", "/v1/bare/7"])
            let metrics = try Metrics(site.admin)
            expectEqual(metrics["commits_pending"], 0)
            expectEqual(metrics["store_degraded"], 0)
        }

        @Test func `a key that is revoked while its request waits for the store is refused`() throws
        {
            let site = try Site(keys: 2)
            defer { site.end() }
            // The store has decided for it, and its answer is on the way.
            let gate = site.journal.holdUpAnswer()
            let answer = site.send(site.request("/v1/bare/1", 1))
            gate.entered.wait()
            #expect(site.store.revoke(site.keyID(1), at: 1))
            gate.open.signal()
            let refused = try answer.value()
            expectEqual(refused.status, 403)
            expectEqual(refused.reason, "key-revoked")
            try expectEqual(
                site.gateway.client().send(raw: site.request("/v1/bare/2", 0)).status,
                200
            )
            try expectEqual(site.origin.seen(1).map(\.target), ["/v1/bare/2"])
        }

        @Test func `an assertion that is sent twice at once is admitted once`() throws {
            let site = try Site(keys: 2)
            defer { site.end() }
            let raw = site.request("/v1/bare/1", 1)
            let answers = try site.decideTogether([raw, raw, raw])
            expectEqual(answers.map(\.status).sorted(), [200, 401, 401])
            try expectEqual(site.gateway.client().send(raw: raw).reason, "counter-replayed")
        }

        @Test func `a key that another gateway has enrolled is good here with its first request`()
            throws
        {
            let site = try Site(keys: 1)
            defer { site.end() }
            let client = site.gateway.client()
            let (reader, writer) = (try site.enrolElsewhere(), try site.enrolElsewhere())
            let opener = try site.enrolElsewhere()
            try expectEqual(client.send(raw: site.request("/v1/bare/1", reader)).status, 200)
            try expectEqual(client.send(raw: site.upload(writer)).status, 200)
            try expectEqual(client.send(raw: try site.opening(opener)).status, 201)
            try expectEqual(site.origin.seen(2).last?.digest, SHA256.digest(of: [7, 8]))
            expectEqual(site.journal.batches.map(\.lookUps.count).reduce(0, +), 3)
            // A key that nobody has enrolled is asked for once in a moment, and stays unknown.
            var stranger = Scenario.device.makeKey()
            for _ in 0..<2 {
                let answer = try client.send(raw: stranger.get("/v1/bare/2"))
                expectEqual(answer.status, 401)
                expectEqual(answer.reason, "key-unknown")
            }
            let asked = site.journal.batches.flatMap(\.lookUps).filter { $0 == stranger.keyID }
            expectEqual(asked.count, 1)
        }

        @Test func `while the store can't be asked for a key, nobody is told that it is unknown`()
            throws
        {
            let site = try Site(keys: 1, more: "timeouts: { commit: 200ms }")
            defer { site.end() }
            let key = try site.enrolElsewhere()
            site.journal.fail(.before(JournalError(.unusable, "test")))
            let client = site.gateway.client()
            let refused = try client.send(raw: site.request("/v1/bare/1", key))
            expectEqual(refused.status, 503)
            expectEqual(refused.reason, "store-unavailable")
            // A request that is only observed goes on, with all that its origin is to get.
            try expectEqual(client.send(raw: site.request("/v1/watched/1", key)).status, 200)
            let head = try #require(try site.origin.seen(1).last?.head)
            expectEqual(head.all("App-Attest-Verdict"), ["error"])
            site.journal.fail(nil)
            let gate = site.journal.holdUp()
            try expectEqual(client.send(raw: site.request("/v1/bare/2", key)).status, 503)
            gate.open.signal()
            try expectEqual(client.send(raw: site.request("/v1/bare/3", key)).status, 200)
        }

        @Test func `an observed request is told the verdict of the commit`() throws {
            let site = try Site(keys: 2)
            defer { site.end() }
            site.store.answer(.refused(.revoked), for: site.keyID(1))
            let answer = try site.gateway.client().send(raw: site.request("/v1/watched/1", 1))
            expectEqual(answer.status, 200)
            let head = try #require(try site.origin.seen(1).last?.head)
            expectEqual(head.all("App-Attest-Verdict"), ["refuse"])
            expectEqual(head.all("App-Attest-Reason"), ["key-revoked"])
        }

        @Test func `a request does not wait for ever for a commit that does not end`() throws {
            let site = try Site(keys: 4, more: "timeouts: { commit: 200ms }")
            defer { site.end() }
            let gate = site.journal.holdUp()
            defer { gate.open.signal() }
            let paths = ["/v1/bare/0", "/v1/lenient/1", "/v1/watched/2"]
            let answers = try paths.enumerated()
                .map { site.send(site.request($1, $0)) }
                .map { try $0.value() }
            // Whether a counter was free is not known, so `on_error` does not help here.
            expectEqual(answers.map(\.status), [503, 503, 200])
            expectEqual(answers[0].reason, "store-unavailable")
            let head = try #require(try site.origin.seen(1).last?.head)
            expectEqual(head.all("App-Attest-Verdict"), ["error"])
            // What the store says then comes too late for them, and not for others.
            gate.open.signal()
            let next = try site.gateway.client().send(raw: site.request("/v1/bare/3", 3))
            expectEqual(next.status, 200)
        }

        @Test func `opening a session does not wait for ever for a commit that does not end`()
            throws
        {
            let site = try Site(keys: 2, more: "timeouts: { commit: 200ms }")
            defer { site.end() }
            let raw = try site.opening(0)
            let gate = site.journal.holdUp()
            var isOpen = false
            defer { if !isOpen { gate.open.signal() } }
            let answer = try site.gateway.client().send(raw: raw)
            expectEqual(answer.status, 503)
            expectEqual(answer.reason, "store-unavailable")
            expectEqual(answer.member("secret"), nil)
            gate.open.signal()
            isOpen = true
            // Whatever came of that assertion, the next one opens a session.
            try expectEqual(site.gateway.client().send(raw: try site.opening(0)).status, 201)
            // The store knows of a revocation that this gateway does not know of.
            site.store.answer(.refused(.revoked), for: site.keyID(1))
            let refused = try site.gateway.client().send(raw: try site.opening(1))
            expectEqual(refused.reason, "key-revoked")
            try expectEqual(Metrics(site.admin)["sessions_opened_total"], 1)
        }

        @Test func `a refusal at commit counts against an address whose client has gone`() throws {
            let site = try Site(keys: 3, more: "limits: { address_failures: 1/m }")
            defer { site.end() }
            site.store.answer(.refused(.replayed), for: site.keyID(1))
            let gate = site.journal.holdUp()
            let client = try Wire(port: site.gateway.port)
            try client.send(site.request("/v1/bare/1", 1))
            gate.entered.wait()
            client.reset()
            try site.gateway.waitUntil("a client that has gone", site.admin) {
                $0["client_aborts_total"] == 1
            }
            gate.open.signal()
            try site.gateway.waitUntil("the end of the commit", site.admin) {
                $0["commit_wait_seconds_count"] == 1
            }
            let next = try site.gateway.client().send(raw: site.request("/v1/bare/2", 2))
            expectEqual(next.status, 429)
            expectEqual(next.reason, "address-throttled")
        }

        @Test func `a commit that fails is answered by rule, and its assertions are good once`()
            throws
        {
            let site = try Site(keys: 4)
            defer { site.end() }
            let lenient = site.request("/v1/lenient/2", 2)
            let bare = site.request("/v1/bare/1", 1)
            site.store.answer(.failed(JournalError(.busy, "test")), for: site.keyID(1))
            site.store.answer(.failed(JournalError(.busy, "test")), for: site.keyID(2))
            let answers = try site.decideTogether([
                bare, lenient, lenient, site.request("/v1/bare/3", 3),
            ])
            expectEqual(answers[0].status, 503)
            expectEqual(answers[0].reason, "store-unavailable")
            expectEqual([answers[1].status, answers[2].status].sorted(), [200, 401])
            // Another one of the batch is no matter of theirs.
            expectEqual(answers[3].status, 200)
            let verdicts = try site.origin.seen(3).map {
                "\($0.target) \($0.head.all("App-Attest-Verdict"))"
            }
            #expect(verdicts.contains(#"/v1/lenient/2 ["error"]"#))
            // The store is told what was used without it.
            try site.gateway.waitUntil("a store that is told all", site.admin) {
                $0["commits_pending"] == 0 && $0["store_degraded"] == 0
            }
            site.store.answer(nil, for: site.keyID(1))
            site.store.answer(nil, for: site.keyID(2))
            for raw in [bare, lenient] {
                try expectEqual(site.gateway.client().send(raw: raw).reason, "counter-replayed")
            }
            expectEqual(site.store.record(site.keyID(2))?.counters.highest.rawValue, 1)
        }
    }
}
