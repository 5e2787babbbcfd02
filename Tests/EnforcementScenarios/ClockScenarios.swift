import Cryptography
import Expectations
import Foundation
import LoopbackKit
import RequestBinding
import SoftwareAuthenticator
import Testing

extension Scenarios {
    /// What holds when the wall clock is stepped by an hour, forth and back.
    @Suite struct Clocks {
        private static let rules = StockRule.list(
            .signed,
            .bare,
            more: """
                - id: growing
                  match: { path: /v1/growing }
                  mode: enforce
                  rollout: { from: 2026-03-01, to: 2026-03-02, start: 0%, end: 100%, by: key }
                  sign: [method, target]
                """
        )

        private func start(
            _ scenario: Scenario,
            at time: UnixTime = Scenario.now
        ) throws -> SteppedGateway {
            try scenario.configure(try scenario.origin(), rules: Self.rules)
            return try SteppedGateway(scenario, at: time.seconds)
        }

        private static func send(
            _ path: String,
            _ key: inout SoftwareKey,
            _ client: HTTPClient,
            challenge: String? = nil
        ) throws -> (raw: [UInt8], answer: Answer) {
            let raw = key.get(path, challenge: challenge)
            return (raw, try client.send(raw: raw))
        }

        @Test(arguments: [[1, -1], [-1, 1], [1, -2, 1]])
        func `challenges expire, the next one is good, and nothing is admitted twice`(
            steps: [Int64]
        ) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let gateway = try start(scenario)
            defer { gateway.stop() }
            let client = gateway.client()
            var key = Scenario.device.makeKey()
            try expectEqual(gateway.enrol(key, client).status, 201)
            var admitted: [[UInt8]] = []
            for step in steps {
                let old = try gateway.challenges("assertion", client)[0]
                let bare = try Self.send("/v1/bare", &key, client)
                expectEqual(bare.answer.status, 200)
                gateway.step(hours: step)
                // An hour is more than the five minutes of a challenge, in either direction.
                let late = try Self.send("/v1/signed", &key, client, challenge: old)
                expectEqual(late.answer.status, 401)
                expectEqual(late.answer.reason, "challenge-expired")
                expectEqual(late.answer.member("next"), "sign-again")
                let fresh = late.answer.value("App-Attest-Challenge")
                let again = try Self.send("/v1/signed", &key, client, challenge: fresh)
                expectEqual(again.answer.status, 200)
                admitted += [bare.raw, again.raw]
                for raw in admitted {
                    try expectEqual(client.send(raw: raw).status, 401)
                }
            }
        }

        /// The dates of a phone's factory chain do not count.
        @Test(.ofApple, arguments: [-1, 1])
        func `an enrolment of the hour before or after is judged by its certificate`(
            hours: Int64
        ) throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let gateway = try start(scenario)
            defer { gateway.stop() }
            let client = gateway.client()
            let day: Int64 = 86_400
            gateway.step(hours: hours)
            // Apple's certificates begin a day before; an hour is within.
            try expectEqual(gateway.enrol(Scenario.device.makeKey(), client).status, 201)
            // At the edges of a certificate's time the hour decides.
            let edge = hours > 0 ? -2 * day + 1_800 : day - 1_800
            let time = Scenario.now.advanced(bySeconds: edge)
            let key = Scenario.device.makeKey()
            let outside = try gateway.enrol(key, client, at: time)
            expectEqual(outside.status, 403)
            expectEqual(outside.reason, "certificate-expired")
            gateway.step(hours: -hours)
            try expectEqual(gateway.enrol(key, client, at: time).status, 201)
        }

        @Test func `an enrolment's challenge outlives a step back, and is spent once`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let gateway = try start(scenario)
            defer { gateway.stop() }
            let client = gateway.client()
            let key = Scenario.device.makeKey()
            let challenge = try gateway.challenges("enrolment", client)[0]
            gateway.step(hours: -1)
            try expectEqual(gateway.enrol(key, client, with: challenge).status, 201)
            let other = Scenario.device.makeKey()
            let again = try gateway.enrol(other, client, with: challenge)
            expectEqual(again.reason, "challenge-spent")
            gateway.step(hours: 2)
            let late = try gateway.challenges("enrolment", client)[0]
            gateway.step(hours: 1)
            try expectEqual(gateway.enrol(other, client, with: late).reason, "challenge-expired")
        }

        /// Half way through the day half of the keys are reached; an hour is a 24th of them.
        @Test func `a schedule goes with the clock, and back to the very same keys`() throws {
            let scenario = try Scenario()
            defer { scenario.end() }
            let noon = UnixTime(seconds: 1_772_366_400)
            let gateway = try start(scenario, at: noon)
            defer { gateway.stop() }
            let client = gateway.client()
            // Nobody knows them: whoever is reached is refused.
            var keys = (0..<200).map { _ in Scenario.device.makeKey() }
            func reached() throws -> Set<Int> {
                try Set(
                    keys.indices.filter {
                        try Self.send("/v1/growing", &keys[$0], client).answer.status == 401
                    }
                )
            }
            let atNoon = try reached()
            gateway.step(hours: -1)
            let before = try reached()
            gateway.step(hours: 2)
            let after = try reached()
            gateway.step(hours: -1)
            try expectEqual(reached(), atNoon)
            #expect(before.isSubset(of: atNoon) && atNoon.isSubset(of: after))
            gateway.step(hours: -13)
            #expect(try reached().isEmpty)
            gateway.step(hours: 26)
            try expectEqual(reached().count, keys.count)
        }
    }
}
