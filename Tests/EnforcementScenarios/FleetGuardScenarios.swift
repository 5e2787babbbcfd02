import Expectations
import Foundation
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import TestSupport
import Testing

extension Scenarios {
    /// Guards that count what all gateways of a fleet see.
    @Suite struct FleetGuards {
        private static let form = SigningForm.lines([.method, .target], headers: [])

        private static func fleet(minimum: Int) throws -> Fleet {
            try Fleet(
                3,
                rules: """
                    - id: orders
                      match: { path: /v1/orders }
                      mode: enforce
                      sign: [method, target]
                      challenge: none
                      guard: { refused: 10%, of: installs, window: 1h, minimum: \(minimum) }
                    """,
                more: "limits: { address_failures: off }",
                takesOrders: true
            )
        }

        /// Sends a request of each key to a gateway, some of them with a bad signature.
        private func send(
            _ keys: ArraySlice<SoftwareKey>,
            bad: Int,
            to gateway: GatewayProcess
        ) throws {
            let client = gateway.client()
            for (number, key) in keys.enumerated() {
                var key = key
                let request = SoftwareKey.Request(method: "GET", target: "/v1/orders")
                let damage: AssertionDamage? = number < bad ? .otherClientData : nil
                let proof = key.proof(of: request, signing: Self.form, damage: damage)
                _ = try client.send(request, proof)
            }
        }

        private func falls(_ fleet: Fleet) throws -> [Double] {
            try (0..<fleet.count).map { try Metrics(fleet.admin($0))["guard_falls_total"] }
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `a bad release that no gateway sees enough of is stopped at all of them, once`()
            throws
        {
            let fleet = try Self.fleet(minimum: 150)
            defer { fleet.end() }
            let keys = try fleet.imported(200)
            let gateways = try (0..<3).map { try #require(fleet.gateway($0)) }
            // 80, 15 and 5 % of the traffic, a quarter of it bad.
            try send(keys[..<10], bad: 3, to: gateways[2])
            try send(keys[10..<40], bad: 8, to: gateways[1])
            try expectEqual(fleet.unproven(), [401, 401, 401])
            let began = ContinuousClock.now
            try send(keys[40...], bad: 40, to: gateways[0])
            let isStopped = try eventually { try fleet.unproven() == [200, 200, 200] }
            #expect(isStopped)
            print("fleet: a bad release is stopped everywhere after \(ContinuousClock.now - began)")
            let isSeen = try eventually { try fleet.versions() == [1, 1, 1] }
            #expect(isSeen)
            try expectEqual(falls(fleet).reduce(0, +), 1)
            for number in 0..<3 {
                try expectEqual(Metrics(fleet.admin(number))["guard_fallen"], 1)
            }
            let changes = try fleet.audit(at: 2)
            expectEqual(changes.count, 1)
            #expect(changes[0]["by"] as? String == "guard")
            // After an order it counts from the beginning, everywhere.
            let answer = try fleet.order(at: 1, #""rule":"orders","to":"100%""#)
            expectEqual(answer.status, 200)
            #expect(try eventually { try fleet.versions() == [2, 2, 2] })
            #expect(
                try eventually {
                    try (0..<3).allSatisfy { try Metrics(fleet.admin($0))["guard_installs"] == 0 }
                }
            )
            try send(keys[..<10], bad: 0, to: gateways[2])
            let isCounted = try eventually {
                let installs = try Metrics(fleet.admin(0))["guard_installs"]
                return (8...12).contains(installs)
            }
            #expect(isCounted)
            try expectEqual(fleet.unproven(), [401, 401, 401])
        }

        @Test(.enabled(if: DatabaseServer.programs != nil))
        func `a gateway that is cut off falls alone on what it sees, and the others follow later`()
            throws
        {
            let fleet = try Self.fleet(minimum: 20)
            defer { fleet.end() }
            let keys = try fleet.imported(60)
            let gateway = try #require(fleet.gateway(1))
            // They are in its memory, and it has the fleet's secret.
            try send(keys[...], bad: 0, to: gateway)
            try fleet.cables[1].turn(.cut)
            try send(keys[...], bad: 60, to: gateway)
            #expect(try eventually { try fleet.unproven() == [401, 200, 401] })
            try fleet.cables[1].turn(.whole)
            #expect(try eventually { try fleet.unproven() == [200, 200, 200] })
            try expectEqual(falls(fleet), [0, 1, 0])
        }
    }
}
