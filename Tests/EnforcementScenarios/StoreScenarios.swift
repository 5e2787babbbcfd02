import Expectations
import Foundation
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// What a request waits for, races for, and gets when the disk does not answer.
    @Suite struct Store {
        private static let rules = StockRule.list(
            .bare,
            .lenient,
            .signed,
            .window,
            more: """
                - id: excused
                  match: { path: /v1/excused }
                  mode: enforce
                  sign: [method, target]
                  unsupported: forward
                """
        )

        /// Sends each of these over a connection of its own before any answer is read.
        private func race(_ gateway: GatewayProcess, _ requests: [[UInt8]]) throws -> [Int] {
            let clients = try requests.map { _ in try Wire(port: gateway.port) }
            for (client, raw) in zip(clients, requests) { try client.send(raw) }
            return try clients.map { try $0.readHead().status() }
        }

        @Test(arguments: ["/v1/bare", "/v1/window", "/v1/signed"])
        func `of many copies of one request exactly one is admitted`(path: String) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            var (gateway, origin, key) = try scenario.start(rules: Self.rules)
            for round in 1...20 {
                let challenge =
                    path == "/v1/signed"
                    ? try gateway.challenges("assertion", gateway.client())[0] : nil
                let raw = key.get(path, challenge: challenge)
                let statuses = try race(gateway, Array(repeating: raw, count: 16))
                expectEqual(statuses.filter { $0 == 200 }.count, 1)
                expectEqual(statuses.filter { $0 == 401 }.count, 15)
                expectEqual(origin.seen.count, round)
            }
        }

        @Test func `requests that overtake each other all pass under a window`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            var (gateway, origin, key) = try scenario.start(rules: Self.rules)
            var requests: [[UInt8]] = []
            for _ in 0..<64 { requests.append(key.get("/v1/window")) }
            let statuses = try race(gateway, requests.reversed())
            #expect(statuses.allSatisfy { $0 == 200 })
            let again = try race(gateway, requests)
            #expect(again.allSatisfy { $0 == 401 })
            expectEqual(origin.seen.count, 64)
        }

        @Test func `a client that can't attest is forwarded where a rule says so, marked`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let (gateway, origin, _) = try scenario.start(rules: Self.rules)
            let client = gateway.client()
            let claim = [(name: "App-Attest-Unsupported", value: "1")]
            let refused = try client.send("GET", "/v1/bare", claim)
            expectEqual(refused.status, 403)
            expectEqual(refused.reason, "unsupported")
            try expectEqual(client.send("GET", "/v1/excused", claim).status, 200)
            try expectEqual(client.send("GET", "/v1/excused").status, 401)
            let seen = try origin.seen(1)
            expectEqual(seen.count, 1)
            expectEqual(seen[0].head.all("App-Attest-Verdict"), ["refuse"])
            expectEqual(seen[0].head.all("App-Attest-Reason"), ["unsupported"])
            expectEqual(seen[0].head.all("App-Attest-Unsupported"), [])
            // Only the first was refused for it.
            let counted = try gateway.adminClient().send("GET", "/metrics").text
                .split(separator: "\n").filter { $0.contains(#"reason="unsupported""#) }
            expectEqual(counted.count, 2, "\(counted)")
            for (rule, enforced) in [("bare", true), ("excused", false)] {
                let line = try #require(counted.first { $0.contains("rule=\"\(rule)\"") })
                #expect(line.contains(#"enforced="\#(enforced)""#), "\(line)")
            }
        }

        /// Another program holds the database's write lock for longer than the gateway waits for
        /// it.
        @Test
        func `while the disk does not answer, a rule's on_error decides and nothing is replayed`()
            throws
        {
            guard let python = Scenario.tool("python3") else { return }
            let scenario = try Scenario()
            defer { scenario.end() }
            var (gateway, origin, key) = try scenario.start(rules: Self.rules)
            // A key for each of those that race: under the strict rule the later could be first.
            var other = try scenario.imported()[0]
            let client = gateway.client()
            let challenge = try gateway.challenges("assertion", client)[0]
            let script = """
                import sqlite3, sys
                database = sqlite3.connect(sys.argv[1], isolation_level=None)
                database.execute("BEGIN IMMEDIATE")
                print("locked", flush=True)
                sys.stdin.read()
                """
            let database = scenario.path("portcullis.db")
            let locker = try scenario.start(python, ["-c", script, database])
            _ = try locker.wait(for: "lock") { printed, _ in
                printed.contains("locked") ? true : nil
            }
            // A required challenge that is signed stops replays by itself; nobody waits.
            let signed = try client.send(raw: key.get("/v1/signed", challenge: challenge))
            expectEqual(signed.status, 200)
            let bare = key.get("/v1/bare")
            let lenient = other.get("/v1/lenient")
            let statuses = try race(gateway, [bare, lenient])
            expectEqual(statuses, [503, 200])
            let forwarded = try origin.seen(2)[1]
            expectEqual(forwarded.target, "/v1/lenient")
            expectEqual(forwarded.head.all("App-Attest-Verdict"), ["error"])
            expectEqual(forwarded.head.all("App-Attest-Reason"), ["store-unavailable"])
            expectEqual(forwarded.head.all("App-Attest-Key-Id"), [])
            // A bad assertion is refused as ever, also where errors are forwarded.
            let bad = key.get("/v1/lenient", damage: .signature)
            try expectEqual(client.send(raw: bad).status, 403)
            for raw in [bare, lenient] {
                let replay = try client.send(raw: raw)
                expectEqual(replay.status, 401)
                expectEqual(replay.reason, "counter-replayed")
            }
            locker.end()
            // What could not be written is written later, and the next request passes.
            try expectEqual(client.send(raw: key.get("/v1/bare")).status, 200)
            try expectEqual(gateway.stop(), 0)
            let next = try scenario.serve()
            for raw in [bare, lenient] {
                try expectEqual(next.client().send(raw: raw).reason, "counter-replayed")
            }
        }
    }
}
