import DeviceKey
import Expectations
import Foundation
import LoopbackKit
import SoftwareAuthenticator
import TestSupport
import Testing

extension Scenarios {
    /// What operators see of a fleet: the report and the refusals of all gateways, at any of them.
    @Suite struct FleetReports {
        private static func fleet(_ count: Int = 3) throws -> Fleet {
            try Fleet(
                count,
                rules: StockRule.list(.bare),
                more: "limits: { address_failures: off }",
                takesOrders: true
            )
        }

        /// The hour of the one rule that has traffic.
        private struct Hour {
            let requests: Int
            let installs: Int
            /// The names of the gateways, with the age of their figures.
            let gateways: [String: Int?]
            let isAlone: Bool

            init(_ fleet: Fleet, at number: Int, of gateway: String? = nil) throws {
                let query = gateway.map { "?gateway=\($0)" } ?? ""
                let answer = try fleet.admin(number).send("GET", "/report/1h" + query)
                let report = try #require(answer.object, "\(answer.status) \(answer.text)")
                let rules = try #require(report["rules"] as? [[String: Any]])
                let rule = try #require(rules.first { $0["id"] as? String == "bare" })
                let hour = try #require((rule["windows"] as? [[String: Any]])?.first)
                requests = hour["requests"] as? Int ?? -1
                installs = hour["installs"] as? Int ?? -1
                var found: [String: Int?] = [:]
                for entry in report["gateways"] as? [[String: Any]] ?? [] {
                    let isAnswered = entry["answered"] as? Bool == true
                    let age = entry["age_seconds"] as? Int
                    found[entry["name"] as? String ?? ""] = isAnswered ? .some(0) : age
                }
                gateways = found
                isAlone = report["alone"] as? Bool ?? false
            }
        }

        /// Sends good requests of all keys to each gateway, and of a gateway with a higher number
        /// one more.
        private func send(_ keys: inout [SoftwareKey], _ fleet: Fleet) throws {
            for number in 0..<fleet.count {
                let client = try #require(fleet.gateway(number)).client()
                for place in keys.indices {
                    try expectEqual(client.send(raw: keys[place].get("/v1/bare")).status, 200)
                }
                for _ in 0..<number {
                    try expectEqual(client.send("GET", "/v1/bare").status, 401)
                }
            }
        }

