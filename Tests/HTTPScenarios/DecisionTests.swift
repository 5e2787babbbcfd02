import Expectations
import LoopbackKit
import Testing

extension Scenarios {
    /// What a listener with `decides` answers to questions, by their bytes.
    struct DecisionTests {
        private static let rules = """
            trusted_proxies: [127.0.0.1/32]
            rules:
              - { id: no, match: { path: /no/** }, mode: deny }
              - { id: open, match: { method: [GET, POST], path: /open }, mode: off, origin: shop }
            """

        /// Asks a gateway whose default denies; its origin must see nothing.
        private func ask(
            _ form: String,
            _ question: String,
            more: String = Self.rules
        ) throws -> WireResponse {
            let origin = try TestOrigin()
            defer { origin.stop() }
            let gateway = try TestGateway(
                [("shop", [origin.address])],
                listen: "address: 127.0.0.1:0, decides: \(form)",
                fallback: "{ mode: deny }",
                more: more
            )
            defer { gateway.stop() }
            let answer = try gateway.ask(question)
            #expect(origin.connections.isEmpty)
            return answer
        }

        private static func question(
            _ lines: [String],
            line: String = "GET /question HTTP/1.1"
        ) -> String {
            ([line, "Host: gateway"] + lines).map { $0 + "\r\n" }.joined() + "\r\n"
        }

        private static func names(_ method: String, _ target: String) -> [String] {
            [
                "X-Original-Method: \(method)", "X-Original-URI: \(target)",
                "X-Original-Host: a.example",
            ]
        }

        @Test(arguments: ["/open", "/open?a=b"])
        func `a question about what is forwarded unjudged gets 200`(target: String) throws {
            let answer = try ask("auth_request", Self.question(Self.names("POST", target)))
            expectEqual(answer.status, 200)
            #expect(answer.body.isEmpty)
            expectEqual(answer.head.value("cache-control"), "no-store")
            #expect(!answer.head.has("app-attest-verdict"))
            let forwarded = [
                "X-Forwarded-Method: POST", "X-Forwarded-Uri: \(target)",
                "X-Forwarded-Host: a.example",
            ]
            try expectEqual(ask("forward_auth", Self.question(forwarded)).status, 200)
            let own = Self.question([], line: "POST \(target) HTTP/1.1")
            let envoys = try ask("ext_authz", own)
            expectEqual(envoys.status, 200)
            let removed = envoys.head.value("x-envoy-auth-headers-to-remove") ?? ""
            #expect(removed.contains("App-Attest-Verdict, App-Attest-Reason, App-Attest-Key-Id"))
            // A rule that verifies nothing leaves a proof to the application.
            #expect(!removed.contains("App-Attest-Assertion"))
        }

        @Test(arguments: [
            ("/no/x", 404, "no-rule"), ("/elsewhere", 404, "no-rule"),
            ("/open/../no/x", 400, "path-dot-segment"), ("/no%2fx", 400, "path-encoded-slash"),
            ("/open#x", 400, "target-fragment"), ("/op en", 400, "version-syntax"),
            ("http://a.example/open", 400, "question-unclear"), ("open", 400, "question-unclear"),
        ])
        func `what would not be forwarded gets its refusal`(
            target: String,
            status: Int,
            reason: String
        ) throws {
            let answer = try ask("auth_request", Self.question(Self.names("GET", target)))
            expectEqual(answer.status, status)
            expectEqual(answer.head.value("app-attest-error")?.hasPrefix(reason), true)
        }

        /// A proxy reads the status alone. gRPC's form of a refusal has the status 200.
        @Test(arguments: ["application/grpc", "application/grpc+proto", "application/grpc-web"])
        func `a refused question about a gRPC call is no 200`(type: String) throws {
            let content = ["Content-Type: \(type)"]
            for (form, lines, line) in [
                ("auth_request", Self.names("POST", "/no/x"), "POST /question HTTP/1.1"),
                ("ext_authz", [], "POST /no/x HTTP/1.1"),
            ] {
                let answer = try ask(form, Self.question(lines + content, line: line))
                expectEqual(answer.status, 404, "\(form)")
                #expect(!answer.head.has("grpc-status"), "\(form)")
                let twin = Self.question(lines + content + ["App_Attest_Key_Id: x"], line: line)
                try expectEqual(ask(form, twin).status, 400, "\(form)")
                let unclear = Self.question(lines + content + ["Content-Type: x"], line: line)
                #expect(try ask(form, unclear).status >= 400, "\(form)")
            }
        }

        /// The other proxy would forward it, so a 200 of the probe would be a way around the rules.
        @Test func `a question about the path of a probe is judged by the rules`() throws {
            let more = Self.rules + "\nprobes: { live: /livez, ready: /readyz }"
            let forwarded = [
                "X-Forwarded-Method: GET", "X-Forwarded-Uri: /livez", "X-Forwarded-Host: a.example",
            ]
            for (form, question) in [
                ("auth_request", Self.question(Self.names("GET", "/livez"))),
                ("forward_auth", Self.question(forwarded)),
                ("ext_authz", Self.question([], line: "GET /livez HTTP/1.1")),
            ] {
                let answer = try ask(form, question, more: more)
                expectEqual(answer.status, 404, "\(form)")
                expectEqual(answer.head.value("app-attest-error")?.hasPrefix("no-rule"), true)
            }
        }

