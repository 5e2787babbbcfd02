import AppAttest
import Expectations
import Foundation
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// What a client is told besides its answer: what to sign, what to do next, and nothing that
    /// other clients could get from a cache.
    @Suite struct Notices {
        private static let signing = SigningForm.lines([.method, .target], headers: ["x-a"])
        private static let parameters = #";sign="method target";headers="x-a";counter=64"#

        /// What is said of a key that is not known. It names that key: an app that keeps the
        /// response in a cache of its own reads it again when it has another key.
        private static func enrol(_ key: SoftwareKey) -> String {
            "enrol\(parameters);key=\"\(key.keyID.base64)\""
        }

        private static func rules(_ mode: String, _ more: String = "") -> String {
            """
            - id: orders
              match: { path: /v1/orders }
              mode: \(mode)
              sign: [method, target]
              headers: [x-a]
            \(more)
            """
        }

        private static func request(_ challenge: String? = nil) -> SoftwareKey.Request {
            SoftwareKey.Request(
                method: "GET",
                target: "/v1/orders",
                challenge: challenge,
                fields: ["x-a": "1"]
            )
        }

        // MARK: What is to be signed

        @Test func `a client learns from a 401 what the route signs`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules("enforce"))
            let client = try scenario.serve().client()
            let missing = try client.send("GET", "/v1/orders")
            let field = try #require(missing.value("WWW-Authenticate"))
            let challenge = try #require(missing.member("challenge"))
            expectEqual(
                field,
                """
                AppAttest error="assertion-missing", next="sign-again", \
                challenge="\(challenge)", sign="method target", headers="x-a", \
                counter="64"
                """
            )
            var stranger = Scenario.device.makeKey()
            let request = Self.request()
            let unknown = try client.send(
                request,
                stranger.proof(of: request, signing: Self.signing)
            )
            expectEqual(
                unknown.value("WWW-Authenticate"),
                """
                AppAttest error="key-unknown", next="enrol", sign="method target", \
                headers="x-a", counter="64"
                """
            )
        }

        // MARK: What comes next

        @Test func `an observed route tells a client without a key to enrol`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin(
                fields: "App-Attest-Next: sign-again\r\nX_App_Attest_Next: x\r\n"
            )
            try scenario.configure(origin, rules: Self.rules("observe"))
            var known = try scenario.imported()[0]
            let client = try scenario.serve().client()
            func next(_ key: inout SoftwareKey, _ damage: AssertionDamage? = nil) throws -> String?
            {
                let request = Self.request()
                let proof = key.proof(of: request, signing: Self.signing, damage: damage)
                let answer = try client.send(request, proof)
                expectEqual(answer.status, 200)
                let fields = answer.head.all("App-Attest-Next")
                #expect(fields.count < 2)
                return fields.first
            }
            var stranger = Scenario.device.makeKey()
            try expectEqual(next(&stranger), Self.enrol(stranger))
            try expectEqual(next(&known), nil)
            try expectEqual(next(&known, .counterRepeated), "sign-again" + Self.parameters)
            // The client may sign by an outdated plan: it is told what the rule signs.
            try expectEqual(next(&known, .signature), "sign-again" + Self.parameters)
            let bare = try client.send("GET", "/v1/orders")
            expectEqual(bare.head.all("App-Attest-Next"), ["sign-again" + Self.parameters])
            // A route that judges nothing says nothing.
            try expectEqual(client.send("GET", "/open").head.all("App-Attest-Next"), [])
        }

        @Test func `a client that the rollout spares is told what it will need`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            let rollout = "  rollout: { percent: 0%, by: key }"
            try scenario.configure(origin, rules: Self.rules("enforce", rollout))
            let client = try scenario.serve().client()
            var stranger = Scenario.device.makeKey()
            let request = Self.request()
            let answer = try client.send(
                request,
                stranger.proof(of: request, signing: Self.signing)
            )
            expectEqual(answer.status, 200)
            expectEqual(answer.value("App-Attest-Next"), Self.enrol(stranger))
        }

        @Test func `an origin can't tell a client what to do with its key`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin(
                fields: """
                    WWW-Authenticate: Basic realm="a, b", AppAttest error="x", next="enrol"\r
                    WWW-Authenticate: Bearer, appattest next=enrol\r
                    WWW-Authenticate: AppAttest error="no end\r
                    App-Attest-Next: enrol\r

                    """
            )
            try scenario.configure(origin, rules: "[]")
            let answer = try scenario.serve().client().send("GET", "/open")
            expectEqual(answer.status, 200)
            expectEqual(answer.head.all("WWW-Authenticate"), [#"Basic realm="a, b""#, "Bearer"])
            expectEqual(answer.value("App-Attest-Next"), nil)
        }

        @Test func `a client learns how many of its requests may overtake each other`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            let widths = [("{ window: 7 }", "7"), ("strict", nil)]
            for (mode, name) in [("enforce", "WWW-Authenticate"), ("observe", "App-Attest-Next")] {
                for (rule, width) in widths {
                    let rules = Self.rules(mode, "  counter: \(rule)")
                    try scenario.configure(origin, rules: rules)
                    let gateway = try scenario.serve()
                    let answer = try gateway.client().send("GET", "/v1/orders")
                    let field = try #require(answer.value(name))
                    let counter = width.map {
                        mode == "enforce" ? #", counter="\#($0)""# : ";counter=\($0)"
                    }
                    #expect(field.hasSuffix(#"headers="x-a""# + (counter ?? "")), "\(field)")
                    try expectEqual(gateway.stop(), 0)
                }
            }
        }

        // MARK: Whose answer it is

        @Test func `a refusal is recognised as the gateway's own, whatever the origin answers`()
            throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            let mark = "App-Attest-Error"
            let origin = try scenario.origin(
                fields: "\(mark): signature-mismatch;next=none\r\napp-attest-error: key-unknown\r\n"
            )
            let observed = """
                - id: observed
                  match: { path: /v1/observed }
                  mode: observe
                - id: nowhere
                  match: { path: /v1/nowhere }
                  mode: deny
                """
            try scenario.configure(origin, rules: Self.rules("enforce") + observed)
            var key = try scenario.imported()[0]
            let client = try scenario.serve().client()
            for path in ["/open", "/v1/observed"] {
                let answer = try client.send("GET", path)
                expectEqual(answer.status, 200)
                expectEqual(answer.head.all(mark), [], "\(path)")
            }
            let missing = try client.send("GET", "/v1/orders")
            expectEqual(missing.head.all(mark), ["assertion-missing;next=sign-again"])
            let request = Self.request()
            let proof = key.proof(of: request, signing: Self.signing, damage: .signature)
            let forbidden = try client.send(request, proof)
            expectEqual(forbidden.status, 403)
            expectEqual(forbidden.head.all(mark), ["signature-mismatch;next=none"])
            // By an outdated plan a client signs other bytes: it learns from the refusal which.
            expectEqual(
                forbidden.value("WWW-Authenticate"),
                #"AppAttest error="signature-mismatch", next="none", sign="method target", "#
                    + #"headers="x-a", counter="64""#
            )
            let malformed = try client.send("GET", "/v1/%zz")
            expectEqual(malformed.status, 400)
            expectEqual(malformed.head.all(mark), [malformed.reason + ";next=fix-client"])
            try expectEqual(
                client.send("GET", "/v1/nowhere").head.all(mark),
                ["no-rule;next=fix-client"]
            )
            let endpoints = "/.well-known/app-attest"
            let called = try client.send("POST", endpoints + "/keys", content: [])
            expectEqual(called.head.all(mark), ["request-malformed;next=fix-client"])
            let served = try client.send("POST", endpoints + "/challenges", content: [])
            expectEqual(served.status, 200)
            expectEqual(served.head.all(mark), [])
        }

        @Test func `no part of an origin's response speaks for the gateway, trailers included`()
            throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            let forged = ["Error: key-unknown;next=enrol", "Next: enrol", "Challenge: AQEA"]
                .flatMap { ["App-Attest-\($0)\r\n", "X-App-Attest-\($0)\r\n"] }
                .joined()
            let origin = try TestOrigin { connection in
                while try connection.nextRequest() != nil {
                    try connection.wire.send(
                        "HTTP/1.1 103 Early Hints\r\n\(forged)Link: </a>\r\n\r\n"
                            + "HTTP/1.1 200 OK\r\n\(forged)Connection: app-attest-error\r\n"
                            + "Trailer: App-Attest-Error\r\nTransfer-Encoding: chunked\r\n\r\n"
                            + "3\r\nok\n\r\n0\r\n\(forged)Server-Timing: a\r\n\r\n"
                    )
                }
            }
            defer { origin.stop() }
            let observed = "- id: observed\n  match: { path: /v1/observed }\n  mode: observe"
            let rules = observed + "\n  next_challenge: false"
            try scenario.configure(origin: origin.address, rules: rules)
            let gateway = try scenario.serve()
            for path in ["/open", "/v1/observed"] {
                let wire = try Wire(port: gateway.port)
                let fields = [("TE", "trailers"), ("Connection", "te, close")]
                try wire.send(HTTPClient.head("GET", path, fields) + "\r\n")
                let answer = String(decoding: try wire.readToEnd(), as: UTF8.self)
                #expect(answer.contains("103 Early Hints"))
                #expect(answer.contains("Server-Timing: a"))
                let own = answer.split(separator: "\r\n").filter {
                    $0.lowercased().contains("app-attest-")
                }
                let isObserved = path != "/open"
                expectEqual(own.count, isObserved ? 1 : 0, "\(path): \(own)")
                #expect(own.allSatisfy { $0.hasPrefix("App-Attest-Next: sign-again;sign=") })
            }
        }

        // MARK: Caches

        private static let cacheRules = ["shared", "private", "plain"].map { name in
            """
            - id: \(name)
              match: { path: /\(name) }
              origin: \(name)
              mode: observe
            """
        }

        @Test func `a response marked public carries no challenge`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let fields = [
                ("shared", "Cache-Control: public, max-age=600\r\n"),
                ("private", "Cache-Control: private, max-age=600\r\n"), ("plain", ""),
            ]
            let origins = try fields.map { name, fields in
                let port = try scenario.origin(fields: fields).port
                return "  \(name): { servers: [\"127.0.0.1:\(port)\"] }"
            }
            try scenario.configure(
                origin: "127.0.0.1:1",
                rules: Self.cacheRules.joined(separator: "\n"),
                origins: origins.joined(separator: "\n")
            )
            let client = try scenario.serve().client()
            for (name, _) in fields {
                let answer = try client.send("GET", "/\(name)")
                expectEqual(answer.status, 200)
                let isTold = name != "shared"
                expectEqual((answer.value("App-Attest-Challenge") != nil), isTold, "\(name)")
                expectEqual((answer.value("App-Attest-Next") != nil), isTold, "\(name)")
            }
        }

        // MARK: Preflights

        private static let asked = [
            ("Origin", "https://a.example"), ("Access-Control-Request-Method", "POST"),
            ("Access-Control-Request-Headers", "app-attest-assertion"),
        ]

        @Test func `a CORS preflight reaches the origin where the rule says so`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin(fields: "Access-Control-Allow-Origin: *\r\n")
            let rules = Self.rules("enforce", "  preflight: forward")
            try scenario.configure(origin, rules: rules)
            let gateway = try scenario.serve()
            let answer = try gateway.client().send("OPTIONS", "/v1/orders", Self.asked)
            expectEqual(answer.status, 200)
            expectEqual(answer.value("Access-Control-Allow-Origin"), "*")
            expectEqual(answer.value("App-Attest-Next"), nil)
            let seen = try origin.seen(1)[0]
            expectEqual(seen.method, "OPTIONS")
            expectEqual(seen.head.value("Origin"), "https://a.example")
            expectEqual(seen.head.all("App-Attest-Verdict"), ["refuse"])
            expectEqual(seen.head.all("App-Attest-Reason"), ["preflight"])
            let line = try gateway.line(about: "/v1/orders")
            #expect(line["verdict"] as? String == "refuse")
            #expect(line["reason"] as? String == "preflight")
            let page = try gateway.adminClient().send("GET", "/metrics").text
            let counted = page.split(separator: "\n").filter { $0.contains(#"reason="preflight""#) }
            #expect(counted.contains { $0.hasSuffix(" 1") }, "\(counted)")
        }

        @Test func `an OPTIONS request that carries more than a preflight is refused`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            let rules = Self.rules("enforce", "  preflight: forward")
            try scenario.configure(origin, rules: rules)
            let gateway = try scenario.serve()
            for (name, value, content) in [
                ("Content-Length", "1", "x"), ("Cookie", "a=b", ""),
                ("Authorization", "Bearer x", ""), ("X-HTTP-Method-Override", "POST", ""),
                ("Transfer-Encoding", "chunked", "0\r\n\r\n"), ("App-Attest-Unsupported", "1", ""),
                ("Origin", "https://b.example", ""),
            ] {
                let fields = Self.asked + [(name, value)]
                let head = HTTPClient.head("OPTIONS", "/v1/orders", fields) + "\r\n"
                let answer = try gateway.client().send(raw: Array((head + content).utf8))
                #expect([401, 403].contains(answer.status), "\(name)")
            }
            #expect(origin.seen.isEmpty)
        }

        @Test func `a CORS preflight is judged where the rule does not say otherwise`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules("enforce"))
            let answer = try scenario.serve().client().send("OPTIONS", "/v1/orders", Self.asked)
            expectEqual(answer.reason, "assertion-missing")
            #expect(origin.seen.isEmpty)
        }

        // MARK: The plan

        @Test func `an app's plan is written from the configuration`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules("enforce"))
            let file = scenario.path("portcullis.yaml")
            let printed = try scenario.portcullis("plan", file)
            expectEqual(printed.status, 0)
            let plan = try JSONSerialization.jsonObject(with: Data(printed.printed.utf8))
            let rules = (plan as? [String: Any])?["rules"] as? [[String: Any]]
            expectEqual(rules?.count, 1)
            #expect(rules?.first?["name"] as? String == "orders")
            #expect(rules?.first?["headers"] as? [String] == ["x-a"])
            let path = scenario.path("plan.json")
            let written = try scenario.portcullis("plan", file, "-o", path)
            #expect(written.status == 0 && written.printed.isEmpty)
            try expectEqual(String(contentsOfFile: path, encoding: .utf8), printed.printed)
            let nowhere = try scenario.portcullis("plan", file, "-o", scenario.path("no/plan"))
            expectEqual(nowhere.status, 1)
            #expect(nowhere.complained.contains("no/plan can't be written"))
        }
    }
}
