import Expectations
import Foundation
import Glibc
import LoopbackKit
import Telemetry
import TestSupport
import Testing

extension Scenarios {
    /// Gateways of a fleet that end, and are started again one after the other.
    @Suite struct FleetUpgrades {
        private func run(_ fleet: Fleet, _ words: String...) throws -> Scenario.Result {
            let options = ["--config", fleet.scenario.path("direct.yaml")]
            return try fleet.scenario.portcullis(["fleet"] + words + options)
        }

        private static func fleet(_ count: Int, more: String = "") throws -> Fleet {
            let fleet = try Fleet(
                count,
                rules: StockRule.list(.bare),
                more: more,
                takesOrders: true
            )
            let isSeen = try eventually {
                try Metrics(fleet.admin(0))["fleet_gateways"] == Double(count)
            }
            #expect(isSeen)
            return fleet
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `a gateway that has ended says so at once, and its name is free`() throws {
            let fleet = try Self.fleet(2)
            defer { fleet.end() }
            try fleet.stop(1)
            let status = try run(fleet, "status")
            #expect(status.printed.contains("\ng1\tended "), "\(status)")
            #expect(status.printed.contains(" s ago\torder 0\t"))
            #expect(!status.complained.contains("portcullis: "))
            expectEqual(status.status, 0)
            #expect(try eventually { try Metrics(fleet.admin(0))["fleet_gateways"] == 1 })
            let gateways = try #require(fleet.facts(of: 0)["gateways"] as? [[String: Any]])
            expectEqual(gateways.map { $0["standing"] as? String }, ["serving", "ended"])
            try fleet.start(1)
            #expect(try eventually { try Metrics(fleet.admin(0))["fleet_gateways"] == 2 })
            try expectEqual(#require(fleet.facts(of: 0)["gateways"] as? [Any]).count, 2)
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `fleet status fails while a gateway is silent, and not for a dead process's row`()
            throws
        {
            let fleet = try Self.fleet(2)
            defer { fleet.end() }
            func addSilent(_ instance: Int, as name: String) throws {
                _ = try fleet.database.query(
                    """
                    INSERT INTO gateways (instance, name, program, address, started_at, seen_at,
                        order_version, pending, rules_digest, standing, clients)
                    SELECT \(instance), '\(name)', program, address, 0,
                        extract(epoch FROM now())::bigint - 60, 0, 0, rules_digest, 'serving', 0
                    FROM gateways WHERE name = 'g0'
                    """
                )
            }
            // It was killed, and a newer process has its name.
            try addSilent(71, as: "g1")
            let served = try run(fleet, "status")
            expectEqual(served.status, 0, "\(served)")
            try addSilent(72, as: "g7")
            let silent = try run(fleet, "status")
            expectEqual(silent.status, 1)
            #expect(silent.printed.contains("g7\tserving (not heard of for "), "\(silent)")
            #expect(silent.complained.contains("portcullis: g7 has not been heard of for 6"))
            #expect(!silent.complained.contains("g1 has not been heard of"))
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `an upgrade starts one gateway after the other, and waits until each serves`() throws {
            let fleet = try Self.fleet(3)
            defer { fleet.end() }
            // The command says which gateway it is, and waits until the test has started it again.
            let folder = fleet.scenario.path("")
            let command = """
                cd \(folder) && touch "begun-$PORTCULLIS_GATEWAY" && \
                while [ ! -e "done-$PORTCULLIS_GATEWAY" ]; do sleep 0.1; done
                """
            let upgrade = Thread.Answer { try self.run(fleet, "upgrade", "--run", command) }
            func ready() throws -> [Int] {
                try (0..<3).map { try fleet.admin($0).send("GET", "/readyz").status }
            }
            for number in 0..<3 {
                let begun = fleet.scenario.path("begun-g\(number)")
                let isDrained = eventually { FileManager.default.fileExists(atPath: begun) }
                #expect(isDrained)
                try expectEqual(ready(), (0..<3).map { $0 == number ? 503 : 200 })
                try fleet.stop(number)
                try fleet.start(number)
                try fleet.scenario.write("done-g\(number)", "")
            }
            let result = try upgrade.value()
            let lines = result.printed.split(separator: "\n").map(String.init)
            let version = ProgramVersion.text
            let expected = (0..<3).map { "g\($0) serves again, version \(version)" }
            expectEqual(lines, expected, "\(result)")
            try expectEqual(ready(), [200, 200, 200])
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `an upgrade that fails ends there, and the others serve on`() throws {
            let fleet = try Self.fleet(2)
            defer { fleet.end() }
            let failed = try run(fleet, "upgrade", "--run", "exit 3")
            expectEqual(failed.status, 1)
            #expect(failed.complained.contains("g0 stays drained: the command failed: "))
            #expect(failed.complained.contains("it ended with status 3"))
            // It has started nothing; and what is drained already is left out.
            let idle = try run(fleet, "upgrade", "--run", "true", "--wait", "5")
            #expect(idle.complained.contains("g1 stays drained: no new process"), "\(idle)")
            try expectEqual(run(fleet, "upgrade", "--run", "exit 3").printed, "")
            try expectEqual(run(fleet, "upgrade", "--run", "true", "g7").status, 1)
            try expectEqual(run(fleet, "resume", "g0", "--wait", "30").printed, "g0 serves again\n")
        }

        /// `-oProxyCommand=…` was executed.
        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `a row with a name that no gateway can have reaches neither a command nor a terminal`()
            throws
        {
            let fleet = try Self.fleet(1)
            defer { fleet.end() }
            for (instance, name) in [(71, "-oProxyCommand=id"), (72, "g\u{1B}]0;x\u{7}")] {
                _ = try fleet.database.query(
                    """
                    INSERT INTO gateways (instance, name, program, address, started_at, seen_at,
                        order_version, pending, rules_digest, standing, clients)
                    SELECT \(instance), '\(name)', '1' || chr(27) || '[2J', 'x', 0,
                        extract(epoch FROM now())::bigint + 3600, 0, 0, rules_digest, 'serving', 0
                    FROM gateways WHERE name = 'g0'
                    """
                )
            }
            _ = try fleet.database.query(
                "UPDATE gateways SET address = chr(27) || 'c' || chr(10) || 'g9' WHERE name = 'g0'"
            )
            let status = try run(fleet, "status")
            expectEqual(status.printed.split(separator: "\n").count, 2, "\(status.printed)")
            #expect(status.printed.hasPrefix("g0\t"))
            #expect(!(status.printed + status.complained).contains("\u{1B}"))
            #expect(status.complained.contains("2 rows of the tables gateways and drains"))
            let command = "echo \"$PORTCULLIS_GATEWAY\" >> \(fleet.scenario.path("named")); exit 3"
            #expect(try run(fleet, "upgrade", "--run", command).status == 1)
            let named = try String(contentsOfFile: fleet.scenario.path("named"), encoding: .utf8)
            expectEqual(named, "g0\n")
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `a process that has handed over counts no more, though it may drain for long`() throws
        {
            let fleet = try Self.fleet(2, more: "timeouts: { drain: 10m }")
            defer { fleet.end() }
            func processes() throws -> [Substring] {
                try fleet.database.query(
                    "SELECT instance FROM gateways WHERE name = 'g1' AND standing <> 'ended'"
                )
            }
            let before = try processes()
            let gateway = try #require(fleet.gateway(1))
            // It drains as long as this client does not send the rest.
            let client = try Wire(port: gateway.port)
            defer { client.close() }
            try client.send("POST /open HTTP/1.1\r\nHost: a\r\nContent-Length: 40000\r\n\r\n")
            try client.send([UInt8](repeating: 7, count: 20_000))
            try fleet.origin.awaitHeads(1)
            gateway.child.signal(SIGUSR2)
            let successor: Int32 = try gateway.child.wait(for: "successor") { _, complained in
                guard let start = complained.range(of: "upgrade: process ") else { return nil }
                return Int32(complained[start.upperBound...].prefix { $0.isNumber })
            }
            defer { kill(successor, SIGKILL) }
            // Sooner than a silent process would be forgotten.
            let isOne = try eventually(within: 8) {
                let after = try processes()
                return after.count == 1 && after != before
            }
            #expect(isOne)
        }
    }
}
