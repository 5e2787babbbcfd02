import Expectations
import Foundation
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import TestSupport
import Testing

extension Scenarios {
    /// Somebody else's proxy forwards, and asks the gateway for a decision about each request.
    @Suite(.serialized, EndOfStands()) struct Decisions {
        static let signing = SigningForm.lines(
            [.method, .target, .challenge],
            headers: []
        )
        private static let rules = """
            - id: orders
              match: { path: /orders/** }
              mode: enforce
              sign: [method, target, challenge]
            - id: watched
              match: { path: /watched/** }
              mode: observe
              sign: [method, target, challenge]
            - id: site
              match: { path: /site/** }
              mode: enforce
              sign: [method, target, challenge]
              preflight: forward
              unsupported: forward
            - { id: closed, match: { path: /closed/** }, mode: deny }
            """
        /// What can be asked about where the proxy sends the content.
        private static let contentRules = """

            - id: pay
              match: { path: /pay/** }
              mode: enforce
              body: { digest: held, limit: 4MiB, memory: 4KiB }
            - id: streamed
              match: { path: /streamed/** }
              mode: enforce
              body: { digest: streamed, limit: 4MiB }
            - { id: seen, match: { path: /seen/** }, mode: observe }
            """

        /// A proxy, the gateway that it asks, and the application behind the proxy.
        struct Stand {
            let proxy: DecidingProxy
            let scenario: Scenario
            private(set) var port: UInt16
            private var front: ChildProcess
            private let ports: DecidingProxy.Ports
            let gateway: GatewayProcess
            let application: RecordingOrigin
            let client: HTTPClient
            var key: SoftwareKey
            /// What the application has seen in other tests.
            private var earlier = 0

            /// `nil` where the proxy's program is absent.
            ///
            /// - isTried: whether rules sign content although the proxy may not send it, and
            ///   commands can call the gateway.
            init?(
                _ proxy: DecidingProxy,
                _ scenario: Scenario,
                isTried: Bool = false
            ) throws {
                self.proxy = proxy
                self.scenario = scenario
                application = try scenario.origin(
                    fields: "App-Attest-Error: forged\r\nApp-Attest-Next: forged\r\n"
                )
                let port = application.port
                let sendsContent = isTried || proxy.sendsContent
                try scenario.write("verdict.secret", String(repeating: "s", count: 32))
                try FileManager.default.setAttributes(
                    [.posixPermissions: 0o600],
                    ofItemAtPath: scenario.path("verdict.secret")
                )
                // Clients speak to the proxy, and the second listener is the one that decides.
                try ClientSide.inTheClear {
                    try scenario.configure(
                        origin: "127.0.0.1:\(port)",
                        rules: Decisions.rules
                            + (sendsContent ? Decisions.contentRules : ""),
                        more: """
                            trusted_proxies: [127.0.0.1/32]
                            verdict: { jwt: { secret: verdict.secret, audience: shop } }
                            """,
                        listeners: "  - { address: 127.0.0.1:0, decides: \(proxy.form)"
                            + "\(sendsContent ? ", content: whole" : "") }"
                    )
                }
                if isTried { try scenario.serveCalls() }
                key = try scenario.imported()[0]
                gateway = try ClientSide.inTheClear { try scenario.serve() }
                ports = DecidingProxy.Ports(
                    decisions: try gateway.secondPort(),
                    gateway: gateway.port,
                    application: application.port
                )
                guard let front = try proxy.start(scenario, ports) else { return nil }
                (self.port, self.front) = front
                client = HTTPClient(port: front.port)
                // HAProxy tells nothing once it listens, and Traefik listens before it has routes.
                let client = client
                eventually { (try? client.send("GET", "/ready").status) == 200 }
            }

            /// What the application has seen beside what showed that the proxy is ready.
            var seen: [RecordingOrigin.Seen] {
                application.seen.dropFirst(earlier).filter { $0.target != "/ready" }
            }

            /// Another test has it: a new connection, and nothing was seen.
            fileprivate mutating func beginTest() {
                client.close()
                earlier = application.seen.count
            }

            /// Starts the proxy again, with faults in its example.
            mutating func restartFront(_ edits: [(old: String, new: String)]) throws {
                front.end()
                (port, front) = try #require(try proxy.start(scenario, ports, edits: edits))
                let client = HTTPClient(port: port)
                eventually { (try? client.send("GET", "/ready").status) == 200 }
            }

            /// The application saw so many requests, of which this is the last.
            func last(_ count: Int, _ remark: Comment? = nil) throws -> RecordingOrigin.Seen {
                expectEqual(seen.count, count, remark)
                return try #require(seen.last, remark)
            }

            mutating func signed(
                _ method: String,
                _ target: String,
                _ content: [UInt8] = [],
                by signing: SigningForm = Decisions.signing
            ) throws -> (SoftwareKey.Request, RequestProof) {
                let challenge = try gateway.challenges("assertion", client)[0]
                let request = SoftwareKey.Request(
                    method: method,
                    target: target,
                    content: content,
                    challenge: challenge
                )
                return (request, key.proof(of: request, signing: signing))
            }
        }

        /// The stands that tests have one after the other: to start a proxy and a gateway takes
        /// longer than most of what is asked of them.
        ///
        /// `@unchecked Sendable`: the suite is serialized, so one test at a time uses it.
        private final class Stands: @unchecked Sendable {
            private var free: [DecidingProxy: Stand] = [:]

            func take(_ proxy: DecidingProxy) throws -> Stand? {
                if var stand = free.removeValue(forKey: proxy) {
                    stand.beginTest()
                    return stand
                }
                let scenario = try Scenario()
                if let stand = try Stand(proxy, scenario) { return stand }
                scenario.end()
                return nil
            }

            func give(_ stand: Stand) { free[stand.proxy] = stand }

            func end() {
                for stand in free.values { stand.scenario.end() }
                free = [:]
            }
        }

        private static let stands = Stands()

        static func endStands() { stands.end() }

        /// Has a test use a stand, if the proxy's program is there.
        ///
        /// - isAlone: whether the stand is the test's own, since it ends a part of it or reads
        ///   lines that others have there, too.
        /// - isTried: as for the stand, which is the test's own then.
        func play(
            _ proxy: DecidingProxy,
            isAlone: Bool = false,
            isTried: Bool = false,
            _ act: (inout Stand) throws -> Void
        ) throws {
            if isAlone || isTried {
                let scenario = try Scenario()
                defer { scenario.end() }
                guard var stand = try Stand(proxy, scenario, isTried: isTried) else { return }
                return try act(&stand)
            }
            guard var stand = try Self.stands.take(proxy) else { return }
            do {
                try act(&stand)
            } catch {
                stand.scenario.end()
                throw error
            }
            Self.stands.give(stand)
        }

        /// Fields that a client may not say.
        private static let forged: [(name: String, value: String)] = [
            ("App-Attest-Verdict", "pass"), ("App-Attest-Reason", "forged"),
            ("App-Attest-Risk", "forged"), ("App-Attest-App-Id", "forged"),
            ("App-Attest-Environment", "forged"), ("App-Attest-Context", "forged"),
            ("App-Attest-Device-Bits", "forged"), ("App-Attest-Proof", "forged"),
            ("App-Attest-Integrity", "forged"), ("App-Attest-Verdict-Token", "forged"),
        ]
        /// By which proxies tell which request they ask about.
        private static let targets: [(name: String, value: String)] = [
            ("X-Original-Method", "GET"), ("X-Original-URI", "/open"),
            ("X-Original-Host", "other.example"), ("X-Original-URL", "/open"),
            ("X-Forwarded-Method", "GET"), ("X-Forwarded-Uri", "/open"),
            ("X-Forwarded-Host", "other.example"), ("X-Forwarded-Proto", "https"),
            ("X-Envoy-Original-Path", "/open"), ("X-Rewrite-URL", "/open"),
        ]

        @Test(arguments: DecidingProxy.allCases)
        func `what is admitted reaches the application once, with the verdict`(
            proxy: DecidingProxy
        ) throws {
            try play(proxy) { stand in
                // No other test asks for it: the line of the log is looked for by the path.
                let path = "/orders/admitted"
                let admin = try stand.gateway.adminClient()
                let earlier = try Metrics(admin)["decisions_total"]
                let (request, proof) = try stand.signed("GET", path + "?x=%20a&b=c")
                let answer = try stand.client.send(request, proof)
                expectEqual(answer.status, 200, "\(answer.text)")
                expectEqual(answer.head.value("App-Attest-Error"), nil)
                // The others have no place for it in their examples.
                let passesChallenge = proxy != .caddy && proxy != .traefik
                expectEqual((answer.value("App-Attest-Challenge") != nil), passesChallenge)
                let seen = try stand.last(1)
                expectEqual(seen.target, path + "?x=%20a&b=c")
                expectEqual(seen.method, "GET")
                expectEqual(seen.head.value("Host"), "api.example.com")
                expectEqual(seen.head.value("App-Attest-Verdict"), "pass")
                expectEqual(seen.head.value("App-Attest-App-Id"), Scenario.appID)
                expectEqual(seen.head.value("App-Attest-Key-Id"), proof.keyID)
                expectEqual(seen.head.value("App-Attest-Environment"), "test")
                expectEqual(seen.head.all("App-Attest-Verdict-Token").count, 1)
                #expect(!seen.head.has("App-Attest-Assertion"))
                let line = try stand.gateway.line(about: path)
                #expect(line["decides"] as? String == proxy.form)
                #expect(line["verdict"] as? String == "pass")
                // Envoy names the machine's own address for a client of the loopback interface.
                let client = line["client"] as? String
                #expect(client == "127.0.0.1" || proxy.isEnvoy && client != nil)
                #expect(line["rule"] as? String == "orders")

                let again = try stand.client.send(request, proof)
                expectEqual(again.status, 401, "\(again.text)")
                expectEqual(again.reason, "counter-replayed")
                expectEqual(stand.seen.count, 1)

                let content = Array("hello".utf8)
                let (post, postProof) = try stand.signed("POST", "/orders/2", content)
                try expectEqual(stand.client.send(post, postProof).status, 200)
                try expectEqual(stand.last(2).count, 5)

                #expect(try Metrics(admin)["decisions_total"] >= earlier + 3)
            }
        }

        @Test(arguments: DecidingProxy.allCases)
        func `a refusal tells the client why, and how to go on`(proxy: DecidingProxy) throws {
            try play(proxy) { stand in
                let answer = try stand.client.send("GET", "/orders/1")
                expectEqual(answer.status, 401, "\(answer.text)")
                expectEqual(answer.value("App-Attest-Error"), "assertion-missing;next=sign-again")
                expectEqual(answer.value("WWW-Authenticate")?.hasPrefix("AppAttest "), true)
                expectEqual(answer.reason, "assertion-missing")
                expectEqual(answer.member("next"), "sign-again")
                let challenge = try #require(answer.value("App-Attest-Challenge"))
                expectEqual(answer.member("challenge"), challenge)
                let request = SoftwareKey.Request(
                    method: "GET",
                    target: "/orders/1",
                    content: [],
                    challenge: challenge
                )
                let proof = stand.key.proof(of: request, signing: Self.signing)
                try expectEqual(stand.client.send(request, proof).status, 200)

                // The proof was for another target.
                let (other, otherProof) = try stand.signed("GET", "/orders/1")
                let moved = try stand.client.send("GET", "/orders/2", otherProof.fields)
                expectEqual(moved.status, 403, "\(other) \(moved.text)")
                expectEqual(moved.reason, "signature-mismatch")
                let (_, deleteProof) = try stand.signed("GET", "/orders/3")
                try expectEqual(
                    stand.client.send("DELETE", "/orders/3", deleteProof.fields).status,
                    403
                )

                let denied = try stand.client.send("GET", "/closed/x")
                expectEqual(denied.status, 404, "\(denied.text)")
                expectEqual(denied.reason, "no-rule")
                expectEqual(stand.seen.count, 1)
            }
        }

        @Test(arguments: DecidingProxy.allCases)
        func `a client that is only observed learns what it would need`(
            proxy: DecidingProxy
        ) throws {
            try play(proxy) { stand in
                // The others have no place for it in their examples.
                let passesNext = proxy != .caddy && proxy != .traefik
                let answer = try stand.client.send("GET", "/watched/1")
                expectEqual(answer.status, 200, "\(answer.text)")
                let next = answer.head.all("App-Attest-Next")
                let expected = #"sign-again;sign="method target challenge""#
                expectEqual(next.count, passesNext ? 1 : 0)
                #expect(next.allSatisfy { $0.hasPrefix(expected) }, "\(next)")
                // An application can't say it.
                let open = try stand.client.send("GET", "/open")
                expectEqual(open.status, 200)
                #expect(!open.head.has("App-Attest-Next"))
                expectEqual(stand.seen.count, 2)
            }
        }

        /// Istio refuses at the pod, so the refusal passes through the ingress gateway's route.
        @Test func `Istio's example deletes nothing of a refusal`() throws {
            let example = try DecidingProxy.example("istio.yaml")
            #expect(example.contains("kind: VirtualService"))
            #expect(!example.contains("response:"))
        }

        @Test(arguments: DecidingProxy.allCases)
        func `what a client says of target and verdict does not count`(
            proxy: DecidingProxy
        ) throws {
            try play(proxy) { stand in
                for field in Self.targets + [("x-forwarded-uri", "/open")] {
                    let answer = try stand.client.send("GET", "/orders/1", [field])
                    expectEqual(answer.status, 401, "\(field): \(answer.text)")
                }
                try expectEqual(stand.client.send("GET", "/orders/1", Self.targets).status, 401)
                #expect(stand.seen.isEmpty)

                let key: (name: String, value: String) = ("App-Attest-Key-Id", "forged")
                for path in ["/open", "/watched/1"] {
                    let count = stand.seen.count
                    let fields = Self.forged + [key] + Self.targets
                    let answer = try stand.client.send("GET", path, fields)
                    expectEqual(answer.status, 200, "\(path): \(answer.text)")
                    let seen = try stand.last(count + 1)
                    expectEqual(seen.target, path)
                    for (name, value) in Self.forged + [key] {
                        let values = seen.head.all(name).filter { !$0.isEmpty }
                        #expect(!values.contains(value), "\(path) \(name)")
                    }
                    #expect(!seen.head.all("X-Forwarded-Proto").contains("https"), "\(path)")
                    let verdicts = seen.head.all("App-Attest-Verdict").filter { !$0.isEmpty }
                    expectEqual(verdicts, path == "/open" ? [] : ["refuse"])
                }
                let count = stand.seen.count
                for name in ["App_Attest_Verdict", "APP-ATTEST_VERDICT", "app_attest_key_id"] {
                    _ = try stand.client.send("GET", "/open", [(name, "pass")])
                }
                for seen in stand.seen.dropFirst(count) {
                    #expect(!seen.head.fields.contains { $0.name.contains("_") })
                }
            }
        }

        @Test(arguments: DecidingProxy.allCases)
        func `a client chooses neither a line of the log nor a trace`(
            proxy: DecidingProxy
        ) throws {
            try play(proxy, isAlone: true) { stand in
                let trace = "0af7651916cd43dd8448eb211c80319c"
                let names = [
                    (name: "X-Request-Id", value: "chosen-by-the-client"),
                    (name: "traceparent", value: "00-\(trace)-b7ad6b7169203331-01"),
                    (name: "tracestate", value: "vendor=1"),
                ]
                let challenges = "/.well-known/app-attest/challenges"
                let purpose = Array(#"{"purpose":"assertion"}"#.utf8)
                try expectEqual(stand.client.send("GET", "/open", names).status, 200)
                _ = try stand.client.send("POST", challenges, names, content: purpose)
                for path in ["/open", challenges] {
                    let line = try stand.gateway.line(about: path)
                    #expect(line["request_id"] is String, "\(path)")
                    #expect(line["request_id"] as? String != names[0].value, "\(path)")
                    #expect(line["trace_id"] == nil, "\(path)")
                }
                let head = try stand.last(1).head
                #expect(!head.has("traceparent") && !head.has("tracestate"))
                #expect(head.value("X-Request-Id") != names[0].value)
                // The proxy's own name is that of the line.
                if [.nginx, .caddy, .haproxy].contains(proxy) {
                    let line = try stand.gateway.line(about: "/open")
                    let id = try #require(line["request_id"] as? String)
                    expectEqual(head.all("X-Request-Id"), [id])
                }
            }
        }

        @Test(arguments: DecidingProxy.allCases)
        func `no spelling of a path reaches an enforced one without a proof`(
            proxy: DecidingProxy
        ) throws {
            try play(proxy) { stand in
                for target in [
                    "/orders%2f1", "//orders/1", "/open/../orders/1", "/open/%2e%2e/orders/1",
                    "/orders;x/1", "/./orders/1", "/open/..;/orders/1", "/%6frders/1",
                    "/ORDERS/1", "/orders//1", "/open/..%2forders/1", "/open%2f..%2forders%2f1",
                    "http://api.example.com/orders/1", "/orders/1#x", "/orders\\1",
                    "/.well-known/app-attest/../../orders/1",
                    "/.well-known/app-attest/..%2f..%2forders/1",
                    "/orders/..%2f.well-known/app-attest/../../orders/1",
                ] {
                    let raw = "GET \(target) HTTP/1.1\r\nHost: api.example.com\r\n\r\n"
                    let answer = try? stand.client.send(raw: Array(raw.utf8))
                    #expect(answer?.status != 200, "\(target)")
                    stand.client.close()
                }
                expectEqual(stand.seen.map(\.target), [])

                // What is signed is what the application gets, or the request is refused.
                for target in ["/orders/a%20b", "/orders/%41", "/orders/a?b=/../c", "/orders/a?"] {
                    let count = stand.seen.count
                    let (request, proof) = try stand.signed("GET", target)
                    let answer = try stand.client.send(request, proof)
                    guard answer.status == 200 else {
                        expectEqual(stand.seen.count, count, "\(target)")
                        continue
                    }
                    try expectEqual(stand.last(count + 1).target, target)
                }
            }
        }

        @Test(arguments: DecidingProxy.allCases)
        func `preflights and excused clients are admitted where their rule says so`(
            proxy: DecidingProxy
        ) throws {
            try play(proxy) { stand in
                let asked = [
                    ("Origin", "https://a.example"), ("Access-Control-Request-Method", "GET"),
                ]
                try expectEqual(stand.client.send("OPTIONS", "/site/1", asked).status, 200)
                try expectEqual(stand.last(1).method, "OPTIONS")
                try expectEqual(stand.last(1).head.value("App-Attest-Verdict"), "refuse")
                let cookie = ("Cookie", "a=b")
                try expectEqual(
                    stand.client.send("OPTIONS", "/site/2", asked + [cookie]).status,
                    401
                )
                let override = ("X-HTTP-Method-Override", "DELETE")
                let answer = try stand.client.send("OPTIONS", "/site/3", asked + [override])
                if answer.status == 200 {
                    #expect(try !stand.last(2).head.has(override.0))
                }
                try expectEqual(stand.client.send("OPTIONS", "/orders/1", asked).status, 401)

                let count = stand.seen.count
                let excused = ("App-Attest-Unsupported", "1")
                try expectEqual(stand.client.send("GET", "/site/4", [excused]).status, 200)
                try expectEqual(
                    stand.last(count + 1).head.value("App-Attest-Reason"),
                    "unsupported"
                )
                try expectEqual(stand.client.send("GET", "/orders/1", [excused]).status, 403)
            }
        }

        @Test(arguments: DecidingProxy.allCases)
        func `while the gateway is down nothing is forwarded`(proxy: DecidingProxy) throws {
            try play(proxy, isAlone: true) { stand in
                try expectEqual(stand.client.send("GET", "/open").status, 200)
                let count = stand.seen.count
                try stand.gateway.crash()
                // Both at once: a proxy may try for seconds.
                let port = stand.port
                let asked = ["/open", "/orders/1"].map { path in
                    Thread.Answer { try HTTPClient(port: port).send("GET", path) }
                }
                for answer in asked { #expect(try answer.value().status >= 500) }
                expectEqual(stand.seen.count, count)
            }
        }
    }
}

/// Ends the stands that tests have one after the other, once the last test has ended.
struct EndOfStands: SuiteTrait, TestScoping {
    func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        defer { Scenarios.Decisions.endStands() }
        try await function()
    }
}

extension GatewayProcess {
    /// Where its second listener is.
    func secondPort() throws -> UInt16 { try port(ofListener: 2) }

    /// Where a listener is, counted from 1.
    func port(ofListener number: Int) throws -> UInt16 {
        try child.wait(for: "listener \(number)") { _, complained in
            let parts = complained.components(separatedBy: "listening on 127.0.0.1:")
            guard parts.count > number else { return nil }
            return UInt16(parts[number].prefix { $0.isNumber })
        }
    }
}
