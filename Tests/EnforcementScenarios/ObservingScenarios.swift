import Expectations
import Foundation
import LoopbackKit
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// Requests that a rule may refuse before it judges them, where it observes, enforces, or is
    /// told to stop.
    @Suite struct Observing {
        private static let spellings = [
            "/v1/orders/", "//v1/orders", "/V1/Orders", "/v1/orders;jsessionid=1",
        ]

        private static func placeOrder(_ mode: String) -> String {
            """
            - id: place-order
              match: { method: [POST], path: /v1/orders }
              mode: \(mode)
              sign: [method, target]
              headers: [idempotency-key]

            """
        }

        private static let purge = """
            - id: purge-cache
              match: { method: [PURGE], path: /v1/cache/** }
              mode: observe
              sign: [method, target]

            """

        /// A gateway before a legacy API: what no rule is for is off.
        private final class Stand {
            let scenario: Scenario
            let origin: RecordingOrigin
            let gateway: GatewayProcess
            let client: HTTPClient
            private var config: String { scenario.path("portcullis.yaml") }

            init(_ rules: String) throws {
                scenario = try Scenario()
                origin = try scenario.origin()
                try scenario.configure(origin, rules: rules)
                try scenario.serveCalls()
                gateway = try scenario.serve()
                client = gateway.client()
            }

            func end() { scenario.end() }

            /// Runs a subcommand on the configuration.
            func run(_ command: String, _ words: String...) throws -> Scenario.Result {
                try scenario.portcullis([command, "--config", config] + words)
            }

            func explain(_ method: String, _ target: String) throws -> String {
                try scenario.portcullis("explain", config, method, "http://a.example\(target)")
                    .printed
            }

            /// The counters of verdicts about a reason that are not zero.
            func counted(_ reason: String) throws -> [String] {
                let admin = HTTPClient(path: scenario.path("admin.sock"))
                return try admin.send("GET", "/metrics").text.split(separator: "\n")
                    .filter {
                        $0.hasPrefix("portcullis_verdicts_total{") && !$0.hasSuffix(" 0")
                            && $0.contains("reason=\"\(reason)\"")
                    }
                    .map(String.init)
            }

            /// Each of these requests is forwarded with the verdict that it would have had.
            func expectForwarded(_ method: String, _ targets: [String], _ reason: String) throws {
                let before = origin.seen.count
                for target in targets {
                    try expectEqual(client.send(method, target).status, 200, "\(target)")
                }
                let seen = try origin.seen(before + targets.count).dropFirst(before)
                expectEqual(seen.map(\.target), targets)
                for one in seen {
                    expectEqual(one.method, method)
                    expectEqual(one.head.all("App-Attest-Verdict"), ["refuse"])
                    expectEqual(one.head.all("App-Attest-Reason"), [reason])
                }
            }

            /// Each of these requests is refused with 400, and the origin sees none.
            func expectRefused(_ method: String, _ targets: [String], _ reason: String) throws {
                let before = origin.seen.count
                for target in targets {
                    let answer = try client.send(method, target)
                    expectEqual(answer.status, 400, "\(target)")
                    expectEqual(answer.reason, reason, "\(target)")
                }
                expectEqual(origin.seen.count, before)
            }
        }

        @Test
        func
            `other spellings of an observed path go on, and count as would-be refusals`()
            throws
        {
            let stand = try Stand(Self.placeOrder("observe"))
            defer { stand.end() }
            try stand.expectForwarded("POST", Self.spellings, "path-ambiguous")
            let counted = try stand.counted("path-ambiguous")
            expectEqual(counted.count, 1, "\(counted)")
            let line = try #require(counted.first)
            #expect(line.contains(#"{rule="place-order",mode="observe",verdict="refuse","#))
            #expect(line.contains(#"reason="path-ambiguous",enforced="false""#))
            #expect(line.hasSuffix(" 4"), "\(line)")
            let logged = try stand.gateway.line(about: "/V1/Orders")
            #expect(logged["rule"] as? String == "place-order")
            #expect(logged["mode"] as? String == "observe")
            #expect(logged["verdict"] as? String == "refuse")
            #expect(logged["reason"] as? String == "path-ambiguous")
            #expect(logged["enforced"] as? Bool == false)
            #expect(logged["status"] as? Int == 200)
            let why = try stand.run("why", try #require(logged["request_id"] as? String)).printed
            #expect(why.contains(" path-ambiguous: "), "\(why)")
            #expect(why.contains("  rule    place-order, observe"), "\(why)")
            #expect(why.contains("  answer  none of the gateway's: forwarded, since"), "\(why)")
            let report = try stand.run("report", "place-order").printed
            #expect(report.contains("    reasons: path-ambiguous 4\n"), "\(report)")
            let explained = try stand.explain("POST", "/V1/Orders")
            #expect(explained.contains("  forwarded unjudged: place-order ("), "\(explained)")
            #expect(explained.contains("counts it as path-ambiguous"), "\(explained)")
        }

        @Test func `what two observing rules dispute counts in the report of both`() throws {
            let other = """
                - id: old-spelling
                  match: { method: [POST], path: /V1/** }
                  mode: enforce
                  sign: [method, target]

                """
            let stand = try Stand(Self.placeOrder("enforce") + other)
            defer { stand.end() }
            try expectEqual(stand.run("rollout", "--all", "observe").status, 0)
            try stand.expectForwarded("POST", ["/V1/Orders"], "path-ambiguous")
            let counted = try stand.counted("path-ambiguous")
            expectEqual(counted.count, 1, "\(counted)")
            #expect(counted.first?.contains(#"{rule="place-order","#) == true, "\(counted)")
            // Each says whom it will refuse.
            let ended = try stand.run("rollout", "--all", "resume")
            for rule in ["place-order", "old-spelling"] {
                let report = try stand.run("report", rule).printed
                #expect(report.contains("    reasons: path-ambiguous 1\n"), "\(report)")
                let line = ended.complained.split(separator: "\n")
                    .first { $0.contains("\(rule): last hour (") }
                #expect(line?.contains(" would have refused 1 of 1 requests") == true, "\(ended)")
            }
        }

        @Test(arguments: ["observe", "--all"])
        func `an enforcing rule refuses them until an order has it observe`(_ order: String) throws
        {
            let stand = try Stand(Self.placeOrder("enforce"))
            defer { stand.end() }
            try stand.expectRefused("POST", Self.spellings, "path-ambiguous")
            let words = order == "--all" ? ["--all", "observe"] : ["place-order", "observe"]
            let done = try stand.run("rollout", words[0], words[1])
            expectEqual(done.status, 0, "\(done)")
            try stand.expectForwarded("POST", Self.spellings, "path-ambiguous")
            let counted = try stand.counted("path-ambiguous")
            expectEqual(counted.count { $0.contains(#"enforced="true""#) }, 1, "\(counted)")
            expectEqual(counted.count { $0.contains(#"enforced="false""#) }, 1, "\(counted)")
        }

        @Test func `a share refuses other spellings to the addresses that it includes alone`()
            throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(
                origin,
                rules: """
                    - id: place-order
                      match: { method: [POST], path: /v1/orders }
                      mode: enforce
                      rollout: { percent: 50% }
                      sign: [method, target]
                    """,
                more: "trusted_proxies: [127.0.0.1/32]"
            )
            let client = try scenario.serve().client()
            var refused: Set<Int> = []
            for number in 1...40 {
                let address = [(name: "X-Forwarded-For", value: "192.0.2.\(number)")]
                // Whether the rule enforces for the address shows on its path as written.
                let isIncluded = try client.send("POST", "/v1/orders", address).status == 401
                for target in Self.spellings {
                    let answer = try client.send("POST", target, address)
                    expectEqual(answer.status, isIncluded ? 400 : 200, "\(number) \(target)")
                }
                if isIncluded { refused.insert(number) }
            }
            // Six standard deviations to either side of 20.
            #expect((1...39).contains(refused.count))
        }

        @Test func `Connection may name a field that an observing rule signs`() throws {
            let stand = try Stand(Self.placeOrder("observe"))
            defer { stand.end() }
            let fields = [
                (name: "Idempotency-Key", value: "1"),
                (name: "Connection", value: "idempotency-key"),
            ]
            try expectEqual(stand.client.send("POST", "/v1/orders", fields).status, 200)
            let seen = try stand.origin.seen(1)[0]
            expectEqual(seen.head.all("App-Attest-Reason"), ["connection-nomination"])
            // It names a field of this hop, which ends here.
            expectEqual(seen.head.all("Idempotency-Key"), [])
            let counted = try stand.counted("connection-nomination")
            expectEqual(counted.count, 1, "\(counted)")
            #expect(counted.first?.contains(#"{rule="place-order",mode="observe","#) == true)
            #expect(counted.first?.contains(#"enforced="false""#) == true, "\(counted)")
        }

        @Test func `the method of an observing rule in another case goes on, and is counted there`()
            throws
        {
            let stand = try Stand(Self.purge)
            defer { stand.end() }
            try stand.expectForwarded("purge", ["/v1/cache/a", "/elsewhere"], "method-case")
            let counted = try stand.counted("method-case")
            expectEqual(counted.count, 1, "\(counted)")
            #expect(counted.first?.contains(#"{rule="purge-cache",mode="observe","#) == true)
            #expect(counted.first?.hasSuffix(" 2") == true, "\(counted)")
            // A registered method is refused in any case.
            try stand.expectRefused("post", ["/v1/cache/a"], "method-case")
        }

        @Test func `a method in another case bypasses no rule of the path's interpretations`()
            throws
        {
            let rules = """
                - id: place-any
                  match: { path: /v1/orders }
                  mode: enforce
                  sign: [method, target]
                - id: admin
                  match: { path: /admin/** }
                  mode: deny
                """
            let stand = try Stand(Self.purge + rules)
            defer { stand.end() }
            let bypasses = Self.spellings + ["/Admin/x", "//admin/x"]
            for target in bypasses {
                let answer = try stand.client.send("purge", target)
                expectEqual(answer.status, 400, "\(target)")
            }
            // Without a single meaning a path is refused whatever its method.
            try stand.expectRefused("purge", ["/v1/x/../orders"], "path-dot-segment")
            try stand.expectRefused("purge", ["/v1/x%2Forders"], "path-encoded-slash")
            expectEqual(stand.origin.seen.count, 0)
        }

        @Test(arguments: ["observe", "enforce"])
        func `a rule that takes tokens may be disputed`(mode: String) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.write("keys.json", TokenIssuer.set(.init("one")))
            try scenario.configure(
                origin: origin.address,
                apps: "  - \(Scenario.app)",
                rules: """
                    - { id: page, match: { path: /page }, mode: \(mode), accept: [page] }
                    - { id: drop, match: { method: [DROP], path: /a }, mode: \(mode), \
                    accept: [page] }
                    """,
                more: """
                    proofs:
                      page: { kind: jwt, field: X-Page, issuer: "\(TokenIssuer.name)", \
                    audience: shop, algorithms: [ES256], keys: { file: keys.json } }
                    """
            )
            let client = try scenario.serve().client()
            // A good token is for a request that is certain.
            let token = [(name: "X-Page", value: TokenIssuer.token())]
            let nominated = token + [(name: "Connection", value: "X-Page")]
            let requests: [(String, String, [(name: String, value: String)], String)] = [
                ("GET", "/page.json", [], "path-ambiguous"),
                ("GET", "//page", token, "path-ambiguous"),
                ("GET", "/page", nominated, "connection-nomination"),
                ("drop", "/x", token, "method-case"),
            ]
            for (method, target, fields, reason) in requests {
                let before = origin.seen.count
                let answer = try client.send(method, target, fields)
                expectEqual(answer.status, mode == "enforce" ? 400 : 200, "\(method) \(target)")
                if mode == "enforce" {
                    expectEqual(answer.reason, reason)
                    expectEqual(origin.seen.count, before)
                } else {
                    let seen = try #require(try origin.seen(before + 1).last)
                    expectEqual(seen.head.all("App-Attest-Reason"), [reason])
                }
            }
            try expectEqual(client.send("GET", "/page", token).status, 200)
        }
    }
}