        /// Runs a command that asks the first gateway.
        private func command(_ fleet: Fleet, _ words: String...) throws -> Scenario.Result {
            let file = fleet.scenario.path("gateway0.yaml")
            let text = try String(contentsOfFile: file, encoding: .utf8)
            let port = try #require(fleet.gateway(0)).adminPort()
            let place = "admin: { address: 127.0.0.1:"
            try fleet.scenario.write(
                "cli.yaml",
                text.replacing(place + "0", with: place + "\(port)")
            )
            let options = ["--config", fleet.scenario.path("cli.yaml")]
            return try fleet.scenario.portcullis(words + options)
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `a report at any gateway is of all, and an install counts once`() throws {
            let fleet = try Self.fleet()
            defer { fleet.end() }
            #expect(try eventually { try Metrics(fleet.admin(2))["fleet_gateways"] == 3 })
            var keys = try fleet.imported(5)
            try send(&keys, fleet)
            for number in 0..<3 {
                let began = ContinuousClock.now
                let hour = try Hour(fleet, at: number)
                print("fleet: a report of three gateways after \(ContinuousClock.now - began)")
                expectEqual(hour.requests, 18)
                #expect((4...6).contains(hour.installs))
                expectEqual(hour.gateways, ["g0": 0, "g1": 0, "g2": 0])
                let one = try Hour(fleet, at: number, of: "g2")
                #expect(one.requests == 7 && one.gateways == ["g2": 0])
            }
            let unknown = try fleet.admin(0).send("GET", "/report/1h?gateway=g7")
            #expect(unknown.status == 404 && unknown.reason == "no-such-gateway")
            // The forecast of an order is of all, too.
            _ = try fleet.order(at: 0, #""rule":"bare","to":"observe""#)
            let forecast = try fleet.admin(0).send(
                "POST",
                "/rollout/forecast",
                content: Array(#"{"rule":"bare","to":"100%"}"#.utf8)
            )
            #expect(forecast.text.contains("3 of 18 requests"), "\(forecast.text)")
            let printed = try command(fleet, "report", "bare", "--gateway", "g2").printed
            #expect(printed.contains("\ngateways: g2\n"), "\(printed)")
            let known = try command(fleet, "report", "bare", "--gateway", "g9")
            #expect(known.complained.contains("the fleet has no gateway of this name"))
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `what a gateway that is away last said counts, with its age`() throws {
            let fleet = try Self.fleet()
            defer { fleet.end() }
            #expect(try eventually { try Metrics(fleet.admin(0))["fleet_gateways"] == 3 })
            var keys = try fleet.imported(2)
            try send(&keys, fleet)
            try expectEqual(Hour(fleet, at: 0).requests, 9)
            try fleet.crash(2)
            let hour = try Hour(fleet, at: 1)
            expectEqual(hour.requests, 9)
            #expect(hour.gateways["g0"] == 0 && hour.gateways.count == 3)
            #expect(try #require(hour.gateways["g2"] ?? nil) >= 0)
            let text = try fleet.admin(1).send("GET", "/report/1h/text").text
            #expect(text.contains("\ngateways: g1, g0, g2\ng2 has not answered: what it said "))
            // A gateway that is cut off says what it has seen, and that it is alone.
            try fleet.cables[1].turn(.cut)
            let alone = try eventually { try Hour(fleet, at: 1).isAlone }
            #expect(alone)
            try expectEqual(Hour(fleet, at: 1).requests, 3)
            let other = try fleet.admin(1).send("GET", "/report/1h/text?gateway=g0").text
            #expect(other.contains("\ng0 has not answered, and nothing of it is counted\n"))
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `why asks all gateways, and the last words of those that are gone`() throws {
            let fleet = try Self.fleet()
            defer { fleet.end() }
            #expect(try eventually { try Metrics(fleet.admin(0))["fleet_gateways"] == 3 })
            var key = try fleet.imported(1)[0]
            let raw = key.get("/v1/bare")
            for number in 0..<3 {
                let client = try #require(fleet.gateway(number)).client()
                let answer = try client.send(raw: raw)
                expectEqual(answer.status, number == 0 ? 200 : 401)
            }
            func told(_ at: Int, _ name: String, _ query: String = "") throws -> [String] {
                let answer = try fleet.admin(at).send(
                    "POST",
                    "/why/json" + query,
                    content: Array(name.utf8)
                )
                let refusals = answer.object?["refusals"] as? [[String: Any]] ?? []
                return refusals.compactMap { $0["gateway"] as? String }.sorted()
            }
            let name = key.keyID.logName
            try expectEqual(told(0, name), ["g1", "g2"])
            try expectEqual(told(1, name), ["g1", "g2"])
            try expectEqual(told(1, name, "?gateway=g2"), ["g2"])
            let text = try fleet.admin(0).send("POST", "/why", content: Array(name.utf8)).text
            #expect(text.contains("counter-replayed"))
            #expect(text.contains("\n  gateway g2\n"))
            let list = try fleet.admin(0).send("GET", "/refusals").object
            expectEqual((list?["refusals"] as? [[String: Any]])?.count, 2)
            try fleet.crash(2)
            // All at once: each waits for the one that is gone.
            let again = Thread.Answer { try told(0, name) }
            let unknown = Thread.Answer { try self.command(fleet, "why", "nothing") }
            let later = try fleet.admin(0).send("POST", "/why", content: Array(name.utf8)).text
            #expect(later.contains("\ng2 has not answered: what it said "), "\(later)")
            try expectEqual(again.value(), ["g1", "g2"])
            let none = try unknown.value()
            expectEqual(none.status, 1)
            #expect(none.complained.contains("portcullis: g2 has not answered: "), "\(none)")
            #expect(none.complained.contains("no refusal of this name is remembered"))
        }
    }
}
