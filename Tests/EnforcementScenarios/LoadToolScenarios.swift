import Expectations
import Foundation
import LoopbackKit
import Synchronization
import Testing

extension Scenarios {
    /// The load generator as a tool of a pipeline: over HTTP/2, in stages, with limits and reports.
    @Suite(.ofApple, .enabled(if: Scenario.loadProgram != nil)) struct LoadTools {
        private static let rules = """
            - id: bare
              match: { path: /v1/bare }
              mode: enforce
              sign: [method, target]
            - id: orders
              match: { path: /v1/orders }
              mode: enforce
              headers: [idempotency-key]
            """
        private static let mix = "missing=5%,replayed=15%,tampered=10%,stale=10%,unknown=5%"

        /// A gateway with HTTP/1.1 alone, HTTP/2 in the clear and TLS, and a fleet whose keys it
        /// has.
        private struct Stand {
            let scenario: Scenario
            let gateway: GatewayProcess
            /// Of the listeners, in the order above.
            let ports: [UInt16]

            init() throws {
                scenario = try Scenario(.tls)
                let origin = try scenario.origin()
                let made = try Self.load(
                    scenario,
                    [
                        "prepare", scenario.path("fleet.json"), "--app-id", Scenario.appID,
                        "--devices", "100", "--keys", scenario.path("keys.jsonl"), "--root",
                        scenario.path("root.pem"),
                    ]
                )
                expectEqual(made.status, 0, "\(made)")
                let tls = "tls: { certificate: origin.pem, key: origin.key }"
                try scenario.configure(
                    origin: "127.0.0.1:\(origin.port)",
                    apps:
                        "  - { id: \(Scenario.appID), environments: [test], test_root: root.pem }",
                    rules: Scenario.naming(Scenario.appID, in: rules),
                    more: "limits: { address_failures: off }",
                    listeners: """
                          - { address: 127.0.0.1:0, http2: on }
                          - { address: 127.0.0.1:0, \(tls) }
                          - { address: 127.0.0.1:0, http2: off, \(tls) }
                        """
                )
                let config = scenario.path("portcullis.yaml")
                let keys = scenario.path("keys.jsonl")
                let imported = try scenario.portcullis("keys", "import", "--config", config, keys)
                expectEqual(imported.status, 0, "\(imported)")
                gateway = try scenario.serve()
                ports = try gateway.child.wait(for: "four listeners") { _, complained in
                    let found = complained.components(separatedBy: "listening on 127.0.0.1:")
                        .dropFirst().compactMap { UInt16($0.prefix(while: \.isNumber)) }
                    return found.count >= 4 ? Array(found.prefix(4)) : nil
                }
            }

            static func load(
                _ scenario: Scenario,
                _ arguments: [String]
            ) throws -> Scenario.Result {
                guard let program = Scenario.loadProgram else {
                    throw ChildProcess.Failure(description: "no portcullis-load")
                }
                return try scenario.run(program, arguments)
            }

            func run(
                _ url: String,
                _ arguments: [String],
                count: Int = 500
            ) throws -> Scenario.Result {
                let common = [
                    "run", scenario.path("fleet.json"), url, "--config",
                    scenario.path("portcullis.yaml"), "--count", "\(count)", "--mix",
                    LoadTools.mix, "--ca", scenario.path("origin.pem"),
                ]
                return try Self.load(scenario, common + arguments)
            }
        }

        @Test func `over HTTP/2 every verdict of a hostile mix is as expected`() throws {
            let stand = try Stand()
            defer { stand.scenario.end() }
            let clear = "http://127.0.0.1:\(stand.ports[1])"
            let tls = "https://127.0.0.1:\(stand.ports[2])"
            let content = ["-X", "POST", "--content", "0..20000", "-H", "Idempotency-Key: a1"]
            let runs: [(url: String, arguments: [String])] = [
                (clear + "/v1/bare", ["-c", "16"]),
                (clear + "/v1/orders", ["-c", "2", "--streams", "16"] + content),
                (clear + "/v1/bare", ["-c", "2", "--streams", "8", "--rate", "1000"]),
                (
                    tls + "/v1/orders",
                    ["-c", "4", "--streams", "4", "--event-loops", "2"] + content
                ),
                (tls + "/v1/bare", ["-c", "1", "--streams", "100", "--sign-before"]),
            ]
            for (url, arguments) in runs {
                let result = try stand.run(url, ["--http2"] + arguments)
                expectEqual(result.status, 0, "\(url) \(arguments): \(result)")
                #expect(result.printed.contains("all 500 as expected; none of "), "\(result)")
                #expect(result.printed.contains("connections of HTTP/2 with "))
                #expect(result.printed.contains("401 counter-replayed"))
                #expect(result.printed.contains("403 signature-mismatch"))
            }
            try expectEqual(stand.gateway.stop(), 0)
        }

        /// More streams than the gateway allows: no request is lost.
        @Test func `the gateway's limit of streams is kept`() throws {
            let stand = try Stand()
            defer { stand.scenario.end() }
            let url = "http://127.0.0.1:\(stand.ports[1])/v1/bare"
            let result = try stand.run(url, ["--http2", "-c", "1", "--streams", "1000"])
            expectEqual(result.status, 0, "\(result)")
            #expect(!result.printed.contains("stream-refused"), "\(result)")
        }

        @Test func `a listener without HTTP/2 is named as that`() throws {
            let stand = try Stand()
            defer { stand.scenario.end() }
            for url in [
                "http://127.0.0.1:\(stand.ports[0])/v1/bare",
                "https://127.0.0.1:\(stand.ports[3])/v1/bare",
            ] {
                let result = try stand.run(url, ["--http2"])
                expectEqual(result.status, 2, "\(url): \(result)")
                #expect(result.complained.contains("no-http2; give its listener"), "\(result)")
            }
            for (arguments, text) in [
                (["--streams", "4"], "--streams is for --http2"),
                (["--http2", "--chunked"], "--chunked is for HTTP/1.1"),
            ] {
                let url = "http://127.0.0.1:\(stand.ports[1])/v1/bare"
                let result = try stand.run(url, arguments)
                expectEqual(result.status, 2, "\(result)")
                #expect(result.complained.contains(text), "\(result)")
            }
        }

        /// What the load generator says of four requests on two streams of one connection.
        ///
        /// - script: plays the gateway; it gets the number of the connection, from 1.
        private static func run(
            _ arguments: [String] = [],
            script: @escaping @Sendable (HTTP2Server, Int) throws -> Void
        ) throws -> Scenario.Result {
            let connections = Mutex(0)
            let origin = try TestOrigin { connection in
                let number = connections.withLock { count in
                    count += 1
                    return count
                }
                try script(try HTTP2Server(connection), number)
            }
            defer { origin.stop() }
            let scenario = try Scenario()
            defer { scenario.end() }
            let fleet = scenario.path("fleet.json")
            let made = try Stand.load(scenario, ["prepare", fleet, "--app-id", Scenario.appID])
            expectEqual(made.status, 0, "\(made)")
            let id = "id: \(Scenario.appID), environments: [test], test_root: root.pem"
            try scenario.configure(
                origin: "127.0.0.1:9",
                apps: "  - { \(id) }",
                rules: Scenario.naming(Scenario.appID, in: rules)
            )
            let common = [
                "run", fleet, "http://\(origin.address)/v1/bare", "--config",
                scenario.path("portcullis.yaml"), "--count", "4", "--http2", "-c", "1", "--streams",
                "2", "--json", scenario.path("run.json"),
            ]
            return try Stand.load(scenario, common + arguments)
        }

        private static func answerAll(_ server: HTTP2Server) throws {
            while let (id, _) = try server.nextRequest() { try server.answer(id, content: "ok") }
        }

        /// RFC 9113 §8.7: such a request was not processed, so a client sends it again.
        @Test func `a request whose stream is refused is sent again, and counts once`() throws {
            let gone = try Self.run { server, number in
                guard number == 1 else { return try Self.answerAll(server) }
                guard let (first, _) = try server.nextRequest(),
                    let (second, _) = try server.nextRequest()
                else { return }
                try server.goAway(min(first, second))
                try server.answer(min(first, second), content: "ok")
                // Until the client has ended the connection.
                _ = try server.nextRequest()
            }
            expectEqual(gone.status, 0, "\(gone)")
            #expect(gone.printed.contains("all 4 as expected"), "\(gone)")
            #expect(gone.printed.contains("resent      1 whose stream"), "\(gone)")

            let always = try Self.run { server, _ in
                while let (id, _) = try server.nextRequest() {
                    // REFUSED_STREAM.
                    try server.reset(id, 7)
                }
            }
            expectEqual(always.status, 1, "\(always)")
            #expect(always.printed.contains("failed      4 stream-refused"), "\(always)")
        }

        @Test(arguments: [
            ("connection-broken", 4), ("stream-reset", 1), ("response-timeout", 1),
            ("response-malformed", 1),
        ])
        func `a request without an answer is a failure, and the others go on`(
            failure: String,
            most: Int
        ) throws {
            let result = try Self.run(["--timeout", "2s"]) { server, number in
                guard number == 1, let (id, _) = try server.nextRequest() else {
                    return try Self.answerAll(server)
                }
                switch failure {
                case "connection-broken": return
                case "stream-reset": try server.reset(id, 8)
                case "response-malformed": try server.sendHead(id, [("a", "no status")], ends: true)
                default: break
                }
                try Self.answerAll(server)
            }
            expectEqual(result.status, 1, "\(result)")
            let words = result.printed.split(whereSeparator: \.isWhitespace)
            let place = try #require(words.firstIndex { $0 == failure }, "\(result)")
            let count = try #require(Int(words[place - 1]), "\(result)")
            #expect((1...most).contains(count), "\(result)")
            #expect(result.printed.contains("0 of 4 otherwise than expected"), "\(result)")
        }

        @Test func `a run in stages is measured and limited by stage, and reported`() throws {
            let stand = try Stand()
            defer { stand.scenario.end() }
            let url = "http://127.0.0.1:\(stand.ports[0])/v1/bare"
            let html = stand.scenario.path("run.html")
            let json = stand.scenario.path("run.json")
            // 50 + 100 + 100 requests.
            let stages = [
                "--stage", "500ms:100/s", "--stage", "500ms:100..300/s", "--stage", "500ms:..100/s",
            ]
            let result = try stand.run(
                url,
                stages + [
                    "--html", html, "--json", json, "--fail-if", "3:p50>1h,wrong>0,2:max>1ms",
                    "-H", "X-Hostile: <b>&",
                ]
            )
            // How long the slowest request of a stage takes depends on the machine. The status and
            // both reports say the same of it.
            #expect(result.status == 0 || result.status == 1, "\(result)")
            #expect(result.printed.contains("all 250 as expected"), "\(result)")
            #expect(result.printed.contains("1  500ms:100/s"), "\(result)")
            expectEqual(result.complained, "", "no progress unless it is asked for")
            let exceeded = result.printed.contains("stage 2: max is ")
            expectEqual(result.status, exceeded ? 1 : 0)

            let page = try String(contentsOfFile: html, encoding: .utf8)
            #expect(page.hasPrefix("<!doctype html>") && page.hasSuffix("</html>\n"))
            #expect(page.contains(exceeded ? "✗ failed" : "✓ passed"))
            for part in [
                "<td class=\"text\">2  500ms:100..300/s</td>", "401 counter-replayed", "<svg",
            ] {
                #expect(page.contains(part), "\(part)")
            }
            for part in ["<script", "http://www", "src=", "@import", "url("] {
                #expect(!page.contains(part), "\(part)")
            }
            let data = try Data(contentsOf: URL(filePath: json))
            let object = try JSONSerialization.jsonObject(with: data)
            let document = try #require(object as? [String: Any])
            let rows = try #require(document["stages"] as? [[String: Any]])
            expectEqual(rows.compactMap { $0["sent"] as? Int }, [50, 100, 100])
            let outcomes = try #require(document["outcomes"] as? [[String: Any]])
            expectEqual(outcomes.compactMap { $0["count"] as? Int }.reduce(0, +), 250)
        }

        @Test func `wrong stages and limits are told before anything is sent`() throws {
            let stand = try Stand()
            defer { stand.scenario.end() }
            let url = "http://127.0.0.1:\(stand.ports[0])/v1/bare"
            for (arguments, text) in [
                (["--stage", "1s:5"], "use TIME:RATE"),
                (["--stage", "1s:5/s", "--rate", "5"], "leave out --rate and --duration"),
                (["--stage", "1s:0/s"], "send no request"),
                (["--stage", "1s:..5/s", "--warm-up", "1s"], "give the first stage another rate"),
                (["--stage", "1s:5/s", "--fail-if", "2:wrong>0"], "--stage gives 1 stage"),
                (["--progress", "500ms"], "use whole seconds"),
                (["--progress", "5s", "--quiet"], "give one of them"),
            ] {
                let result = try stand.run(url, arguments)
                expectEqual(result.status, 2, "\(arguments): \(result)")
                #expect(result.complained.contains(text), "\(arguments): \(result)")
            }
        }
    }
}
