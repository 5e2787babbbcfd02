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
    /// From no key to an enrolled one, and what that costs at Apple.
    @Suite struct Enrolments {
        /// A first delay, in seconds, that no request waits for.
        private static let long = 60.0

        @Test func `200 concurrent first requests attest one key`() async throws {
            let stand = try ClientStand()
            defer { stand.end() }
            let app = try stand.app()
            let answers = try await app.sendAtOnce(200, stand.request("GET", "/orders/1"))
            #expect(answers.allSatisfy { $0.statusCode == 200 })
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
            expectEqual(stand.verdicts, Array(repeating: "pass", count: 200))
        }

        @Test func `a gateway that lost its store costs one key more, not one for each request`()
            async throws
        {
            let stand = try ClientStand()
            defer { stand.end() }
            let app = try stand.app()
            let request = try stand.request("GET", "/orders/1")
            try await expectEqual(app.send(request).statusCode, 200)
            try stand.gateway.restart(wipingStore: true)
            let answers = try await app.sendAtOnce(50, request)
            #expect(answers.allSatisfy { $0.statusCode == 200 })
            expectEqual(stand.cost, Cost(keys: 2, attestations: 2))
        }

        @Test func `an app that lost its store costs one key more`() async throws {
            let stand = try ClientStand()
            defer { stand.end() }
            let request = try stand.request("GET", "/orders/1")
            try await expectEqual(stand.app().send(request).statusCode, 200)
            stand.store = MemoryEnrolmentStore()
            try await expectEqual(stand.app().send(request).statusCode, 200)
            expectEqual(stand.cost, Cost(keys: 2, attestations: 2))
        }

        /// Keychain items survive an uninstall and a restore; keys do not. The sample never caught
        /// `invalidKey`, so such an install failed for ever.
        @Test func `an install whose record outlived its key makes one new key`() async throws {
            let stand = try ClientStand()
            defer { stand.end() }
            let request = try stand.request("GET", "/orders/1")
            try await expectEqual(stand.app().send(request).statusCode, 200)
            stand.service.loseKeys()
            let app = try stand.app()
            let answers = try await app.sendAtOnce(20, request)
            #expect(answers.allSatisfy { $0.statusCode == 200 })
            expectEqual(stand.cost, Cost(keys: 2, attestations: 2))
        }

        @Test func `serverUnavailable is retried later with the same key and the same hash`()
            async throws
        {
            let stand = try ClientStand()
            defer { stand.end() }
            stand.service.next(
                .attestKey,
                .fail(.serverUnavailable),
                .fail(.serverUnavailable)
            )
            let app = try stand.app { $0.limits.enrolmentDelay = .seconds(Self.long) }
            let request = try stand.request("GET", "/orders/1")
            for count in 1...2 {
                let answer = try await app.send(request)
                guard case .none(.enrolmentHeld(let hold)) = answer.proof else {
                    Issue.record("\(answer.proof)")
                    return
                }
                expectEqual(hold.cause, .appleUnavailable)
                // Nothing is asked before the time has come, however many requests are sent.
                _ = try await app.sendAtOnce(10, request)
                expectEqual(stand.cost, Cost(keys: 1, attestations: count))
                stand.clock.advance(to: hold.until)
            }
            try await expectEqual(app.send(request).statusCode, 200)
            expectEqual(stand.cost, Cost(keys: 1, attestations: 3))
            expectEqual(Set(stand.service.attested).count, 1)
        }

        @Test func `an attestation whose way to the gateway failed is sent again, not made again`()
            async throws
        {
            let stand = try ClientStand()
            defer { stand.end() }
            stand.transport.next(ClientStand.keys, .fail, .loseAnswer)
            let app = try stand.app { $0.limits.enrolmentDelay = .seconds(Self.long) }
            let request = try stand.request("GET", "/orders/1")
            for _ in 1...2 {
                guard case .none(.enrolmentHeld(let hold)) = try await app.send(request).proof
                else {
                    Issue.record("enrolled without an answer")
                    return
                }
                expectEqual(hold.cause, .gatewayUnavailable)
                stand.clock.advance(to: hold.until)
            }
            try await expectEqual(app.send(request).statusCode, 200)
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
            expectEqual(stand.transport.exchanges(ClientStand.keys).map(\.status), [201, 200])
        }

        @Test func `no more keys are attested in a day than the cap allows`() async throws {
            let stand = try ClientStand()
            defer { stand.end() }
            let request = try stand.request("GET", "/orders/1")
            let app = try stand.app {
                $0.limits.keysPerDay = 3
                $0.limits.enrolmentDelay = .seconds(Self.long)
            }
            var last: EnrolmentHold?
            for _ in 0..<20 {
                stand.service.loseKeys()
                if case .none(.enrolmentHeld(let hold)) = try await app.send(request).proof {
                    last = hold
                    if hold.cause == .dailyCap { break }
                    stand.clock.advance(to: hold.until)
                }
            }
            expectEqual(last?.cause, .dailyCap)
            expectEqual(stand.cost, Cost(keys: 3, attestations: 3))
            stand.clock.advance(by: 86_400)
            try await expectEqual(app.send(request).statusCode, 200)
            expectEqual(stand.cost, Cost(keys: 4, attestations: 4))
        }

        @Test func `a service that does not answer holds no request longer than it may`()
            async throws
        {
            let stand = try ClientStand()
            defer { stand.end() }
            let latch = Latch()
            stand.service.next(.attestKey, .wait(latch))
            let app = try stand.app {
                $0.limits.maximumAttempts = 1
                $0.limits.proofWait = .seconds(10)
            }
            let request = try stand.request("GET", "/open/1")
            // A route that asks for nothing does not wait at all.
            try await expectEqual(app.send(request).statusCode, 200)
            let order = try stand.request("GET", "/orders/1")
            async let first = app.send(order)
            await latch.awaitArrivals(1)
            stand.clock.advance(by: 10.1)
            let answer = try await first
            expectEqual(answer.proof, .none(.enrolling))
            expectEqual(answer.statusCode, 401)
            latch.open()
            try await expectEqual(app.send(stand.request("GET", "/orders/1")).statusCode, 200)
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
        }
    }
}
