import Expectations
import Foundation
import LoopbackKit
import SoftwareAuthenticator
import TestSupport
import Testing

extension Scenarios {
    /// Three gateways on one PostgreSQL, and what befalls them: in the manner of Jepsen, clients
    /// write down what they sent and were answered, the origin what it executed, and both are
    /// compared with what the database holds.
    @Suite struct FleetFaults {
        /// Two in an ordinary run; `PORTCULLIS_FLEET_CYCLES=50` for a long one.
        private static let cycles =
            ProcessInfo.processInfo.environment["PORTCULLIS_FLEET_CYCLES"].flatMap { Int($0) } ?? 2

        private static let rules =
            StockRule.list(.signed, .bare, .window) + """
                - id: once
                  match: { path: /once }
                  mode: enforce
                  accept: [assertion, once]

                """

        /// A folder with the keys of the tokens' issuer.
        private static func issuer() throws -> Scenario {
            let issuer = try Scenario()
            try issuer.write("keys.json", TokenIssuer.set(.init("one")))
            return issuer
        }

        private static func more(_ issuer: Scenario) -> String {
            """
            enrolment: { rate: 10000/s, burst: 100000 }
            limits: { address_failures: off }
            proofs:
              once: { kind: jwt, field: X-Once, once: jti, issuer: \(TokenIssuer.name), \
            audience: shop, algorithms: [ES256], keys: { file: \(issuer.path("keys.json")) } }
            """
        }

        @Test(
            .enabled(if: DatabaseServer.programs != nil),
            arguments: Fleet.Arrangement.possible
        )
        func `a proof that three gateways get at once is admitted once, whatever fails`(
            arrangement: Fleet.Arrangement
        ) throws {
            let issuer = try Self.issuer()
            defer { issuer.end() }
            let fleet = try Fleet(
                3,
                rules: Self.rules,
                more: Self.more(issuer),
                arrangement: arrangement,
                revokesSoon: true
            )
            let load = FleetLoad(fleet)
            defer {
                try? load.end()
                fleet.end()
            }
            load.begin(try fleet.imported(3))
            load.joinTokens()
            var ledger = FleetLedger(fleet, load)
            var faults: [FleetFault] = []
            let cycles = Self.cycles
            for cycle in 1...cycles {
                if faults.isEmpty { faults = FleetFault.all(of: arrangement).shuffled() }
                let fault = faults.removeLast()
                let remark: Comment = "\(arrangement), cycle \(cycle), \(fault)"
                // A key that goes while everything else goes wrong.
                let victim = try fleet.imported(1)[0]
                load.join(victim, FleetLoad.Kind.allCases[cycle % 3])
                #expect(load.awaitAdmitted(30, seconds: ChildProcess.patience), remark)
                try fault.befall(fleet, load)
                try fleet.revoke(victim.keyID)
                load.noteRevoked(victim.keyID)
                // All gateways go on by themselves.
                #expect(load.awaitAdmitted(30, seconds: ChildProcess.patience), remark)
                try ledger.examine(remark)
            }
            try load.end()
            try ledger.examine("\(arrangement), at the end")
            try ledger.replay()
            #expect(!load.enrolled.isEmpty)
            #expect(fleet.origin.seen.contains { $0.target.hasPrefix("/once") })
            print(
                "fleet, \(arrangement): \(cycles) cycles, \(load.sent.count) assertions and "
                    + "\(load.sentTokens.count) tokens at 3 gateways at once, "
                    + "\(fleet.origin.seen.count) executed, none twice; "
                    + "\(load.enrolled.count) keys enrolled"
            )
        }

        @Test(
            .enabled(if: DatabaseServer.programs != nil),
            // The admin listeners of other networks are out of reach.
            arguments: [Fleet.Arrangement.processes, .skewedClocks]
        )
        func `orders hold in two seconds and never go back, and guards fall once, whatever fails`(
            arrangement: Fleet.Arrangement
        ) throws {
            let issuer = try Self.issuer()
            defer { issuer.end() }
            let fleet = try Fleet(
                3,
                rules: Self.rules + FleetGuardLoad.rule,
                more: Self.more(issuer),
                arrangement: arrangement,
                takesOrders: true
            )
            let load = FleetLoad(fleet)
            let guards = try FleetGuardLoad(fleet)
            let orders = FleetOrderLoad(fleet, rule: "window")
            defer {
                orders.end()
                try? load.end()
                fleet.end()
            }
            load.begin(try fleet.imported(3))
            var faults: [FleetFault] = []
            let cycles = Self.cycles
            for cycle in 1...cycles {
                if faults.isEmpty { faults = FleetFault.all(of: arrangement).shuffled() }
                let fault = faults.removeLast()
                let remark: Comment = "\(arrangement), cycle \(cycle), \(fault)"
                try guards.release { try fault.befall(fleet, load) }
                let (last, checks) = (orders.last, orders.checks)
                let goesOn = eventually { orders.last > last + 1 && orders.checks > checks }
                #expect(goesOn, remark)
                expectEqual(orders.faults, [], remark)
            }
            orders.end()
            let last = orders.last
            let isObeyed = try eventually {
                let versions = try fleet.versions()
                return versions[0] >= last && Set(versions).count == 1
            }
            #expect(isObeyed)
            print(
                "fleet, \(arrangement): \(cycles) cycles, \(last) orders, none older after a "
                    + "newer one; obeyed in two seconds \(orders.checks) times; "
                    + "\(guards.releases) bad releases stopped, each once"
            )
        }
    }
}
