import AppAttest
import Expectations
import Foundation
import Glibc
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// `portcullis report`, compared with what is then refused.
    @Suite(.ofApple) struct Reports {
        private static let rules = """
            - id: orders
              match: { path: /v1/orders }
              mode: observe
              sign: [method, target]
            """
        private static let rest = """
            - id: rest
              match: { path: /v1/rest }
              mode: off
            """
        private static let signing = SigningForm.lines([.method, .target], headers: [])
        private static let request = SoftwareKey.Request(method: "GET", target: "/v1/orders")
        private static let device = SoftwareDevice(
            authority: Scenario.authority,
            appID: Scenario.appID,
            environment: .production,
            shape: .iOS27(category: .appStore, bundleVersion: "1042")
        )

        /// A gateway on two event loops whose calls come over a Unix socket, behind a trusted
        /// proxy.
        private final class Stand {
            let scenario: Scenario
            let origin: RecordingOrigin
            var config: String { scenario.path("portcullis.yaml") }

            init() throws {
                scenario = try Scenario()
                origin = try scenario.origin()
                try configure(Reports.rules + "\n" + Reports.rest)
            }

            func configure(_ rules: String) throws {
                try scenario.configure(
                    origin,
                    rules: rules,
                    more: """
                        trusted_proxies: [127.0.0.1/32]
                        limits: { address_failures: off }
                        log: { access: ./access.log }
                        """
                )
                let text = try String(contentsOfFile: config, encoding: .utf8)
                try scenario.write(
                    "portcullis.yaml",
                    text.replacing(
                        "admin: { address: 127.0.0.1:0 }",
                        with: "admin: { address: \"unix:\(scenario.path("admin.sock"))\" }"
                    )
                )
            }

            func reload(_ gateway: GatewayProcess, to generation: Int) throws {
                gateway.child.signal(SIGHUP)
                _ = try gateway.child.wait(for: "reload") { _, complained in
                    complained.contains("generation \(generation)") ? true : nil
                }
            }

            func run(_ words: String...) throws -> Scenario.Result {
                try scenario.portcullis(words + ["--config", config])
            }

            func report() throws -> [String: Any] {
                let told = try run("report", "--json")
                let parsed = try JSONSerialization.jsonObject(with: Data(told.printed.utf8))
                return try #require(parsed as? [String: Any])
            }

            /// A rule in the last five minutes.
            func counts(of rule: String) throws -> [String: Any] {
                let rules = try #require(try report()["rules"] as? [[String: Any]])
                let found = try #require(rules.first { $0["id"] as? String == rule })
                let windows = try #require(found["windows"] as? [[String: Any]])
                expectEqual(windows.map { $0["window"] as? String }, ["5m", "1h", "1d"])
                expectEqual(Set(windows.map { $0["requests"] as? Int }).count, 1)
                return windows[0]
            }
        }

        /// Replays of keys, and requests without a proof from as many addresses.
        ///
        /// - Returns: how many were refused.
        private func sendBad(_ keys: [SoftwareKey], _ client: HTTPClient) throws -> Int {
            var refused = 0
            for (number, key) in keys.enumerated() {
                var key = key
                let proof = key.proof(
                    of: Self.request,
                    signing: Self.signing,
                    damage: .counterRepeated
                )
                let bare = [
                    (name: "X-Forwarded-For", value: "192.0.2.\(number)"),
                    (name: "User-Agent", value: "Shop/1031 CFNetwork/1410.0.3 Darwin/22.6.0"),
                ]
                if try client.send(Self.request, proof).status != 200 { refused += 1 }
                if try client.send("GET", "/v1/orders", bare).status != 200 { refused += 1 }
            }
            return refused
        }

        private func steps(_ counts: [String: Any], _ name: String) -> [Int: Int] {
            let steps = counts["steps"] as? [[String: Int]] ?? []
            return Dictionary(
                uniqueKeysWithValues: steps.map { ($0["percent"] ?? 0, $0[name] ?? -1) }
            )
        }

        /// Each rule's part takes some 50 KB here.
        @Test func `a report of many rules and versions is read, however long it is`() throws {
            let stand = try Stand()
            defer { stand.scenario.end() }
            let names = (0..<120).map { "rule-\($0)" }
            let rules = names.map { name in
                "- { id: \(name), match: { path: /v1/\(name) }, mode: observe, sign: [method] }"
            }
            try stand.configure(rules.joined(separator: "\n"))
            let gateway = try stand.scenario.serve()
            let client = gateway.client()
            for name in names {
                for build in 0..<24 {
                    let agent = "Shop/\(build) CFNetwork/1410.0.3 Darwin/22.6.0"
                    let claim = (name: "User-Agent", value: agent)
                    try expectEqual(client.send("GET", "/v1/\(name)", [claim]).status, 200)
                }
            }
            let told = try stand.run("report", "--json")
            expectEqual(told.status, 0, "\(told.complained)")
            #expect(told.output.count > 4 << 20)
        }

        @Test func `the log says which build of the app a request comes from, and who says so`()
            throws
        {
            let stand = try Stand()
            defer { stand.scenario.end() }
            var key = try stand.scenario.imported(1, on: Self.device)[0]
            let gateway = try stand.scenario.serve()
            let client = gateway.client()
            let proof = key.proof(of: Self.request, signing: Self.signing)
            try expectEqual(client.send(Self.request, proof).status, 200)
            let claim = (name: "User-Agent", value: "Shop/1031 CFNetwork/1410.0.3 Darwin/22.6.0")
            try expectEqual(client.send("GET", "/v1/orders", [claim]).status, 200)
            try expectEqual(client.send("GET", "/v1/orders", []).status, 200)
            _ = try gateway.stop()
            let log = try String(contentsOfFile: stand.scenario.path("access.log"), encoding: .utf8)
            let builds = try log.split(separator: "\n").map { line in
                let parsed = try JSONSerialization.jsonObject(with: Data(line.utf8))
                let members = parsed as? [String: Any] ?? [:]
                return ["app_version", "app_version_source"].map { members[$0] as? String }
            }
            expectEqual(builds, [["1042", "signed"], ["1031", "claimed"], [nil, nil]])
        }

        @Test func `a report says what each share would refuse, and that share refuses just that`()
            throws
        {
            let stand = try Stand()
            defer { stand.scenario.end() }
            let good = try stand.scenario.imported(10, on: Self.device)
            let bad = try stand.scenario.imported(60, on: Self.device)
            let gateway = try stand.scenario.serve()
            let client = gateway.client()
            for key in good {
                var key = key
                let proof = key.proof(of: Self.request, signing: Self.signing)
                try expectEqual(client.send(Self.request, proof).status, 200)
            }
            try expectEqual(sendBad(bad, client), 0)
            let counts = try stand.counts(of: "orders")
            let expected = [
                "requests": 130, "verified": 10, "missing": 60, "invalid": 60, "unsupported": 0,
                "errors": 0, "preflight": 0, "refused": 0,
            ]
            for (name, count) in expected { #expect(counts[name] as? Int == count, "\(name)") }
            #expect((60...80).contains(try #require(counts["installs"] as? Int)))
            let versions = try #require(counts["versions"] as? [[String: Any]])
            expectEqual(versions.count, 2)
            #expect(versions[0]["version"] as? String == "1042")
            #expect(versions[0]["source"] as? String == "signed")
            #expect(versions[0]["environment"] as? String == "test")
            #expect(versions[0]["verified"] as? Int == 10)
            #expect(versions[0]["invalid"] as? Int == 60)
            #expect(versions[1]["version"] as? String == "1031")
            #expect(versions[1]["source"] as? String == "claimed")
            #expect(versions[1]["environment"] as? String == "none")
            #expect(versions[1]["missing"] as? Int == 60)
            let told = steps(counts, "requests")
            expectEqual(told[100], 120)
            #expect((51...69).contains(steps(counts, "installs")[100] ?? 0))
            #expect((51...69).contains(steps(counts, "addresses")[100] ?? 0))
            // A reload changes nothing.
            try stand.reload(gateway, to: 2)
            expectEqual(steps(try stand.counts(of: "orders"), "requests"), told)
            var sum = 0
            for percent in [1, 5, 25, 100] {
                try expectEqual(stand.run("rollout", "orders", "\(percent)%", "--yes").status, 0)
                let refused = try sendBad(bad, client)
                expectEqual(refused, told[percent], "\(percent)%")
                sum += refused
            }
            let after = try stand.counts(of: "orders")
            #expect(after["refused"] as? Int == sum)
            expectEqual(steps(after, "requests")[25], (told[25] ?? 0) * 5)
        }

        @Test
        func `report prints tables, of a rule that a reload has removed too, and of no other`()
            throws
        {
            let stand = try Stand()
            defer { stand.scenario.end() }
            let keys = try stand.scenario.imported(3)
            let gateway = try stand.scenario.serve()
            try expectEqual(sendBad(keys, gateway.client()), 0)
            try expectEqual(gateway.client().send("GET", "/v1/rest").status, 200)
            let text = try stand.run("report").printed
            #expect(text.contains("\norders: observe\n  last hour ("))
            #expect(text.contains(": 6 judged requests, "))
            #expect(text.contains("    reasons: assertion-missing 3, counter-replayed 3\n"))
            #expect(text.contains("\n    100%                   6      100.00%  "))
            #expect(text.contains("\n    1031 (claimed)         none         0        3"))
            #expect(text.contains("\nrest: off\n"))
            #expect(text.contains(": 1 requests, none of which was judged\n"))
            let day = try stand.run("report", "rest", "--since", "1d").printed
            #expect(day.contains("rest: off\n  last day (") && !day.contains("orders"))
            try expectEqual(stand.run("report", "--since", "2d").status, 2)
            let nobody = try stand.run("report", "nobody")
            expectEqual(nobody.status, 1)
            #expect(nobody.complained.contains("no rule has this id"))
            try stand.configure(Self.rest)
            try stand.reload(gateway, to: 2)
            let gone = try stand.run("report", "orders").printed
            #expect(gone.contains("orders: removed by a reload\n"))
            #expect(gone.contains(": 6 judged requests"))
            let since = try #require(try stand.report()["started_at"] as? String)
            #expect(gone.hasPrefix("counted since \(since); "))
            try expectEqual(gateway.stop(), 0)
            _ = try stand.scenario.serve()
            try expectEqual(stand.run("report", "orders").status, 1)
        }

        @Test func `the numbers of a chart are those of the report`() throws {
            let stand = try Stand()
            defer { stand.scenario.end() }
            let keys = try stand.scenario.imported(5)
            _ = try sendBad(keys, try stand.scenario.serve().client())
            let admin = HTTPClient(path: stand.scenario.path("admin.sock"))
            let answer = try admin.send("GET", "/report/series")
            expectEqual(answer.value("Content-Type"), "application/json")
            let columns = try #require(answer.object?["columns"] as? [String])
            let missing = try #require(columns.firstIndex(of: "missing"))
            let rules = try #require(answer.object?["rules"] as? [[String: Any]])
            let orders = try #require(rules.first { $0["id"] as? String == "orders" })
            for series in try #require(orders["series"] as? [[String: Any]]) {
                let rows = try #require(series["rows"] as? [[Double]])
                expectEqual(rows.reduce(0) { $0 + $1[missing] }, 5)
                #expect(rows.allSatisfy { $0.count == columns.count })
            }
        }
    }
}
