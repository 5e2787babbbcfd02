import AppAttest
import Expectations
import Foundation
import LoopbackKit
import SoftwareAuthenticator
import TestSupport
import Testing

extension Scenarios {
    /// Gateways on one PostgreSQL: behind a load balancer, and when its server is gone for good or
    /// for a while.
    @Suite struct Fleets {
        private static let rules = StockRule.list(.signed, .bare, .window)
        private static let more = """
            enrolment: { rate: 10000/s, burst: 100000 }
            limits: { address_failures: off }
            """

        /// HAProxy in front of a fleet: each request goes to the next gateway.
        private func front(_ fleet: Fleet, _ haproxy: String) throws -> HTTPClient {
            let path = fleet.scenario.path("front")
            let servers = (0..<fleet.count).compactMap { number in
                fleet.gateway(number).map { "server g\(number) 127.0.0.1:\($0.port)" }
            }
            try fleet.scenario.write(
                "haproxy.cfg",
                """
                defaults
                    mode http
                    timeout connect 5s
                    timeout client 60s
                    timeout server 60s
                listen front
                    bind unix@\(path)
                    balance roundrobin
                    \(servers.joined(separator: "\n    "))

                """
            )
            try fleet.scenario.startHAProxy(haproxy, at: path)
            return HTTPClient(path: path)
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `behind a load balancer two gateways refuse none of 300 good requests`() throws {
            guard let haproxy = Scenario.tool("haproxy") else { return }
            let fleet = try Fleet(2, rules: Self.rules, more: Self.more)
            defer { fleet.end() }
            let client = try front(fleet, haproxy)
            let gateway = try #require(fleet.gateway(0))
            var keys = try fleet.imported(4)
            for _ in 0..<2 {
                // The challenge comes from one gateway, and the other one gets the attestation.
                let key = Scenario.device.makeKey()
                try expectEqual(gateway.enrol(key, client).status, 201)
                keys.append(key)
            }
            var refused: [String] = []
            for number in 0..<300 {
                let isSigned = number.isMultiple(of: 2)
                let challenge = isSigned ? try gateway.challenges("assertion", client)[0] : nil
                let path = isSigned ? "/v1/signed" : "/v1/bare"
                let raw = keys[number / 2 % keys.count].get(
                    "\(path)?n=\(number)",
                    challenge: challenge
                )
                let answer = try client.send(raw: raw)
                if answer.status != 200 { refused.append("\(number): \(answer.reason)") }
            }
            expectEqual(refused, [])
            expectEqual(fleet.origin.seen.count, 300)
            for number in 0..<fleet.count {
                let admin = try #require(fleet.gateway(number)).adminClient()
                #expect(try Metrics(admin)["verdicts_total"] > 100)
            }
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `a failover to a synchronous standby loses nothing that was answered`() throws {
            let fleet = try Fleet(
                3,
                rules: Self.rules,
                more: Self.more,
                servers: .primaryAndStandby,
                revokesSoon: true
            )
            let load = FleetLoad(fleet)
            defer {
                try? load.end()
                fleet.end()
            }
            load.begin(try fleet.imported(3))
            var ledger = FleetLedger(fleet, load)
            #expect(load.awaitAdmitted(30, seconds: ChildProcess.patience))
            let victim = try fleet.imported(1)[0]
            load.join(victim, .bare)
            #expect(load.awaitAdmitted(30, seconds: ChildProcess.patience))
            try fleet.revoke(victim.keyID)
            load.noteRevoked(victim.keyID)
            try ledger.examine("before")
            try fleet.database.crash()
            let before = load.admitted.count
            try #require(fleet.standby).promote()
            #expect(load.awaitAdmitted(30, seconds: ChildProcess.patience))
            try load.end()
            try ledger.examine("behind")
            try ledger.replay()
            let all = load.admitted.count
            print("failover: \(before) admitted before, \(all - before) behind, none twice")
        }

        /// What an operator may choose to lose in a crash.
        enum Risk: CaseIterable, Sendable { case commitsUnwritten, standbyBehind }

        @Test(.enabled(if: DatabaseServer.programs != nil), arguments: Risk.allCases)
        func `a crash that may lose what came last loses that, and nothing before`(
            risk: Risk
        ) throws {
            let fleet = try Fleet(
                2,
                rules: Self.rules,
                servers: risk == .standbyBehind ? .primaryAndFollower : .one
            )
            defer { fleet.end() }
            if risk == .commitsUnwritten {
                try fleet.database.set("synchronous_commit", "off")
                try fleet.database.set("wal_writer_delay", "10s")
            }
            var keys = try fleet.imported(2)
            let gateways = try (0..<2).map { try #require(fleet.gateway($0)) }
            let client = gateways[0].client()
            func admit(_ count: Int) throws -> [[UInt8]] {
                try (0..<count).map { _ in
                    let raw = keys[0].get("/v1/bare")
                    try #require(try client.send(raw: raw).status == 200)
                    return raw
                }
            }
            let settled = try admit(20)
            try fleet.database.settle()
            try fleet.standby?.unfollow()
            let last = try admit(20)
            try fleet.database.crash()
            if let standby = fleet.standby {
                try standby.promote()
            } else {
                try fleet.database.start()
            }
            // The other gateway knows what the database knows. It takes for used what it could not
            // decide, so another key asks whether it is connected.
            let other = gateways[1].client()
            try eventually { try other.send(raw: keys[1].get("/v1/bare")).status == 200 }
            for raw in settled { try expectEqual(other.send(raw: raw).reason, "counter-replayed") }
            let lost = try last.filter { try other.send(raw: $0).status == 200 }
            #expect(!lost.isEmpty)
            expectEqual(lost, last.suffix(lost.count))
            print("\(risk): of 40 admitted, the last \(lost.count) were admitted again")
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `a gateway starts without its database, and goes on by itself when that is back`()
            throws
        {
            let fleet = try Fleet(1, rules: Self.rules, revokesSoon: true)
            defer { fleet.end() }
            var keys = try fleet.imported(2)
            try fleet.keys("revoke", keys[1].keyID.base64)
            try fleet.crash(0)
            try fleet.database.crash()
            try fleet.start(0)
            let gateway = try #require(fleet.gateway(0))
            let (client, admin) = (gateway.client(), try gateway.adminClient())
            try expectEqual(client.send("GET", "/open").status, 200)
            try expectEqual(client.send(raw: keys[0].get("/v1/bare")).reason, "store-unavailable")
            try expectEqual(admin.send("GET", "/readyz").text, "ready\ndegraded: store-degraded\n")
            #expect(try gateway.complaints(of: "pg_isready") > 0)
            try fleet.database.start()
            let isBack = try eventually {
                try client.send(raw: keys[0].get("/v1/bare")).status == 200
            }
            #expect(isBack)
            try expectEqual(client.send(raw: keys[1].get("/v1/bare")).reason, "key-revoked")
            // The secrets of challenges are the fleet's soon, too.
            try Self.expectAllWell(fleet, &keys[0])
            // No key was to be deleted.
            #expect(!gateway.child.complained.contains("erased"))
        }

        /// What the start asks waits for a lock, as it would for a slow disk.
        @Test(
            .enabled(if: DatabaseServer.programs != nil),
            arguments: ["state", "keys", "shared_secrets"]
        )
        func `a gateway starts beside a slow database, and goes on by itself`(
            table: String
        ) throws {
            let fleet = try Fleet(1, rules: Self.rules)
            defer { fleet.end() }
            var key = try fleet.imported(1)[0]
            try fleet.crash(0)
            try fleet.database.withhold(table) {
                try fleet.start(0)
                let gateway = try #require(fleet.gateway(0))
                try expectEqual(gateway.client().send("GET", "/open").status, 200)
            }
            try Self.expectAllWell(fleet, &key)
        }

        /// The start draws a secret, and the database has no room for it.
        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `a gateway starts beside a full database, and goes on by itself`() throws {
            let fleet = try Fleet(1, rules: Self.rules)
            defer { fleet.end() }
            var key = try fleet.imported(1)[0]
            try fleet.crash(0)
            _ = try fleet.database.query(
                """
                CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN RAISE 'no space left on device' USING ERRCODE = 'disk_full'; END $$;
                DELETE FROM shared_secrets;
                CREATE TRIGGER fill BEFORE INSERT ON shared_secrets EXECUTE FUNCTION fill()
                """
            )
            try fleet.start(0)
            let gateway = try #require(fleet.gateway(0))
            try expectEqual(gateway.client().send("GET", "/open").status, 200)
            _ = try fleet.database.query("DROP TRIGGER fill ON shared_secrets")
            try Self.expectAllWell(fleet, &key)
        }

        /// Requests that need the store pass again, soon.
        private static func expectAllWell(_ fleet: Fleet, _ key: inout SoftwareKey) throws {
            let gateway = try #require(fleet.gateway(0))
            let client = gateway.client()
            let isBack = try eventually {
                let challenge = try gateway.challenges("assertion", client)[0]
                return try client.send(raw: key.get("/v1/bare")).status == 200
                    && client.send(raw: key.get("/v1/signed", challenge: challenge)).status == 200
            }
            #expect(isBack)
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `a commit whose wait for a standby is cancelled is not taken for durable`() throws {
            let fleet = try Fleet(1, rules: Self.rules)
            defer { fleet.end() }
            let gateway = try #require(fleet.gateway(0))
            var key = try fleet.imported(1)[0]
            try expectEqual(gateway.client().send(raw: key.get("/v1/bare")).status, 200)
            try fleet.database.withholdCommits()
            let raw = key.get("/v1/bare?n=1")
            let answer = Thread.Answer { try gateway.client().send(raw: raw) }
            let isCancelled = try eventually { try fleet.database.cancelCommit() }
            #expect(isCancelled)
            try expectEqual(answer.value().reason, "store-unavailable")
            expectEqual(fleet.origin.seen.count, 1)
        }

        @Test(.enabled(if: DatabaseServer.programs != nil && NetworkNamespace.isPossible))
        func `across a partition a request waits as long as a statement, not as a connection`()
            throws
        {
            let fleet = try Fleet(
                1,
                rules: StockRule.list(.lenient, .bare),
                arrangement: .networks
            )
            defer { fleet.end() }
            // Far from the two seconds of a statement, on a busy machine, too.
            try fleet.crash(0)
            try fleet.rewrite(0, "\" } }", "\", connect_timeout: 1m } }")
            try fleet.start(0)
            var keys = try fleet.imported(2)
            let gateway = try #require(fleet.gateway(0))
            for index in 0..<2 {
                let raw = keys[index].get("/v1/lenient?known")
                try expectEqual(gateway.client().send(raw: raw).status, 200)
            }
            try fleet.cables[0].turn(.silent)
            // By the connection that there is, and while the next one is made.
            for _ in 0..<3 {
                let start = ContinuousClock.now
                try expectEqual(gateway.client().send(raw: keys[0].get("/v1/lenient")).status, 200)
                try expectEqual(gateway.client().send(raw: keys[1].get("/v1/bare")).status, 503)
                #expect(ContinuousClock.now - start < .seconds(30))
            }
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `without a database each gateway forwards a request once where a rule says so`()
            throws
        {
            // In a window, what was answered 503 would be good once afterwards.
            let rules = StockRule.list(.lenient, .bare) + "  counter: strict\n"
            let fleet = try Fleet(2, rules: rules)
            defer { fleet.end() }
            var keys = try fleet.imported(2)
            let gateways = try (0..<2).map { try #require(fleet.gateway($0)) }
            // In the memory of both.
            for gateway in gateways {
                let raw = keys[0].get("/v1/lenient?known")
                try expectEqual(gateway.client().send(raw: raw).status, 200)
            }
            let known = fleet.origin.seen.count
            try fleet.database.crash()
            let lenient = keys[0].get("/v1/lenient?n=1")
            let strict = keys[1].get("/v1/bare?n=1")
            for gateway in gateways {
                try expectEqual(gateway.client().send(raw: lenient).status, 200)
                try expectEqual(gateway.client().send(raw: strict).status, 503)
                // Once at each.
                #expect(try gateway.client().send(raw: lenient).status != 200)
            }
            let seen = fleet.origin.seen.dropFirst(known)
            expectEqual(seen.map(\.target), ["/v1/lenient?n=1", "/v1/lenient?n=1"])
            for request in seen {
                expectEqual(request.head.all("App-Attest-Verdict"), ["error"])
            }
            try fleet.database.start()
            for gateway in gateways {
                // It is connecting anew; a client signs again.
                var status = 503
                try eventually {
                    status = try gateway.client().send(raw: keys[1].get("/v1/bare?again")).status
                    return status != 503
                }
                expectEqual(status, 200)
                for raw in [lenient, strict] {
                    try expectEqual(gateway.client().send(raw: raw).reason, "counter-replayed")
                }
            }
            // Nothing stays open.
            let all = fleet.origin.seen.dropFirst(known).map(\.target)
            expectEqual(all.filter { $0 == "/v1/lenient?n=1" }.count, 2)
            #expect(!all.contains("/v1/bare?n=1"))
        }
    }
}

extension Fleet {
    /// Imports keys of the test app, and returns them.
    func imported(_ count: Int) throws -> [SoftwareKey] {
        let keys = (0..<count).map { _ in Scenario.device.makeKey() }
        let lines = keys.map { $0.importLine(as: .test) + "\n" }.joined()
        try scenario.write("keys.jsonl", lines)
        try scenario.importHere("direct.yaml")
        return keys
    }
}
