import ClientKit
import Expectations
import Foundation
import LoopbackKit
import PortcullisClient
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension ClientScenarios {
    /// Enrolments that the gateway spreads over time, and what an app hands in with its own.
    @Suite struct Ramps {
        private static let rules = """
            - { id: orders, match: { path: /orders/** }, mode: enforce, counter: { window: 64 } }
            - { id: watched, match: { path: /watched/** }, mode: observe, counter: { window: 64 } }
            """
        private static let nobody = "enrolment: { percent: 0% }"

        /// Whether it is the same hold. One that was read from the store again may differ by less
        /// than a microsecond, since a record counts seconds from 1970.
        private static func isHeld(_ proof: SentProof, by hold: EnrolmentHold) -> Bool {
            guard case .none(.enrolmentHeld(let other)) = proof else { return false }
            let difference = other.until.timeIntervalSince(hold.until)
            return other.cause == hold.cause && abs(difference) < 1e-3
        }

        /// `Retry-After` was ignored by the sample.
        @Test func `a device outside the ramp asks nobody for as long as Retry-After says`()
            async throws
        {
            let stand = try ClientStand(rules: Self.rules, more: Self.nobody)
            defer { stand.end() }
            let app = try stand.app()
            let watched = try stand.request("GET", "/watched/1")
            let answer = try await app.send(watched)
            expectEqual(answer.statusCode, 200)
            guard case .none(.enrolmentHeld(let hold)) = answer.proof else {
                Issue.record("\(answer.proof)")
                return
            }
            expectEqual(hold.cause, .throttled)
            // Between half an hour and an hour, and up to a quarter more.
            let seconds = hold.until.timeIntervalSince(stand.clock.now)
            #expect((1_790...4_501).contains(seconds))
            for _ in 0..<2 {
                let answers = try await app.sendAtOnce(10, watched)
                #expect(answers.allSatisfy { $0.statusCode == 200 && $0.attempts == 1 })
                #expect(answers.allSatisfy { Self.isHeld($0.proof, by: hold) })
                // A request of a rule that enforces does not wait for it either.
                let refused = try await app.send(stand.request("GET", "/orders/1"))
                #expect((refused.statusCode, refused.attempts) == (401, 1))
                expectEqual(stand.statuses(ClientStand.challenges), [429])
                stand.clock.advance(by: seconds - 60)
            }
            expectEqual(stand.cost, Cost(keys: 1, attestations: 0))
            expectEqual(Set(stand.verdicts), ["refuse"])
        }

        @Test func `a device that the ramp has reached enrols with the key that it asked for`()
            async throws
        {
            let stand = try ClientStand(rules: Self.rules, more: Self.nobody)
            defer { stand.end() }
            let request = try stand.request("GET", "/orders/1")
            let app = try stand.app()
            let early = try await app.send(request)
            expectEqual(early.statusCode, 401)
            guard case .none(.enrolmentHeld(let hold)) = early.proof else {
                Issue.record("\(early.proof)")
                return
            }
            expectEqual(stand.cost, Cost(keys: 1, attestations: 0))
            try stand.gateway.edit(Self.nobody, into: "enrolment: { percent: 100% }")
            try stand.gateway.restart()
            // Before the time has come, nothing is asked.
            try await expectEqual(app.send(request).statusCode, 401)
            expectEqual(stand.statuses(ClientStand.challenges), [429])
            stand.clock.advance(to: hold.until)
            let answers = try await app.sendAtOnce(20, request)
            #expect(answers.allSatisfy { $0.statusCode == 200 })
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
        }

        @Test
        func `devices that are over the rate come one after the other, each asking Apple once`()
            async throws
        {
            let stand = try ClientStand(more: "enrolment: { rate: 2/s, burst: 1 }")
            defer { stand.end() }
            let request = try stand.request("GET", "/orders/1")
            // Three installs at the same moment. They wait in the request, as its rule enforces.
            let apps = try (0..<3).map { _ in
                stand.store = MemoryEnrolmentStore()
                return try stand.app { $0.limits.maximumAttempts = 8 }
            }
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for app in apps { group.addTask { try await app.send(request).statusCode } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            expectEqual(statuses, [200, 200, 200])
            expectEqual(stand.cost, Cost(keys: 3, attestations: 3))
            expectEqual(stand.statuses(ClientStand.keys), [201, 201, 201])
            #expect(stand.statuses(ClientStand.challenges).contains(429))
        }

        @Test func `the context of an enrolment reaches the origin, and a reset changes it`()
            async throws
        {
            let stand = try ClientStand()
            defer { stand.end() }
            let accounts = [Data("account 7".utf8), Data((0...255).map(UInt8.init))]
            let app = try stand.app { $0.context = accounts[0] }
            let request = try stand.request("GET", "/orders/1")
            try await expectEqual(app.send(request).statusCode, 200)
            try await expectEqual(app.send(request).statusCode, 200)
            try await app.reset(context: accounts[1])
            try await expectEqual(app.send(request).statusCode, 200)
            let texts = accounts.map { $0.base64EncodedString() }
            expectEqual(stand.told("Context"), [texts[0], texts[0], texts[1]])
            expectEqual(stand.cost, Cost(keys: 2, attestations: 2))
            // An app that starts again has the key with its context.
            try await expectEqual(stand.app().send(request).statusCode, 200)
            expectEqual(stand.told("Context").last, texts[1])
            expectEqual(stand.cost, Cost(keys: 2, attestations: 2))
        }
    }
}
