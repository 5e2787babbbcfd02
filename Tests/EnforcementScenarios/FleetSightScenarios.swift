import AppAttest
import Expectations
import Foundation
import LoopbackKit
import SoftwareAuthenticator
import TestSupport
import Testing

extension Scenarios {
    /// What operators see of a fleet's database.
    @Suite struct FleetSights {
        /// The fourth, for receipts, is used now and then.
        private static let needed: Set<String> = ["writer", "reader", "listener"]

        /// Asks until this holds of the connections that there are.
        private func wait(
            _ admin: HTTPClient,
            _ what: String,
            _ isTrue: (Set<String>) throws -> Bool
        ) throws {
            let start = "portcullis_database_connected{connection=\""
            var connected: [String] = []
            let isReached = try eventually {
                let lines = try admin.send("GET", "/metrics").text.split(separator: "\n")
                connected = lines.filter { $0.hasPrefix(start) && $0.hasSuffix("} 1") }
                    .map { String($0.dropFirst(start.count).prefix { $0 != "\"" }) }
                return try isTrue(Set(connected))
            }
            try #require(isReached, "never: \(what); \(connected)")
        }

        private func sent(
            _ key: inout SoftwareKey,
            _ number: Int,
            _ client: HTTPClient
        ) throws -> Int {
            try client.send(raw: key.get("/v1/bare?n=\(number)", challenge: nil)).status
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `a database that is cut off shows in metrics, and its return too`() throws {
            let fleet = try Fleet(1, rules: StockRule.list(.bare))
            defer { fleet.end() }
            let gateway = try #require(fleet.gateway(0))
            let (client, admin) = (gateway.client(), try gateway.adminClient())
            var key = try fleet.imported(1)[0]
            try expectEqual(sent(&key, 1, client), 200)
            try wait(admin, "all connections are made") { $0.isSuperset(of: Self.needed) }
            let before = try Metrics(admin)
            #expect(before["database_connections_total"] >= 3)
            expectEqual(before["database_connections_lost_total"], 0)
            expectEqual(before["database_connect_failures_total"], 0)
            #expect(before["database_round_trip_seconds_count"] > 2)
            expectEqual(before["store_turned_away_total"], 0)
            expectEqual(before["store_degraded"], 0)

            try fleet.cables[0].turn(.cut)
            try expectEqual(sent(&key, 2, client), 503)
            try wait(admin, "none is left") { $0.isDisjoint(with: Self.needed) }
            try gateway.waitUntil("tries, and a store that is degraded", admin) {
                $0["database_connect_failures_total"] > 0 && $0["store_degraded"] == 1
            }
            #expect(try Metrics(admin)["database_connections_lost_total"] >= 3)
            let ready = try admin.send("GET", "/readyz")
            expectEqual(ready.status, 200)
            expectEqual(ready.text, "ready\ndegraded: store-degraded\n")
            // What to do is in the log, and of a database: no disk has to be made writable.
            #expect(try gateway.complaints(of: "pg_isready") > 0)
            #expect(!gateway.child.complained.contains("writable for this user"))

            try fleet.cables[0].turn(.whole)
            var number = 3
            try wait(admin, "all connections again") { connected in
                number += 1
                _ = try sent(&key, number, client)
                return connected.isSuperset(of: Self.needed)
            }
            try gateway.waitUntil("a good store", admin) { $0["store_degraded"] == 0 }
            #expect(try Metrics(admin)["database_connections_total"] >= 6)
            try expectEqual(admin.send("GET", "/readyz").status, 200)
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `a challenge whose secret is gone is counted and logged apart`() throws {
            let fleet = try Fleet(1, rules: StockRule.list(.signed))
            defer { fleet.end() }
            let first = try #require(fleet.gateway(0))
            var key = try fleet.imported(1)[0]
            let challenge = try first.challenges("assertion", first.client())[0]
            let raw = key.get("/v1/signed?n=1", challenge: challenge)
            try fleet.crash(0)
            _ = try fleet.database.query("DELETE FROM shared_secrets")
            try fleet.start(0)

            let gateway = try #require(fleet.gateway(0))
            let (client, admin) = (gateway.client(), try gateway.adminClient())
            let answer = try client.send(raw: raw)
            expectEqual(answer.status, 401)
            expectEqual(answer.reason, "challenge-unknown")
            #expect(!answer.text.contains("secret"), "strangers hear nothing of it")
            #expect(
                try gateway.line(about: "/v1/signed")["challenge"] as? String == "unknown-secret"
            )
            try expectEqual(Metrics(admin)["challenges_foreign_total"], 1)
            // One that is not of our form is none of another gateway's.
            let made = key.get("/v1/signed?n=2", challenge: "AQEA")
            try expectEqual(client.send(raw: made).reason, "challenge-unknown")
            #expect(try gateway.line(about: "/v1/signed", after: 1)["challenge"] == nil)
            try expectEqual(Metrics(admin)["challenges_foreign_total"], 1)
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `the doctor looks at the database`() throws {
            let fleet = try Fleet(1, rules: StockRule.list(.bare))
            defer { fleet.end() }
            func doctor() throws -> (status: Int32, stores: [String]) {
                let path = fleet.scenario.path("direct.yaml")
                let said = try fleet.scenario.portcullis(["doctor", path])
                let lines = said.printed.split(separator: "\n").map(String.init)
                return (said.status, lines.filter { $0.contains(" store ") })
            }
            let well = try doctor()
            #expect(well.stores.contains { $0.contains("the database is PostgreSQL") })
            // A busy machine's round trip may be slow, which is a warning of its own.
            #expect(
                well.stores.allSatisfy { $0.hasPrefix("ok") || $0.contains("answered within") },
                "\(well)"
            )
            #expect(well.stores.contains { $0.contains("connections are used") })

            _ = try fleet.database.query("ALTER ROLE portcullis SET synchronous_commit = off")
            let loose = try doctor()
            #expect(
                loose.stores.contains { $0.hasPrefix("warning") && $0.contains("commit is off") }
            )
            _ = try fleet.database.query("ALTER TABLE state RENAME TO other")
            let bare = try doctor()
            expectEqual(bare.status, 1)
            #expect(bare.stores.contains { $0.hasPrefix("error") && $0.contains("migrate") })

            try fleet.database.crash()
            let gone = try doctor()
            expectEqual(gone.status, 1)
            #expect(gone.stores.count == 1 && gone.stores[0].hasPrefix("error"), "\(gone)")
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `check refuses tables that a start refuses, and warns of a database that is away`()
            throws
        {
            let fleet = try Fleet(1, rules: StockRule.list(.bare))
            defer { fleet.end() }
            func check() throws -> (status: Int32, about: [String]) {
                let path = fleet.scenario.path("direct.yaml")
                let said = try fleet.scenario.portcullis(["check", path])
                let lines = (said.printed + said.complained).split(separator: "\n").map(String.init)
                return (said.status, lines.filter { $0.contains("store.postgresql:") })
            }
            let well = try check()
            #expect(well.status == 0 && well.about.isEmpty, "\(well)")

            let alter = "ALTER ROLE portcullis SET default_transaction_read_only"
            _ = try fleet.database.query("\(alter) = on")
            let standby = try check()
            expectEqual(standby.status, 0)
            #expect(standby.about.contains { $0.contains("takes no writes") }, "\(standby)")
            _ = try fleet.database.query("BEGIN READ WRITE; \(alter) = off; COMMIT")

            _ = try fleet.database.query("ALTER TABLE state RENAME TO other")
            let bare = try check()
            expectEqual(bare.status, 1)
            #expect(bare.about.contains { $0.contains("migrate") }, "\(bare)")

            try fleet.database.crash()
            let gone = try check()
            expectEqual(gone.status, 0)
            #expect(gone.about.count == 1 && gone.about[0].contains("warning"), "\(gone)")
        }
    }
}
