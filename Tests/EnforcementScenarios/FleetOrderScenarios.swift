import Expectations
import Foundation
import LoopbackKit
import TestSupport
import Testing

extension Scenarios {
    /// Orders of operators in a fleet: given anywhere, they hold everywhere.
    @Suite struct FleetOrders {
        private static let rules = """
            - id: orders
              match: { path: /v1/orders }
              mode: enforce
              sign: [method, target]
            """

        /// Makes two others of the first two orders, as a standby has them that had got none of
        /// these.
        private static let otherOrders = """
            BEGIN;
            UPDATE rollout_changes SET ticket = '\\x00', rule = NULL, changed_to = 'observe';
            UPDATE rollout_state SET orders = '{"version":1,"emergency":
            {"at":"2026-11-22T19:20:00Z","by":"uid 0","why":"all fail"},"rules":[]}'; COMMIT
            """

        private static func fleet(_ count: Int = 3) throws -> Fleet {
            try Fleet(
                count,
                rules: rules,
                more: "limits: { address_failures: off }",
                takesOrders: true
            )
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `an order at one gateway is obeyed by all within two seconds`() throws {
            let fleet = try Self.fleet()
            defer { fleet.end() }
            try expectEqual(fleet.unproven(), [401, 401, 401])
            for (number, to) in ["observe", "100%", "off", "file"].enumerated() {
                let answer = try fleet.order(at: number % 3, #""rule":"orders","to":"\#(to)""#)
                let given = ContinuousClock.now
                expectEqual(answer.status, 200, "\(answer.text)")
                #expect(answer.object?["order"] as? Int == number + 1)
                let status = ["observe", "off"].contains(to) ? 200 : 401
                let isObeyed = try eventually {
                    try fleet.unproven() == [status, status, status]
                }
                let time = ContinuousClock.now - given
                #expect(isObeyed && time < .seconds(2), "\(to): \(time)")
                print("order \(number + 1), \(to): obeyed by three gateways after \(time)")
            }
            let isShown = try eventually { try fleet.versions() == [4, 4, 4] }
            #expect(isShown)
            let fleetFacts = try fleet.facts(of: 1)
            let gateways = try #require(fleetFacts["gateways"] as? [[String: Any]])
            expectEqual(gateways.map { $0["name"] as? String }, ["g0", "g1", "g2"])
            #expect(fleetFacts["gateway"] as? String == "g1")
            #expect(fleetFacts["rules_differ"] as? Bool == false)
            // The audit is one for all.
            for number in 0..<3 {
                let changes = try fleet.audit(at: number)
                expectEqual(changes.map { $0["gateway"] as? String }, ["g0", "g1", "g2", "g0"])
                expectEqual(changes.map { $0["order"] as? Int }, [1, 2, 3, 4])
                #expect(changes[0]["to"] as? String == "observe (command)")
            }
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `an order that was made from an older one is refused, and a brake never is`() throws {
            let fleet = try Self.fleet(2)
            defer { fleet.end() }
            let first = try fleet.order(at: 0, #""rule":"orders","to":"10%","why":"slowly""#)
            #expect(first.object?["order"] as? Int == 1)
            let stale = try fleet.order(at: 1, #""rule":"orders","to":"50%","after":0"#)
            expectEqual(stale.status, 409)
            expectEqual(stale.reason, "rollout-stale")
            #expect(stale.text.contains("order 1 at g0: slowly"), "\(stale.text)")
            let brake = try fleet.order(at: 1, #""all":"observe","after":0"#)
            #expect(brake.object?["order"] as? Int == 2)
            let known = try fleet.order(at: 1, #""rule":"orders","to":"50%","after":2"#)
            #expect(known.object?["order"] as? Int == 3)
            // Side by side at both: each version is made once.
            DispatchQueue.concurrentPerform(iterations: 2) { number in
                for _ in 0..<10 {
                    _ = try? fleet.order(at: number, #""rule":"orders","to":"observe""#)
                }
            }
            #expect(try eventually { try fleet.versions() == [23, 23] })
            let versions = try fleet.database.query(
                "SELECT count(DISTINCT version) FROM rollout_changes"
            )
            #expect(versions.contains("23"))
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `without the database a gateway serves what it has kept, and takes a brake alone`()
            throws
        {
            let fleet = try Self.fleet(2)
            defer { fleet.end() }
            _ = try fleet.order(at: 0, #""rule":"orders","to":"100%""#)
            #expect(try eventually { try fleet.versions() == [1, 1] })
            try fleet.database.crash()
            // A start without it serves the newest orders that were kept.
            try fleet.crash(1)
            try fleet.start(1)
            try expectEqual(fleet.versions(), [1, 1])
            try expectEqual(fleet.unproven(), [401, 401])
            let raised = try fleet.order(at: 1, #""rule":"orders","to":"file""#)
            expectEqual(raised.status, 503)
            expectEqual(raised.reason, "rollout-unsaved")
            let brake = try fleet.order(at: 1, #""all":"observe","why":"they all fail""#)
            expectEqual(brake.status, 200)
            #expect(brake.object?["pending"] as? Bool == true)
            try expectEqual(fleet.unproven(), [401, 200])
            // It outlasts the process.
            try fleet.crash(1)
            try fleet.start(1)
            try expectEqual(fleet.unproven(), [401, 200])
            try expectEqual(Metrics(fleet.admin(1))["fleet_orders_pending"], 1)
            try fleet.database.start()
            #expect(try eventually { try fleet.unproven() == [200, 200] })
            #expect(try eventually { try fleet.versions() == [2, 2] })
            let last = try #require(try fleet.audit(at: 0).last)
            #expect(last["why"] as? String == "they all fail")
            #expect(last["gateway"] as? String == "g1")
            #expect(try eventually { try Metrics(fleet.admin(1))["fleet_orders_pending"] == 0 })
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `an order that is neither on disk nor in the database crosses an upgrade`() throws {
            let fleet = try Self.fleet(1)
            defer { fleet.end() }
            _ = try fleet.order(at: 0, #""rule":"orders","to":"100%""#)
            try expectEqual(fleet.versions(), [1])
            // The file of the orders can't be replaced, and the fleet's tables can't be read.
            mkdir(fleet.scenario.path("gateway0.yaml.rollout.fleet.new"), 0o700)
            _ = try fleet.database.query("ALTER TABLE drains RENAME TO other")
            let brake = try fleet.order(at: 0, #""all":"observe","why":"they all fail""#)
            #expect(brake.object?["pending"] as? Bool == true, "\(brake.text)")
            let gateway = try #require(fleet.gateway(0))
            gateway.child.signal(SIGUSR2)
            let successor: Int32 = try gateway.child.wait(for: "successor") { _, complained in
                guard let start = complained.range(of: "upgrade: process ") else { return nil }
                return Int32(complained[start.upperBound...].prefix { $0.isNumber })
            }
            defer { kill(successor, SIGKILL) }
            try expectEqual(fleet.unproven(), [200])
            _ = try fleet.database.query("ALTER TABLE other RENAME TO drains")
            let isWritten = try eventually {
                try fleet.database.query(
                    "SELECT count(*) FROM rollout_changes WHERE why = 'they all fail'"
                ).contains("1")
            }
            #expect(isWritten)
            #expect(try eventually { try fleet.versions() == [2] })
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `orders are kept in the folder for state, and found without the database`() throws {
            let fleet = try Self.fleet(1)
            defer { fleet.end() }
            try fleet.stop(0)
            let (scenario, files) = (fleet.scenario, FileManager.default)
            let state = scenario.path("state")
            mkdir(state, 0o700)
            let outer = ["/usr/bin/env", "STATE_DIRECTORY=\(state)"]
            let order = Array(#"{"rule":"orders","to":"observe"}"#.utf8)
            func status(_ gateway: GatewayProcess) throws -> Int {
                try gateway.client().send("GET", "/v1/orders").status
            }
            let first = try scenario.serve("gateway0.yaml", within: outer)
            try expectEqual(status(first), 401)
            let given = try first.adminClient().send("POST", "/rollout/change", content: order)
            expectEqual(given.status, 200, "\(given.text)")
            try expectEqual(first.stop(), 0)
            let kept = ["gateway0.yaml.rollout", "gateway0.yaml.rollout.fleet"]
            #expect(kept.allSatisfy { files.fileExists(atPath: state + "/" + $0) })
            #expect(!kept.contains { files.fileExists(atPath: scenario.path($0)) })
            try fleet.database.crash()
            let second = try scenario.serve("gateway0.yaml", within: outer)
            try expectEqual(status(second), 200)
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `check and explain tell what is ordered where they find no kept orders`() throws {
            let fleet = try Self.fleet(1)
            defer { fleet.end() }
            _ = try fleet.order(at: 0, #""rule":"orders","to":"observe""#)
            try fleet.stop(0)
            // As in the shell of an operator, who does not have the gateway's STATE_DIRECTORY.
            for name in ["gateway0.yaml.rollout", "gateway0.yaml.rollout.fleet"] {
                try FileManager.default.removeItem(atPath: fleet.scenario.path(name))
            }
            let config = fleet.scenario.path("gateway0.yaml")
            let order = "by a command it is observe"
            let checked = try fleet.scenario.portcullis("check", config)
            #expect(checked.status == 0 && checked.printed.contains(order), "\(checked)")
            let explained = try fleet.scenario.portcullis("explain", config, "GET", "/v1/orders")
            #expect(explained.status == 0 && explained.printed.contains(order), "\(explained)")
            #expect(!explained.complained.contains("no orders about rollouts"), "\(explained)")
            try fleet.database.crash()
            let alone = try fleet.scenario.portcullis("explain", config, "GET", "/v1/orders")
            #expect(alone.status == 0 && !alone.printed.contains(order), "\(alone)")
            #expect(alone.complained.contains("found no orders about rollouts but"), "\(alone)")
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `where kept orders are broken, the start names the file that is`() throws {
            let fleet = try Self.fleet(1)
            defer { fleet.end() }
            _ = try fleet.order(at: 0, #""rule":"orders","to":"observe""#)
            try fleet.stop(0)
            let kept = fleet.scenario.path("gateway0.yaml.rollout")
            try fleet.scenario.write("gateway0.yaml.rollout.fleet", "{")
            let config = fleet.scenario.path("gateway0.yaml")
            let refused = try fleet.scenario.portcullis("serve", config)
            expectEqual(refused.status, 1)
            #expect(refused.complained.contains(kept + ".fleet:1: found orders that can't"))
            #expect(refused.complained.contains("or delete it and \(kept): "), "\(refused)")
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `the command does not say that an order without an answer has changed nothing`() throws
        {
            let fleet = try Self.fleet(1)
            defer { fleet.end() }
            let admin = "\"unix:\(fleet.scenario.path("admin"))\""
            try fleet.rewrite(0, "127.0.0.1:0, calls: any }", "\(admin) }")
            try fleet.crash(0)
            try fleet.start(0)
            try fleet.database.crash()
            let config = fleet.scenario.path("gateway0.yaml")
            let unsaved = try fleet.scenario.portcullis(
                "rollout",
                "--config",
                config,
                "orders",
                "50%",
                "--yes"
            )
            expectEqual(unsaved.status, 1)
            #expect(unsaved.complained.contains("it may have taken the order or not"), "\(unsaved)")
            #expect(!unsaved.complained.contains("nothing has changed"))
            #expect(!unsaved.complained.contains("store's disk"))
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `a brake at a gateway that is cut off yields to a newer order for all`() throws {
            let fleet = try Self.fleet(2)
            defer { fleet.end() }
            _ = try fleet.order(at: 0, #""rule":"orders","to":"100%""#)
            #expect(try eventually { try fleet.versions() == [1, 1] })
            try fleet.cables[1].turn(.cut)
            let brake = try eventually {
                try fleet.order(at: 1, #""all":"observe""#).object?["pending"] as? Bool == true
            }
            #expect(brake)
            // Orders within one second of the brake leave it: it refuses fewer clients.
            let braked = time(nil)
            #expect(eventually { time(nil) > braked + 1 })
            _ = try fleet.order(at: 0, #""all":"observe""#)
            let resumed = try fleet.order(at: 0, #""all":"resume""#)
            #expect(resumed.object?["order"] as? Int == 3)
            try expectEqual(fleet.unproven(), [401, 200])
            try fleet.cables[1].turn(.whole)
            #expect(try eventually { try fleet.unproven() == [401, 401] })
            #expect(try eventually { try fleet.versions() == [3, 3] })
            #expect(
                try #require(fleet.gateway(1)).complaints(of: "since the fleet has a newer one")
                    > 0
            )
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `a brake at a gateway that is cut off is undone by no older order`() throws {
            let fleet = try Self.fleet(2)
            defer { fleet.end() }
            try fleet.cables[1].turn(.cut)
            // The other one does not hear of this, and is given the brake later.
            let raised = try fleet.order(at: 0, #""rule":"orders","to":"100%""#)
            #expect(raised.object?["order"] as? Int == 1)
            let ordered = time(nil)
            #expect(eventually { time(nil) > ordered + 1 })
            let brake = try eventually {
                let answer = try fleet.order(at: 1, #""rule":"orders","to":"observe""#)
                return answer.object?["pending"] as? Bool == true
            }
            #expect(brake)
            try expectEqual(fleet.unproven(), [401, 200])
            try fleet.cables[1].turn(.whole)
            #expect(try eventually { try fleet.unproven() == [200, 200] })
            #expect(try eventually { try fleet.versions() == [2, 2] })
            try expectEqual(Metrics(fleet.admin(1))["fleet_orders_pending"], 0)
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `an order at a gateway that takes none is given at the database`() throws {
            let fleet = try Self.fleet(1)
            defer { fleet.end() }
            let config = fleet.scenario.path("gateway0.yaml")
            func rollout(_ words: String...) throws -> Scenario.Result {
                try fleet.scenario.portcullis(["rollout", "--config", config] + words)
            }
            // It serves no calls, and its file says so, or says something newer.
            let socket = "\"unix:\(fleet.scenario.path("admin"))\""
            try fleet.rewrite(0, "127.0.0.1:0, calls: any }", "\(socket), serves: [pages] }")
            try fleet.crash(0)
            try fleet.start(0)
            let first = try rollout("--all", "observe", "--why", "a bad build")
            expectEqual(first.status, 0, "\(first)")
            #expect(first.complained.contains("serves calls"), "\(first)")
            #expect(first.printed.contains("order 1, in the fleet's database"), "\(first)")
            #expect(try eventually { try fleet.unproven() == [200] })
            try fleet.rewrite(0, ", serves: [pages] }", " }")
            let blind = try rollout("--all", "resume")
            expectEqual(blind.status, 1, "\(blind)")
            #expect(blind.complained.contains("no gateway says whom this would refuse"))
            let second = try rollout("--all", "resume", "--yes")
            expectEqual(second.status, 0, "\(second)")
            #expect(second.complained.contains("serves no such calls"), "\(second)")
            #expect(second.printed.contains("order 2, in the fleet's database"), "\(second)")
            #expect(try eventually { try fleet.unproven() == [401] })
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `a brake with the token works over TCP while the database is away`() throws {
            let fleet = try Self.fleet(1)
            defer { fleet.end() }
            let token = String(repeating: "0123456789abcdef", count: 4)
            try fleet.scenario.write("token", token + "\n")
            chmod(fleet.scenario.path("token"), 0o600)
            try fleet.rewrite(0, ", calls: any }", ", token_file: token }")
            try fleet.crash(0)
            try fleet.start(0)
            try fleet.database.crash()
            let content = Array(#"{"all":"observe","why":"on fire"}"#.utf8)
            let admin = try fleet.admin(0)
            let strange = try admin.send("POST", "/rollout/change", content: content)
            expectEqual(strange.status, 401)
            try expectEqual(fleet.unproven(), [401])
            let brake = try admin.send(
                "POST",
                "/rollout/change",
                [("Authorization", "Bearer \(token)")],
                content: content
            )
            #expect(brake.object?["pending"] as? Bool == true, "\(brake.text)")
            try expectEqual(fleet.unproven(), [200])
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `a database that was put back gets the fleet's orders back`() throws {
            let fleet = try Self.fleet(2)
            defer { fleet.end() }
            for to in ["50%", "observe"] {
                _ = try fleet.order(at: 0, #""rule":"orders","to":"\#(to)""#)
            }
            #expect(try eventually { try fleet.versions() == [2, 2] })
            _ = try fleet.database.query(
                """
                BEGIN; DELETE FROM rollout_changes WHERE version > 1;
                UPDATE rollout_state SET version = 1, orders = '{"version":1,"rules":[]}'; COMMIT
                """
            )
            #expect(try eventually { try fleet.versions() == [3, 3] })
            try expectEqual(fleet.unproven(), [200, 200])
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `an order in the place of one that a failover has lost is obeyed by all`() throws {
            let fleet = try Self.fleet(2)
            defer { fleet.end() }
            for to in ["50%", "100%"] {
                _ = try fleet.order(at: 0, #""rule":"orders","to":"\#(to)""#)
            }
            #expect(try eventually { try fleet.versions() == [2, 2] })
            try expectEqual(fleet.unproven(), [401, 401])
            _ = try fleet.database.query(Self.otherOrders)
            #expect(try eventually { try fleet.unproven() == [200, 200] })
            try expectEqual(fleet.versions(), [2, 2])
            try expectEqual(#require(fleet.gateway(0)).complaints(of: "has lost order 2"), 1)
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `a start obeys the order in the place of one that a failover has lost`() throws {
            let fleet = try Self.fleet(1)
            defer { fleet.end() }
            for to in ["50%", "100%"] {
                _ = try fleet.order(at: 0, #""rule":"orders","to":"\#(to)""#)
            }
            try expectEqual(fleet.versions(), [2])
            try fleet.stop(0)
            _ = try fleet.database.query(Self.otherOrders)
            try fleet.start(0)
            try expectEqual(fleet.unproven(), [200])
            try expectEqual(fleet.versions(), [2])
            try expectEqual(#require(fleet.gateway(0)).complaints(of: "has lost order 2"), 1)
            // What it has taken it has kept.
            try fleet.stop(0)
            try fleet.start(0)
            try expectEqual(fleet.unproven(), [200])
            let again = try #require(fleet.gateway(0)).child.complained
            #expect(!again.contains("has lost order 2"))
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `where no gateway answers an order is given at the database`() throws {
            let fleet = try Self.fleet(2)
            defer { fleet.end() }
            let config = fleet.scenario.path("direct.yaml")
            func rollout(_ words: String...) throws -> Scenario.Result {
                try fleet.scenario.portcullis(["rollout", "--config", config] + words)
            }
            let careless = try rollout("orders", "50%")
            expectEqual(careless.status, 1)
            #expect(careless.complained.contains("add --yes"))
            let given = try rollout("orders", "observe", "--why", "a bad build")
            expectEqual(given.status, 0, "\(given)")
            #expect(given.printed.contains("orders: enforce (file) → observe (command)\n"))
            #expect(given.printed.contains("order 1, in the fleet's database"))
            #expect(try eventually { try fleet.unproven() == [200, 200] })
            let listed = try rollout()
            #expect(listed.printed.contains("orders\tobserve\tcommand ("))
            #expect(listed.printed.contains("order 1, in the fleet's database"))
            #expect(try fleet.audit(at: 1).last?["gateway"] as? String == "command")
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `a drained gateway is not ready, serves on, and stays so until it is resumed`() throws
        {
            let fleet = try Self.fleet(2)
            defer { fleet.end() }
            let config = fleet.scenario.path("direct.yaml")
            func run(_ words: String...) throws -> Scenario.Result {
                try fleet.scenario.portcullis(["fleet"] + words + ["--config", config])
            }
            func readiness() throws -> [Int] {
                try (0..<2).map { try fleet.admin($0).send("GET", "/readyz").status }
            }
            #expect(try eventually { try Metrics(fleet.admin(0))["fleet_gateways"] == 2 })
            let unknown = try run("drain", "g7")
            #expect(unknown.status == 1 && unknown.complained.contains("no gateway is named g7"))
            let client = try #require(fleet.gateway(1)).client()
            try expectEqual(client.send("GET", "/open").status, 200)
            let drained = try run("drain", "g1", "--why", "a new kernel", "--wait", "30")
            expectEqual(drained.printed, "g1 is drained\n", "\(drained)")
            try expectEqual(readiness(), [200, 503])
            let reason = try fleet.admin(1).send("GET", "/readyz").text
            #expect(reason.contains("drained"))
            // A client that still comes is served.
            let answer = try #require(fleet.gateway(1)).client().send("GET", "/open")
            expectEqual(answer.status, 200)
            try fleet.crash(1)
            try fleet.start(1)
            #expect(try eventually { try readiness() == [200, 503] })
            let status = try run("status")
            expectEqual(status.status, 0)
            #expect(status.printed.contains("g0\tserving\torder 0\trules "), "\(status)")
            #expect(status.printed.contains("g1\tdrained, "))
            #expect(status.complained.contains("g1 is drained ("))
            #expect(status.complained.contains(": a new kernel)"))
            try expectEqual(run("resume", "g1", "--wait", "30").printed, "g1 serves again\n")
            try expectEqual(readiness(), [200, 200])
            try expectEqual(run("resume", "g1").status, 1)
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `off in the files ends an order to enforce for the whole fleet`() throws {
            let fleet = try Self.fleet(2)
            defer { fleet.end() }
            /// Changes the mode at each gateway, which reads its file at a start.
            func take(_ mode: String, to next: String) throws {
                for number in 0..<2 {
                    try fleet.stop(number)
                    try fleet.rewrite(number, "mode: \(mode)", "mode: \(next) # orders")
                    try fleet.start(number)
                }
            }
            try take("enforce", to: "observe")
            let given = try fleet.order(at: 0, #""rule":"orders","to":"100%""#)
            #expect(given.object?["order"] as? Int == 1)
            #expect(try eventually { try fleet.unproven() == [401, 401] })
            try take("observe # orders", to: "off")
            #expect(try eventually { try fleet.versions() == [2, 2] })
            let change = try #require(try fleet.audit(at: 1).last)
            #expect(change["to"] as? String == "no order")
            #expect(change["by"] as? String == "portcullis")
            try take("off # orders", to: "observe")
            try expectEqual(fleet.unproven(), [200, 200])
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `gateways with different rules are an alarm`() throws {
            let fleet = try Self.fleet(2)
            defer { fleet.end() }
            #expect(try eventually { try Metrics(fleet.admin(0))["fleet_gateways"] == 2 })
            try expectEqual(Metrics(fleet.admin(0))["fleet_rules_differ"], 0)
            try fleet.rewrite(1, "sign: [method, target]", "sign: [method, target, body]")
            try fleet.crash(1)
            try fleet.start(1)
            #expect(try eventually { try Metrics(fleet.admin(0))["fleet_rules_differ"] == 1 })
            // Comments and layout are no difference.
            try fleet.rewrite(1, "sign: [method, target, body]", "sign:  [ method, target ] # so")
            // It says that it ends, so nothing of it counts any more.
            try fleet.stop(1)
            try fleet.start(1)
            #expect(try eventually { try Metrics(fleet.admin(0))["fleet_rules_differ"] == 0 })
        }
    }
}

extension Fleet {
    func admin(_ number: Int) throws -> HTTPClient {
        let gateway = member(number)
        if let process = gateway as? GatewayProcess { return try process.adminClient() }
        guard let hosted = gateway as? SteppedGateway else {
            throw ChildProcess.Failure(description: "gateway \(number) was killed")
        }
        return try hosted.adminClient()
    }

    /// Gives an order at a gateway.
    ///
    /// - members: of the call, as JSON without braces.
    func order(at number: Int, _ members: String) throws -> Answer {
        try admin(number).send(
            "POST",
            "/rollout/change",
            content: Array("{\(members)}".utf8)
        )
    }

    /// What each gateway answers a request without a proof.
    func unproven() throws -> [Int] {
        try (0..<count).map { number in
            guard let gateway = member(number) else { return 0 }
            return try gateway.client().send("GET", "/v1/orders").status
        }
    }

    /// The version of the orders that each gateway serves.
    func versions() throws -> [Int] {
        try (0..<count).map { Int(try Metrics(admin($0))["fleet_order_version"]) }
    }

    /// The fleet as a gateway knows it.
    func facts(of number: Int) throws -> [String: Any] {
        try admin(number).send("GET", "/status").object?["fleet"] as? [String: Any] ?? [:]
    }

    func audit(at number: Int) throws -> [[String: Any]] {
        try admin(number).send("GET", "/audit").object?["changes"] as? [[String: Any]] ?? []
    }
}
