import Expectations
import Foundation
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// Enforcement for a share of the keys.
    @Suite struct Rollouts {
        private static func rules(_ percent: Int) -> String {
            """
            - id: orders
              match: { path: /v1/orders }
              mode: enforce
              rollout: { percent: \(percent)%, by: key }
              sign: [method, target]
            """
        }

        /// Hundreds of replays from one address are what is asked for here.
        private static let more = "limits: { address_failures: off }"

        /// Sends a request with a counter that was used before for each key.
        ///
        /// Returns the numbers of the keys that were refused; all others are at the origin, with
        /// the verdict that they would have had.
        private func refused(
            _ scenario: Scenario,
            _ gateway: GatewayProcess,
            _ origin: RecordingOrigin,
            _ keys: [SoftwareKey]
        ) throws -> Set<Int> {
            let client = gateway.client()
            let before = origin.seen.count
            let request = SoftwareKey.Request(method: "GET", target: "/v1/orders")
            let signing = SigningForm.lines([.method, .target], headers: [])
            var refused: Set<Int> = []
            for (number, key) in keys.enumerated() {
                var key = key
                let proof = key.proof(of: request, signing: signing, damage: .counterRepeated)
                let answer = try client.send(request, proof, more: [("X-Number", "\(number)")])
                if answer.status == 401, answer.reason == "counter-replayed" {
                    refused.insert(number)
                } else {
                    expectEqual(answer.status, 200)
                }
            }
            let seen = try origin.seen(before + keys.count - refused.count).dropFirst(before)
            let forwarded = seen.compactMap { $0.head.value("X-Number").flatMap { Int($0) } }
            expectEqual(Set(forwarded), Set(keys.indices).subtracting(refused))
            expectEqual(forwarded.count, keys.count - refused.count)
            for request in seen {
                expectEqual(request.head.all("App-Attest-Verdict"), ["refuse"])
                expectEqual(request.head.all("App-Attest-Reason"), ["counter-replayed"])
            }
            return refused
        }

        @Test func `the same quarter of the keys is enforced, and is part of the half`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules(25), more: Self.more)
            let keys = try scenario.imported(400)
            let first = try scenario.serve()
            let quarter = try refused(scenario, first, origin, keys)
            // Six standard deviations to either side of 100.
            #expect((48...152).contains(quarter.count))
            try expectEqual(refused(scenario, first, origin, keys), quarter)
            try expectEqual(first.stop(), 0)

            let second = try scenario.serve()
            try expectEqual(refused(scenario, second, origin, keys), quarter)
            try second.crash()

            try scenario.configure(origin, rules: Self.rules(50), more: Self.more)
            let third = try scenario.serve()
            let half = try refused(scenario, third, origin, keys)
            #expect((140...260).contains(half.count))
            #expect(half.isSuperset(of: quarter))

            // Raised once more, without a restart.
            try scenario.configure(origin, rules: Self.rules(100), more: Self.more)
            third.child.signal(SIGHUP)
            _ = try third.child.wait(for: "reload") { _, complained in
                complained.contains("generation 2") ? true : nil
            }
            let some = Array(keys.prefix(100))
            try expectEqual(refused(scenario, third, origin, some).count, some.count)

            try scenario.configure(origin, rules: Self.rules(0), more: Self.more)
            third.child.signal(SIGHUP)
            _ = try third.child.wait(for: "reload") { _, complained in
                complained.contains("generation 3") ? true : nil
            }
            #expect(try refused(scenario, third, origin, some).isEmpty)
        }

        /// How a request without a good signature fares from one address: whatever key it names.
        private func fates(
            _ client: HTTPClient,
            _ keys: [SoftwareKey],
            from address: String,
            damage: AssertionDamage? = nil
        ) throws -> Set<Int> {
            let request = SoftwareKey.Request(method: "GET", target: "/v1/orders")
            let signing = SigningForm.lines([.method, .target], headers: [])
            var fates: Set<Int> = []
            for key in keys {
                var key = key
                let proof = key.proof(of: request, signing: signing, damage: damage)
                let answer = try client.send(request, proof, more: [("X-Forwarded-For", address)])
                fates.insert(answer.status == 200 ? 200 : 400)
            }
            return fates
        }

        @Test
        func `nobody chooses a key id that falls outside: without a signature the address counts`()
            throws
        {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            let more = "trusted_proxies: [127.0.0.1/32]\n" + Self.more
            try scenario.configure(origin, rules: Self.rules(50), more: more)
            let enrolled = try scenario.imported(12)
            let madeUp = (0..<12).map { _ in Scenario.device.makeKey() }
            let gateway = try scenario.serve()
            let client = gateway.client()
            var all: Set<Int> = []
            for number in 1...24 {
                let address = "192.0.2.\(number)"
                let unknown = try fates(client, madeUp, from: address)
                expectEqual(unknown.count, 1, "an unenrolled key id was chosen")
                let forged = try fates(client, enrolled, from: address, damage: .signature)
                expectEqual(forged, unknown, "an enrolled key id was chosen")
                let fields = [("X-Forwarded-For", address)]
                let head = HTTPClient.head("GET", "/v1/orders", fields)
                let unsigned = try client.send(raw: Array((head + "\r\n").utf8))
                expectEqual(unknown, [unsigned.status == 200 ? 200 : 400])
                all.formUnion(unknown)
            }
            expectEqual(all, [200, 400], "half of the addresses are included")
        }

        @Test func `a key outside the rollout passes all the same when it is good`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let origin = try scenario.origin()
            try scenario.configure(origin, rules: Self.rules(25))
            let keys = try scenario.imported(40)
            let gateway = try scenario.serve()
            let client = gateway.client()
            let request = SoftwareKey.Request(method: "GET", target: "/v1/orders")
            let signing = SigningForm.lines([.method, .target], headers: [])
            for key in keys {
                var key = key
                let proof = key.proof(of: request, signing: signing)
                try expectEqual(client.send(request, proof).status, 200)
            }
            let verdicts = try origin.seen(40).flatMap { $0.head.all("App-Attest-Verdict") }
            expectEqual(verdicts, Array(repeating: "pass", count: 40))
        }
    }
}
