import ClientKit
import Expectations
import Foundation
import LoopbackKit
import PortcullisClient
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension ClientScenarios {
    /// Sessions: opened with one assertion, and what ends them. Each scenario says how many
    /// sessions were opened and how many assertions were made.
    @Suite struct Sessions {
        private static let rules = """
            - { id: chat, match: { path: /chat/** }, mode: enforce,
                accept: [assertion, session], counter: { window: 64 } }
            - { id: talk, match: { path: /talk/** }, mode: enforce,
                accept: [assertion, session], counter: { window: 64 } }
            """
        private static let both = SigningRequirement(accepts: [.assertion, .session])

        private func stand(
            rules: String = rules,
            more: String = "",
            clock: ShiftedClock = ShiftedClock()
        ) throws -> ClientStand {
            try ClientStand(rules: rules, more: more, clock: clock)
        }

        /// An app that takes for granted that routes take sessions.
        private func app(_ stand: ClientStand) throws -> PortcullisSession {
            try stand.app { $0.defaultRequirement = Self.both }
        }

        private func isSession(_ proof: SentProof) -> Bool {
            if case .session = proof { return true }
            return false
        }

        private func isAssertion(_ proof: SentProof) -> Bool {
            if case .assertion = proof { return true }
            return false
        }

        // MARK: Use

        @Test func `200 requests at once open one session, and take one assertion in all`()
            async throws
        {
            let stand = try stand()
            defer { stand.end() }
            let app = try app(stand)
            let answers = try await app.sendAtOnce(200, stand.request("POST", "/chat/1", "hello"))
            #expect(answers.allSatisfy { $0.statusCode == 200 && $0.attempts == 1 })
            #expect(answers.allSatisfy { isSession($0.proof) })
            expectEqual(stand.statuses(ClientStand.sessions), [201])
            expectEqual(stand.service.counts.assertionsRequested, 1)
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
            expectEqual(stand.told("Proof"), Array(repeating: "session", count: 200))
            expectEqual(stand.verdicts, Array(repeating: "pass", count: 200))
        }

        @Test func `more requests at once than the window holds go on, the rest with assertions`()
            async throws
        {
            let stand = try stand(more: "sessions: { window: 64 }")
            defer { stand.end() }
            let app = try app(stand)
            let answers = try await app.sendAtOnce(100, stand.request("GET", "/chat/1"))
            #expect(answers.allSatisfy { $0.statusCode == 200 })
            #expect(answers.count { isSession($0.proof) } >= 64)
            expectEqual(stand.statuses(ClientStand.sessions), [201])
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
        }

        @Test func `a route that is learned from a 401 is used with a session at once`()
            async throws
        {
            let stand = try stand()
            defer { stand.end() }
            let app = try stand.app { $0.defaultRequirement = nil }
            let first = try await app.send(stand.request("GET", "/chat/1"))
            #expect((first.statusCode, first.attempts) == (200, 2))
            let second = try await app.send(stand.request("GET", "/chat/1"))
            #expect((second.statusCode, second.attempts) == (200, 1))
            expectEqual(stand.told("Proof"), ["session", "session"])
            expectEqual(stand.service.counts.assertionsRequested, 1)
        }

        // MARK: Ends

        @Test func `a restart of the gateway costs one assertion and another session`()
            async throws
        {
            let stand = try stand()
            defer { stand.end() }
            let app = try app(stand)
            let events = app.events
            let request = try stand.request("GET", "/chat/1")
            #expect(isSession(try await app.send(request).proof))
            try stand.gateway.restart()
            let second = try await app.send(request)
            #expect((second.statusCode, second.attempts) == (200, 2))
            #expect(isAssertion(second.proof))
            let third = try await app.send(request)
            #expect((third.statusCode, third.attempts) == (200, 1))
            #expect(isSession(third.proof))
            expectEqual(stand.statuses(ClientStand.sessions), [201, 201])
            expectEqual(stand.service.counts.assertionsRequested, 3)
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
            await app.close()
            await expectEqual(events.reasons(), ["session-unknown"])
        }

        @Test func `a crowd that a restart of the gateway meets opens one session more`()
            async throws
        {
            let stand = try stand()
            defer { stand.end() }
            let app = try app(stand)
            let request = try stand.request("GET", "/chat/1")
            try await expectEqual(app.send(request).statusCode, 200)
            try stand.gateway.restart()
            let answers = try await app.sendAtOnce(40, request)
            #expect(answers.allSatisfy { $0.statusCode == 200 })
            #expect(isSession(try await app.send(request).proof))
            // It may be asked for first with a challenge that was kept from before the restart.
            expectEqual(stand.statuses(ClientStand.sessions).filter { $0 != 401 }, [201, 201])
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
        }

        @Test func `a revoked key's session ends at once, and no other key is made for it`()
            async throws
        {
            let stand = try stand()
            defer { stand.end() }
            let app = try app(stand)
            let request = try stand.request("GET", "/chat/1")
            let first = try await app.send(request)
            #expect(isSession(first.proof))
            guard case .session(let keyID) = first.proof else { return }
            try stand.gateway.revoke(keyID)
            for _ in 0..<3 {
                let (data, answer) = try await app.data(for: request)
                #expect((answer.statusCode, answer.attempts) == (403, 1))
                #expect(String(decoding: data, as: UTF8.self).contains(#""key-revoked""#))
            }
            expectEqual(stand.verdicts, ["pass"])
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
        }

        @Test func `a gateway that lost its store ends session and key, and costs one key more`()
            async throws
        {
            let stand = try stand()
            defer { stand.end() }
            let app = try app(stand)
            let request = try stand.request("GET", "/chat/1")
            try await expectEqual(app.send(request).statusCode, 200)
            try stand.gateway.restart(wipingStore: true)
            let second = try await app.send(request)
            expectEqual(second.statusCode, 200)
            let third = try await app.send(request)
            expectEqual(third.attempts, 1)
            #expect(isSession(third.proof))
            expectEqual(stand.statuses(ClientStand.sessions).count { $0 == 201 }, 2)
            expectEqual(stand.cost, Cost(keys: 2, attestations: 2))
        }

        @Test func `a session is renewed before its end, and no request is refused for that`()
            async throws
        {
            let stand = try stand()
            defer { stand.end() }
            let app = try app(stand)
            let (events, openings) = (app.events, app.events)
            let request = try stand.request("GET", "/chat/1")
            // It lives for 600 s, and is renewed when a fifth of that is left.
            for (seconds, isRenewed) in [(0.0, true), (300, false), (190, true), (300, false)] {
                stand.clock.advance(by: seconds)
                let answer = try await app.send(request)
                #expect((answer.statusCode, answer.attempts) == (200, 1))
                #expect(isSession(answer.proof))
                guard isRenewed else { continue }
                for await event in openings where event == .sessionOpened { break }
            }
            expectEqual(stand.statuses(ClientStand.sessions), [201, 201])
            expectEqual(stand.service.counts.assertionsRequested, 2)
            await app.close()
            await expectEqual(events.reasons(), [])
        }

        @Test func `a session whose time is over at the gateway first is replaced`() async throws {
            // The app's clock stands still.
            let stand = try stand(
                more: "sessions: { lifetime: 1s }",
                clock: ShiftedClock(isFrozen: true)
            )
            defer { stand.end() }
            let app = try app(stand)
            let events = app.events
            let request = try stand.request("GET", "/chat/1")
            var answer = try await app.send(request)
            try await eventually {
                if answer.attempts == 1 { answer = try await app.send(request) }
                return answer.attempts > 1
            }
            #expect((answer.statusCode, answer.attempts) == (200, 2))
            #expect(isAssertion(answer.proof))
            #expect(isSession(try await app.send(request).proof))
            expectEqual(stand.statuses(ClientStand.sessions), [201, 201])
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
            await app.close()
            await expectEqual(events.reasons(), ["session-expired"])
        }

        // MARK: Replays

        /// A library below, or the system, sends a request twice. The first try was admitted.
        @Test func `a replayed request goes again with the next number, without an assertion`()
            async throws
        {
            let stand = try stand()
            defer { stand.end() }
            let app = try app(stand)
            let events = app.events
            try await expectEqual(app.send(stand.request("GET", "/chat/1")).statusCode, 200)
            stand.transport.next("/chat/2", .sendTwice)
            let answer = try await app.send(stand.request("GET", "/chat/2"))
            #expect((answer.statusCode, answer.attempts) == (200, 2))
            #expect(isSession(answer.proof))
            expectEqual(stand.told("Proof"), ["session", "session", "session"])
            expectEqual(stand.statuses(ClientStand.sessions), [201])
            expectEqual(stand.service.counts.assertionsRequested, 1)
            await app.close()
            await expectEqual(events.reasons(), ["session-replayed"])
        }

        @Test func `a request that others sent twice is signed again with the next number`()
            async throws
        {
            let stand = try stand()
            defer { stand.end() }
            let app = try app(stand)
            let plain = URLSession(configuration: .ephemeral)
            let signed = try await app.sign(stand.request("GET", "/chat/1"))
            #expect(isSession(signed.proof))
            let first = try await plain.data(for: signed.request).1 as? HTTPURLResponse
            expectEqual(first?.statusCode, 200)
            let second = try await plain.data(for: signed.request).1 as? HTTPURLResponse
            let refused = try #require(second)
            expectEqual(refused.statusCode, 401)
            let again = try #require(try await app.signAgain(signed, after: refused))
            #expect(isSession(again.proof))
            let third = try await plain.data(for: again.request).1 as? HTTPURLResponse
            expectEqual(third?.statusCode, 200)
            expectEqual(stand.service.counts.assertionsRequested, 1)
        }

        // MARK: Plans

        @Test
        func `a plan that is wrong about sessions is corrected, and other routes keep theirs`()
            async throws
        {
            let stand = try stand()
            defer { stand.end() }
            let plan = try SigningPlan(json: stand.gateway.plan())
            // The first of the two rules takes sessions no more.
            try stand.gateway.edit(
                "accept: [assertion, session], counter: { window: 64 } }\n  - { id: talk",
                into: "counter: { window: 64 } }\n  - { id: talk"
            )
            try stand.gateway.restart()
            let app = try stand.app {
                $0.defaultRequirement = nil
                $0.plan = plan
            }
            let events = app.events
            for tries in [2, 1, 1] {
                let answer = try await app.send(stand.request("GET", "/chat/1"))
                #expect((answer.statusCode, answer.attempts) == (200, tries))
                #expect(isAssertion(answer.proof))
            }
            let other = try await app.send(stand.request("GET", "/talk/1"))
            #expect((other.statusCode, other.attempts) == (200, 1))
            #expect(isSession(other.proof))
            expectEqual(stand.statuses(ClientStand.sessions), [201])
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
            await app.close()
            await expectEqual(events.reasons(), ["session-refused"])
        }

        @Test func `a gateway without sessions is asked for one once, whatever the plan says`()
            async throws
        {
            let other = try stand()
            let plan = try SigningPlan(json: other.gateway.plan())
            other.end()
            let stand = try stand(
                rules: Self.rules.replacing("accept: [assertion, session], ", with: "")
            )
            defer { stand.end() }
            let app = try stand.app {
                $0.defaultRequirement = nil
                $0.plan = plan
            }
            for _ in 0..<5 {
                let answer = try await app.send(stand.request("GET", "/chat/1"))
                #expect((answer.statusCode, answer.attempts) == (200, 1))
                #expect(isAssertion(answer.proof))
            }
            expectEqual(stand.statuses(ClientStand.sessions), [404])
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
        }

        @Test func `a plan that knows of no sessions goes on with assertions`() async throws {
            let other = try stand(
                rules: Self.rules.replacing("accept: [assertion, session], ", with: "")
            )
            let plan = try SigningPlan(json: other.gateway.plan())
            other.end()
            let stand = try stand()
            defer { stand.end() }
            let app = try stand.app {
                $0.defaultRequirement = nil
                $0.plan = plan
            }
            for _ in 0..<5 {
                let answer = try await app.send(stand.request("GET", "/chat/1"))
                #expect((answer.statusCode, answer.attempts) == (200, 1))
                #expect(isAssertion(answer.proof))
            }
            expectEqual(stand.statuses(ClientStand.sessions), [])
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
        }

        // MARK: Reset

        @Test func `a session that is being opened when the user signs out is not used after that`()
            async throws
        {
            let stand = try stand()
            defer { stand.end() }
            let app = try app(stand)
            let latch = Latch()
            stand.transport.next(ClientStand.sessions, .wait(latch))
            let request = try stand.request("GET", "/chat/1")
            async let first = app.send(request)
            await latch.awaitArrivals(1)
            await app.reset()
            latch.open()
            _ = try await first
            let second = try await app.send(request)
            expectEqual(second.statusCode, 200)
            let keys = stand.service.attested.map(\.keyID)
            expectEqual(keys.count, 2)
            expectEqual(second.proof, .session(keyID: keys.last ?? ""))
            expectEqual(stand.told("Key-Id").last, keys.last)
            expectEqual(stand.cost, Cost(keys: 2, attestations: 2))
        }
    }
}