        @Test func `a question that names no request, or two, gets no decision`() throws {
            let names = Self.names("GET", "/open")
            var questions = names.indices.map { index in
                var some = names
                some.remove(at: index)
                return some
            }
            questions += names.map { names + [$0] }
            for lines in questions {
                let answer = try ask("auth_request", Self.question(lines))
                expectEqual(answer.status, 400, "\(lines)")
                expectEqual(answer.head.value("app-attest-error"), "question-unclear", "\(lines)")
            }
        }

        @Test func `what a proxy must not forward gets no decision`() throws {
            let forwarded = [
                "X-Forwarded-Method: GET", "X-Forwarded-Uri: /open", "X-Forwarded-Host: a.example",
            ]
            for (line, reason) in [
                ("Upgrade: h2c", "protocol-refused"), ("Upgrade: x, websocket", "protocol-refused"),
                ("HTTP2-Settings: AAM", "protocol-refused"),
                ("App_Attest_Verdict: pass", "field-disguised"),
                ("App.Attest.Key.Id: x", "field-disguised"),
                ("X_Original_URI: /no", "field-disguised"),
                ("X_HTTP_Method_Override: DELETE", "field-disguised"),
                ("X.Original.URL: /no", "field-disguised"),
                ("Upgrade: websocket", ""), ("user_id: 1", ""),
            ] {
                for (form, question) in [
                    ("auth_request", Self.question(Self.names("GET", "/open") + [line])),
                    ("forward_auth", Self.question(forwarded + [line])),
                    ("ext_authz", Self.question([line], line: "GET /open HTTP/1.1")),
                ] {
                    let answer = try ask(form, question)
                    expectEqual(answer.status, reason.isEmpty ? 200 : 400, "\(form) \(line)")
                    let error = answer.head.value("app-attest-error") ?? ""
                    #expect(error.hasPrefix(reason), "\(form) \(line): \(error)")
                }
            }
        }

        @Test func `somebody who is no trusted proxy gets no decision`() throws {
            let rules = Self.rules.replacing("127.0.0.1/32", with: "192.0.2.0/24")
            for form in ["auth_request", "ext_authz"] {
                let question = Self.question(Self.names("GET", "/open"), line: "GET /open HTTP/1.1")
                let answer = try ask(form, question, more: rules)
                expectEqual(answer.status, 403)
                expectEqual(answer.head.value("app-attest-error"), "asker-untrusted")
            }
        }

        @Test func `a question with content gets no decision`() throws {
            for form in ["auth_request", "ext_authz"] {
                let line = "POST /open HTTP/1.1"
                let lines = Self.names("POST", "/open") + ["Content-Length: 2"]
                let answer = try ask(form, Self.question(lines, line: line) + "hi")
                expectEqual(answer.status, 413)
                expectEqual(
                    answer.head.value("app-attest-error")?.hasPrefix("content-refused"),
                    true
                )
            }
        }

        @Test func `the gateway's own endpoints are not asked by a question`() throws {
            let path = "/.well-known/app-attest/challenges"
            let own = Self.question(["Content-Length: 0"], line: "POST \(path) HTTP/1.1")
            try expectEqual(ask("ext_authz", own).status, 404)
            try expectEqual(
                ask("auth_request", Self.question(Self.names("POST", path))).status,
                404
            )
        }

        /// A proxy's connection has the questions of many clients.
        @Test func `no client of a trusted proxy ends the HTTP/2 connection of its questions`()
            throws
        {
            let origin = try TestOrigin()
            defer { origin.stop() }
            let gateway = try TestGateway(
                [("shop", [origin.address])],
                listen: "address: 127.0.0.1:0, http2: on, decides: ext_authz",
                fallback: "{ mode: deny }",
                more: Self.rules + "\nlimits: { http2: { provoked_resets: 20/m, pings: 20/m } }"
            )
            defer { gateway.stop() }
            let client = try HTTP2Client(try gateway.connect())
            let twice = [("content-type", "a"), ("content-type", "b")]
            for _ in 0..<60 {
                try expectEqual(client.ask(HTTP2Client.get("/open", twice)).status, 400)
            }
            let long = [("app-attest-assertion", String(repeating: "a", count: 50_000))]
            for _ in 0..<5 {
                try expectEqual(client.ask(HTTP2Client.get("/open", long)).status, 431)
            }
            // Go's client pings with each request that it gives up.
            for _ in 0..<40 { try client.send(.ping, [UInt8](repeating: 0, count: 8)) }
            try expectEqual(client.ask(HTTP2Client.get("/open")).status, 200)
            #expect(client.goAways.isEmpty)
            #expect(origin.connections.isEmpty)
        }

        @Test func `one connection carries many questions`() throws {
            let origin = try TestOrigin()
            defer { origin.stop() }
            let gateway = try TestGateway(
                [("shop", [origin.address])],
                listen: "address: 127.0.0.1:0, decides: auth_request",
                fallback: "{ mode: deny }",
                more: Self.rules
            )
            defer { gateway.stop() }
            let wire = try gateway.connect()
            // What is wrong with the request says nothing about the question.
            for (target, status) in [
                ("/open", 200), ("/no/x", 404), ("", 400), ("/open/../no/x", 400),
                ("/open#x", 400), ("/op en", 400), ("/open", 200),
            ] {
                try wire.send(Self.question(Self.names("GET", target)))
                try expectEqual(wire.readFinalResponse(to: "GET").status, status)
            }
        }
    }
}
