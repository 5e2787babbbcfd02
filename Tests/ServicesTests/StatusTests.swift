import Expectations
import Foundation
import Telemetry
import Testing

@testable import Services

@Suite struct StatusTests {
    private func document(_ snapshot: AdminSnapshot) throws -> [String: Any] {
        let parsed = try JSONSerialization.jsonObject(with: Data(snapshot.status))
        return try #require(parsed as? [String: Any])
    }

    @Test func `the status is a JSON document that says what the snapshot says`() throws {
        let status = try document(.sample())
        #expect(status["version"] as? String == "1.2.3")
        #expect(status["host"] as? String == "gateway1")
        #expect(status["started_at"] as? String == "2026-04-20T10:00:00Z")
        #expect(status["uptime_seconds"] as? Double == 90.5)
        #expect(status["state"] as? String == "serving")
        #expect(status["ready"] as? Bool == true)
        #expect(status["connections_open"] as? Int == 21)
        expectEqual((status["responses"] as? [String: Int]), ["200": 2, "403": 1])
        expectEqual((status["counters"] as? [String: Int])?["requests_total"], 11)
        expectEqual((status["event_loops"] as? [[String: Int]])?.map { $0["requests"] }, [5, 6])
        let configuration = try #require(status["configuration"] as? [String: Any])
        #expect(configuration["generation"] as? Int == 7)
        #expect(configuration["last_reload_at"] as? String == "2026-04-20T10:01:00Z")
        #expect(configuration["last_reload_error"] is NSNull)
        let store = try #require(status["store"] as? [String: Any])
        #expect(store["keys"] as? Int == 41)
        #expect(store["degraded"] as? Bool == false)
        let distributions = try #require(status["distributions"] as? [String: [String: Double]])
        let verification = try #require(distributions["verification_seconds"])
        expectEqual(verification["count"], 2)
        #expect(try #require(verification["p50"]) >= 60e-6)
        let buckets = try #require(status["request_seconds_buckets"] as? [[String: Double]])
        expectEqual(buckets.count, Histogram.shownBuckets.count)
        #expect(buckets.allSatisfy { $0.keys.sorted() == ["count", "seconds"] })
    }

    @Test func `a rule shows its verdicts`() throws {
        let rules = try #require(try document(.sample())["rules"] as? [[String: Any]])
        expectEqual(rules.map { $0["id"] as? String }, ["orders", "default"])
        #expect(rules[0]["responses"] as? [String: Int] == [:])
        expectEqual((rules[0]["request_seconds"] as? [String: Double])?["count"], 0)
        let verdicts = try #require(rules[1]["verdicts"] as? [[String: Any]])
        expectEqual(verdicts.count, 1)
        #expect(verdicts[0]["reason"] as? String == "key-unknown")
        #expect(verdicts[0]["count"] as? Int == 1)
    }

    @Test func `why the gateway is not ready is told, and how long the drain may last`() throws {
        let status = try document(
            .sample(
                store: StoreFacts(
                    keys: 0,
                    revokedKeys: 0,
                    isDegraded: true,
                    lastError: "disk full"
                ),
                drainState: .draining(left: .milliseconds(2500))
            )
        )
        #expect(status["state"] as? String == "draining")
        #expect(status["drain_seconds_left"] as? Double == 2.5)
        #expect(status["ready"] as? Bool == false)
        #expect(status["unready_reasons"] as? [String] == ["draining", "store-degraded"])
        #expect((status["store"] as? [String: Any])?["last_error"] as? String == "disk full")
    }

    @Test func `a store that some rules can do without leaves the gateway ready`() throws {
        var snapshot = AdminSnapshot.sample(
            store: StoreFacts(keys: 0, revokedKeys: 0, isDegraded: true)
        )
        expectEqual(snapshot.readiness, .unready(.storeDegraded))
        snapshot.store.isNeeded = false
        expectEqual(snapshot.readiness, .ready([.storeDegraded]))
        let status = try document(snapshot)
        #expect(status["ready"] as? Bool == true)
        #expect(status["unready_reasons"] as? [String] == [])
        #expect(status["degraded_by"] as? [String] == ["store-degraded"])
        // Where only writing fails, it says so.
        snapshot.store.outage = .storeUnwritable
        expectEqual(snapshot.readiness, .ready([.storeUnwritable]))
        snapshot.store.isNeeded = true
        expectEqual(snapshot.readiness, .unready(.storeUnwritable))
    }

    @Test func `the gateway is not ready while no server of any origin is known`() throws {
        var snapshot = AdminSnapshot.sample()
        snapshot.serverCount = 2
        snapshot.unknownServers = ["a.test:80", "b.test:80"]
        let status = try document(snapshot)
        #expect(status["ready"] as? Bool == false)
        #expect(status["unready_reasons"] as? [String] == ["servers-unknown"])
        snapshot.unknownServers = ["a.test:80"]
        #expect(try document(snapshot)["ready"] as? Bool == true)
    }

    @Test func `a server whose name has no address is listed, and is not up`() throws {
        var snapshot = AdminSnapshot.sample()
        let unknown = OriginFacts.Server(unknown: "a.test:80")
        snapshot.origins = [OriginFacts(name: "shop", servers: [unknown])]
        let labels = #"origin="shop",server="a.test:80",address="""#
        #expect(snapshot.metrics.contains("portcullis_origin_server_up{\(labels)} 0\n"))
        let line = "shop\ta.test:80 (no address)\tunknown\tweight 1\t"
        #expect(snapshot.origins.lines.hasPrefix(line), "\(snapshot.origins.lines)")
        #expect(snapshot.unreadiness.isEmpty)
    }

    @Test func `a loop's events per turn are plain numbers in the status`() throws {
        var snapshot = AdminSnapshot.sample()
        snapshot.tally.add(.iterationEvents, size: 40)
        snapshot.tally.add(.loopIteration, nanoseconds: 250_000_000)
        let status = try document(snapshot)
        let distributions = try #require(status["distributions"] as? [String: [String: Double]])
        expectEqual(distributions["event_loop_iteration_events"]?["mean"], 40)
        expectEqual(distributions["event_loop_iteration_seconds"]?["mean"], 0.25)
    }
}
