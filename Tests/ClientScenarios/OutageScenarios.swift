import ClientKit
import Expectations
import Foundation
import LoopbackKit
import PortcullisClient
import PortcullisClientTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension ClientScenarios {
    /// Endpoints that hang, answers that are not the gateway's, a crowd at the first start.
    @Suite struct Outages {
        private static let rules = """
            - { id: orders, match: { path: /orders/** }, mode: enforce, counter: { window: 64 } }
            - { id: watched, match: { path: /watched/** }, mode: observe,
                accept: [assertion, session] }
            """
        /// What a request waits for challenges and sessions where a rule enforces.
        private static let enforced = 5.0

        // MARK: Rules that observe

        @Test(.timeLimit(.minutes(2)), arguments: [false, true])
        func `a request to a rule that observes does not wait for an endpoint that hangs`(
            usesSessions: Bool
        ) async throws {
            let stand = try ClientStand(rules: Self.rules)
            defer { stand.end() }
            try await expectEqual(stand.app().prewarm(), nil)
            // The app starts again: it has its key, and no challenge.
            let app = try stand.app {
                $0.limits = PortcullisLimits()
                $0.defaultRequirement = nil
                $0.usesSessions = usesSessions
            }
            let request = try stand.request("POST", "/watched/1", "{}")
            // The answer says that the rule observes, and brings no challenge to others.
            for path in [ClientStand.challenges, ClientStand.sessions] {
                stand.transport.always(path, .hang {})
            }
            try await expectEqual(app.send(request).statusCode, 200)
            for count in [8, 1, 1, 1] {
                let start = Date()
                let answers = try await app.sendAtOnce(count, request)
                #expect(answers.allSatisfy { $0.statusCode == 200 })
                let seconds = Date().timeIntervalSince(start)
                #expect(seconds < Self.enforced / 2, "\(count) at once: \(seconds) s")
            }
        }

        @Test func `a rule that observes gets the proofs that it would get if it enforced`()
            async throws
        {
            // The time stands still: a busy machine is no gateway that hangs.
            let stand = try ClientStand(rules: Self.rules, clock: ShiftedClock(isFrozen: true))
            defer { stand.end() }
            try await expectEqual(stand.app().prewarm(), nil)
            let app = try stand.app {
                $0.defaultRequirement = nil
                $0.usesSessions = false
            }
            let request = try stand.request("GET", "/watched/1")
            try await expectEqual(app.send(request).proof, .none(.routeUnknown))
            // More at once than challenges are at hand: they are fetched.
            let answers = try await app.sendAtOnce(6, request)
            expectEqual(answers.count { $0.proof == .none(.challengeUnavailable) }, 0)
        }

        // MARK: Answers that are not the gateway's

        @Test(arguments: [ClientStand.keys, ClientStand.challenges])
        func `a middle's 401 that says enrol costs no attestation`(path: String) async throws {
            let stand = try ClientStand()
            defer { stand.end() }
            let app = try stand.app()
            let forged = ScriptedTransport.Step.answer { request in
                try Self.forgery(request, 401, #"{"reason":"key-unknown","next":"enrol"}"#)
            }
            stand.transport.next(path, forged, forged)
            let answer = try await app.send(stand.request("GET", "/orders/1"))
            expectEqual(answer.statusCode, 200)
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
        }

        private static func forgery(
            _ request: URLRequest,
            _ status: Int,
            _ text: String
        ) throws -> TransportAnswer {
            guard let url = request.url,
                let response = HTTPURLResponse(
                    url: url,
                    statusCode: status,
                    httpVersion: "HTTP/1.1",
                    headerFields: ["Content-Type": "application/problem+json"]
                )
            else { throw URLError(.badURL) }
            let pieces = Mutex([Data(text.utf8)])
            let content = AnswerContent { pieces.withLock { $0.popLast() } }
            return TransportAnswer(response: response, content: content)
        }

        // MARK: Plans that are older than the rule

        private static let renewed = """
            - { id: orders, match: { path: /orders/** }, mode: enforce, headers: [idempotency-key] }
            - { id: watched, match: { path: /watched/** }, mode: observe,
                headers: [idempotency-key] }
            """

        @Test(arguments: [SendingCondition.nothing, .proof])
        func `a refused signature teaches what the rule signs, without a request that is bare`(
            condition: SendingCondition
        ) async throws {
            let stand = try ClientStand(rules: Self.renewed)
            defer { stand.end() }
            let app = try stand.app()
            var request = try stand.request("POST", "/orders/1", "{}")
            request.setValue("8e03978e", forHTTPHeaderField: "Idempotency-Key")
            let first = try await app.data(for: request, requiring: condition).1
            #expect((first.statusCode, first.attempts) == (200, 2))
            expectEqual(stand.statuses("/orders/1"), [403, 200])
            let sent = stand.transport.exchanges("/orders/1")
            #expect(sent.allSatisfy { $0.fields["app-attest-assertion"] != nil })
            let second = try await app.data(for: request, requiring: condition).1
            #expect((second.statusCode, second.attempts) == (200, 1))
        }

        @Test func `a rule that observes teaches what it signs by one signature that is refused`()
            async throws
        {
            let stand = try ClientStand(rules: Self.renewed)
            defer { stand.end() }
            let app = try stand.app()
            var request = try stand.request("POST", "/watched/1", "{}")
            request.setValue("8e03978e", forHTTPHeaderField: "Idempotency-Key")
            for _ in 0..<4 { try await expectEqual(app.send(request).statusCode, 200) }
            expectEqual(stand.told("Reason"), ["signature-mismatch", "none", "none", "none"])
        }

        @Test func `a route teaches its renamed fields, and the challenge's place in the content`()
            async throws
        {
            let stand = try ClientStand(
                rules: """
                    - { id: named, match: { path: /named/** }, mode: enforce,
                        fields: { key_id: X-Key, assertion: X-Proof } }
                    """
            )
            defer { stand.end() }
            let app = try stand.app { $0.defaultRequirement = nil }
            let request = try stand.request("GET", "/named/1")
            let answer = try await app.send(request)
            #expect((answer.statusCode, answer.attempts) == (200, 2))
            let sent = try #require(stand.transport.exchanges("/named/1").last)
            #expect(sent.fields["x-proof"] != nil && sent.fields["app-attest-assertion"] == nil)
            // The names are the usual ones again: the client does not keep to the old ones.
            let names = "fields: { key_id: X-Key, assertion: X-Proof }"
            try stand.gateway.edit(names, into: "counter: { window: 64 }")
            try stand.gateway.restart()
            let moved = try await app.send(request)
            expectEqual(moved.statusCode, 200)
        }

        // MARK: A crowd

        @Test(.timeLimit(.minutes(5)))
        func `five first starts at once are all served at one enrolment a second`()
            async throws
        {
            let stand = try ClientStand(more: "enrolment: { rate: 1/s, burst: 1 }")
            defer { stand.end() }
            let request = try stand.request("GET", "/orders/1")
            for _ in 0..<2 {
                let apps = try (0..<5).map { _ in
                    stand.store = MemoryEnrolmentStore()
                    return try stand.app {
                        $0.limits = PortcullisLimits()
                        // A loaded machine is slower, and no clock is moved here.
                        $0.limits.proofWait = .seconds(20)
                        $0.limits.enrolmentWait = .seconds(20)
                        $0.random = { Double.random(in: 0..<1) }
                    }
                }
                let answers = try await withThrowingTaskGroup(of: ProvenResponse.self) { group in
                    for app in apps { group.addTask { try await app.send(request) } }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                expectEqual(answers.map(\.statusCode), [200, 200, 200, 200, 200])
            }
            expectEqual(stand.cost, Cost(keys: 10, attestations: 10))
        }

        // MARK: Debug builds

        @Test func `a debug device is admitted by the line that it shows, and by nothing else`()
            async throws
        {
            let stand = try ClientStand()
            defer { stand.end() }
            let lines = Mutex<[String]>([])
            let keys = MemoryEnrolmentStore()
            func device() -> DebugDevice {
                DebugDevice(appID: ClientStand.appID, keptIn: keys) { line in
                    lines.withLock { $0.append(line) }
                }
            }
            let gateway = try stand.url("")
            let request = try stand.request("GET", "/orders/1")
            let stranger = try await PortcullisSession(gateway: gateway, debugDevice: device())
            try await expectEqual(stranger.send(request).statusCode, 401)
            await stranger.close()
            let line = try #require(lines.withLock { $0.first })
            #expect(lines.withLock { $0.contains { $0.contains("keys import") } })
            try stand.gateway.importKey(line)
            for _ in 0..<2 {
                // The app starts again, with the same key.
                let app = try await PortcullisSession(gateway: gateway, debugDevice: device())
                for _ in 0..<2 { try await expectEqual(app.send(request).statusCode, 200) }
                await app.close()
            }
            expectEqual(stand.cost, Cost(keys: 0, attestations: 0))
            expectEqual(stand.told("Environment"), ["test", "test", "test", "test"])
        }
    }
}
