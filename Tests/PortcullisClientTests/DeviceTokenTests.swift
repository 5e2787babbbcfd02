import ClientKit
import Expectations
import Foundation
import Testing

@testable import PortcullisClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Device tokens: a new one with each request to a route whose rule asks for one, and nowhere else.
@Suite struct DeviceTokenTests {
    private static let field = "App-Attest-Device-Token"
    private static let asking = SigningRequirement(needsDeviceToken: true)

    private let service = ScriptedDeviceTokenService()

    private func bench(
        isSupported: Bool = true,
        _ requirement: SigningRequirement = asking,
        _ change: (inout PortcullisConfiguration) -> Void = { _ in }
    ) async throws -> Bench {
        let bench = try Bench(isSupported: isSupported) {
            $0.defaultRequirement = requirement
            $0.deviceTokens = service
            change(&$0)
        }
        await bench.gateway.change { $0.requirement = requirement }
        return bench
    }

    /// What the requests had in the field, in their order.
    private func sent(_ bench: Bench) async -> [String?] {
        await bench.gateway.seen.map { $0.request.value(forHTTPHeaderField: Self.field) }
    }

    private static func busy(
        _ status: Int,
        _ reason: String,
        next: String,
        retryAfter: Int? = nil
    ) -> FakeGateway.Reply {
        var reply = FakeGateway.problem(status, reason, next: next, retryAfter: retryAfter)
        reply.fields["App-Attest-Error"] = "\(reason);next=\(next)"
        return reply
    }

    // MARK: What is sent

    @Test func `every try carries a token of its own`() async throws {
        let bench = try await bench()
        _ = await bench.session.prewarm()
        // The challenges that were fetched ahead are worth nothing.
        await bench.gateway.restart()
        let answer = try await bench.session.data(for: Bench.request("/a")).1
        #expect((answer.statusCode, answer.attempts, answer.deviceToken) == (200, 2, .sent))
        _ = try await bench.session.data(for: Bench.request("/a"))
        await expectEqual(sent(bench), service.tokens.map(Optional.some))
        expectEqual(Set(service.tokens).count, 3)
    }

    @Test func `a request that the device signs at the second try takes one token`() async throws {
        let bench = try await bench()
        await bench.service.fail(asserting: [.unknownSystemFailure])
        let answer = try await bench.session.data(for: Bench.request("/a")).1
        #expect((answer.statusCode, answer.attempts) == (200, 1))
        expectEqual(service.calls, 1)
    }

    @Test func `a request in a session carries a token beside its signature`() async throws {
        let requirement = SigningRequirement(
            accepts: [.assertion, .session],
            needsDeviceToken: true
        )
        let bench = try await bench(requirement)
        let answer = try await bench.session.data(for: Bench.request("/a")).1
        #expect((answer.statusCode, answer.deviceToken) == (200, .sent))
        #expect(answer.proof == .session(keyID: await bench.service.keysMade[0]))
        await expectEqual(sent(bench), service.tokens.map(Optional.some))
        // To open the session took none.
        expectEqual(service.calls, 1)
    }

    @Test func `a route that asks for none costs no token, also one that an app wrote itself`()
        async throws
    {
        let bench = try await bench(SigningRequirement())
        var request = try Bench.request("/a")
        request.setValue("AAAA", forHTTPHeaderField: Self.field)
        let answer = try await bench.session.data(for: request).1
        #expect((answer.statusCode, answer.deviceToken) == (200, .notAsked))
        await expectEqual(sent(bench), [nil])
        expectEqual(service.calls, 0)
    }

    @Test func `a request without proof costs no token`() async throws {
        let bench = try await bench(isSupported: false)
        await bench.gateway.change { $0.enforces = false }
        let answer = try await bench.session.data(for: Bench.request("/a")).1
        #expect((answer.proof, answer.deviceToken) == (.none(.unsupported), .notAsked))
        expectEqual(service.calls, 0)
    }

    @Test(arguments: ["http://plain.example.com", "https://other.example.com"])
    func `no token goes over plain HTTP`(origin: String) async throws {
        let own = try Bench.url(origin)
        let bench = try await bench { $0.origins = [own] }
        let events = bench.session.events
        let url = try Bench.url(origin + "/a")
        let answer = try await bench.session.data(for: URLRequest(url: url)).1
        await bench.session.close()
        let isPlain = origin.hasPrefix("http:")
        expectEqual(answer.deviceToken, isPlain ? .keptBack : .sent)
        #expect(answer.proof.keyID != nil)
        await expectEqual(sent(bench), isPlain ? [nil] : service.tokens.map(Optional.some))
        let told = await events.reduce(into: [DeviceTokenOutcome]()) { told, event in
            if case .withoutDeviceToken(let outcome) = event { told.append(outcome) }
        }
        expectEqual(told, isPlain ? [.keptBack] : [])
    }

    @Test func `no token goes to another host, also behind a redirect`() async throws {
        let bench = try await bench()
        await bench.gateway.change {
            let fields = ["Location": "https://elsewhere.example/b"]
            $0.origins["/a"] = FakeGateway.Reply(status: 307, fields: fields)
        }
        var request = try Bench.request("/a")
        request.setValue("AAAA", forHTTPHeaderField: Self.field)
        let answer = try await bench.session.data(for: request).1
        #expect((answer.proof, answer.deviceToken) == (.none(.otherOrigin), .notAsked))
        await expectEqual(sent(bench), [service.tokens[0], nil])
        await expectEqual(bench.gateway.seen.map(\.verdict), ["pass", "elsewhere"])
    }

    @Test func `a request that was signed for others has a token, and a new one when again`()
        async throws
    {
        let bench = try await bench()
        let signed = try await bench.session.sign(Bench.request("/a"))
        expectEqual(signed.deviceToken, .sent)
        var answer = try await bench.gateway.send(signed.request, content: .none).response
        // The system sends it twice.
        answer = try await bench.gateway.send(signed.request, content: .none).response
        expectEqual(answer.statusCode, 401)
        let again = try #require(try await bench.session.signAgain(signed, after: answer))
        answer = try await bench.gateway.send(again.request, content: .none).response
        expectEqual(answer.statusCode, 200)
        let first = service.tokens[0]
        await expectEqual(sent(bench), [first, first, service.tokens[1]])
    }

    // MARK: Learning

    @Test(arguments: [true, false])
    func `a route that began to ask for tokens teaches it`(enforces: Bool) async throws {
        let bench = try await bench { $0.defaultRequirement = SigningRequirement() }
        await bench.gateway.change { $0.enforces = enforces }
        let first = try await bench.session.data(for: Bench.request("/a")).1
        #expect((first.statusCode, first.attempts) == (200, enforces ? 2 : 1))
        let second = try await bench.session.data(for: Bench.request("/a")).1
        #expect((second.attempts, second.deviceToken) == (1, .sent))
        await expectEqual(bench.verdicts.first, "device-token-missing")
        await expectEqual(bench.verdicts.last, "pass")
    }

    @Test func `a route that nobody described teaches it with what it signs`() async throws {
        let bench = try await bench { $0.defaultRequirement = nil }
        let answer = try await bench.session.data(for: Bench.request("/a")).1
        #expect((answer.statusCode, answer.attempts, answer.deviceToken) == (200, 2, .sent))
        await expectEqual(bench.verdicts, ["assertion-missing", "pass"])
    }

    // MARK: Services that fail

    @Test(arguments: AttestationServiceError.allCases)
    func `a service that fails is told, and the rule decides`(
        error: AttestationServiceError
    ) async throws {
        let bench = try await bench()
        let events = bench.session.events
        service.always(.fail(error))
        let answer = try await bench.session.data(for: Bench.request("/a")).1
        #expect((answer.statusCode, answer.attempts) == (400, 1))
        expectEqual(answer.deviceToken, .failed(error))
        let refusal = GatewayRefusal(reason: "device-token-missing", next: .fixClient)
        expectEqual(answer.refusal, refusal)
        #expect(answer.proof.keyID != nil)
        expectEqual(service.calls, 1)
        await bench.session.close()
        let told = await events.reduce(into: [DeviceTokenOutcome]()) { told, event in
            if case .withoutDeviceToken(let outcome) = event { told.append(outcome) }
        }
        expectEqual(told, [.failed(error)])
    }

    @Test(arguments: [true, false])
    func `a device or a process without the service is told`(hasService: Bool) async throws {
        service.isSupported = false
        let bench = try await bench { if !hasService { $0.deviceTokens = nil } }
        let answer = try await bench.session.data(for: Bench.request("/a")).1
        #expect((answer.statusCode, answer.attempts) == (400, 1))
        expectEqual(answer.deviceToken, .failed(.featureUnsupported))
        expectEqual(service.calls, 0)
    }

    @Test(arguments: [0, 6145])
    func `what can't be a token is not sent`(count: Int) async throws {
        let bench = try await bench()
        service.always(.bring(Data(count: count)))
        let answer = try await bench.session.data(for: Bench.request("/a")).1
        expectEqual(answer.deviceToken, .failed(.unknownSystemFailure))
        await expectEqual(sent(bench), [nil])
    }

    @Test(.timeLimit(.minutes(1)))
    func `a service that hangs keeps a request for a limited time, and has few calls`()
        async throws
    {
        let bench = try await bench(
            SigningRequirement(counter: .window(64), needsDeviceToken: true)
        )
        let (session, clock) = (bench.session, bench.clock)
        _ = await session.prewarm()
        let latch = Latch()
        service.always(.wait(latch))
        let most = DeviceTokenSource.callsMax
        try await withThrowingTaskGroup(of: ProvenResponse.self) { group in
            for _ in 0..<(most + 4) {
                group.addTask { try await session.data(for: Bench.request("/a")).1 }
            }
            await latch.awaitArrivals(most)
            let time = clock.now.addingTimeInterval(PortcullisLimits().deviceTokenWait.seconds)
            await clock.isAwaited(time, by: most + 4)
            clock.advance(by: PortcullisLimits().deviceTokenWait.seconds)
            for try await answer in group {
                expectEqual(answer.deviceToken, .failed(.serverUnavailable))
            }
        }
        expectEqual(service.calls, most)
        // It answers at last, and goes on.
        latch.open()
        service.always(.work)
        let answer = try await session.data(for: Bench.request("/a")).1
        #expect((answer.statusCode, answer.deviceToken) == (200, .sent))
    }

    // MARK: Refusals

    @Test func `a token that came before is made anew, a few times`() async throws {
        let bench = try await bench()
        let used = Self.busy(400, "device-token-used", next: "fix-client")
        await bench.gateway.change { $0.busy["/a"] = [used] }
        let answer = try await bench.session.data(for: Bench.request("/a")).1
        #expect((answer.statusCode, answer.attempts) == (200, 2))
        await bench.gateway.change { $0.busy["/a"] = [used, used, used, used] }
        let last = try await bench.session.data(for: Bench.request("/a")).1
        #expect((last.statusCode, last.attempts) == (400, 3))
        expectEqual(last.refusal?.reason, "device-token-used")
        expectEqual(Set(service.tokens).count, 5)
    }

    @Test(arguments: [
        (403, "device-flagged", "none"), (400, "device-token-malformed", "fix-client"),
    ])
    func `a device that was flagged, and a token that Apple does not take, are the caller's`(
        status: Int,
        reason: String,
        next: String
    ) async throws {
        let bench = try await bench()
        let reply = Self.busy(status, reason, next: next)
        await bench.gateway.change { $0.busy["/a"] = [reply, reply] }
        let answer = try await bench.session.data(for: Bench.request("/a")).1
        #expect((answer.statusCode, answer.attempts) == (status, 1))
        expectEqual(answer.refusal?.reason, reason)
        await expectEqual(bench.counts, [1, 1])
    }

    @Test(.timeLimit(.minutes(1)))
    func `while Apple tells nothing a request is sent later, with a new token`() async throws {
        let bench = try await bench()
        let reply = Self.busy(503, "device-check-unavailable", next: "retry-later", retryAfter: 1)
        await bench.gateway.change { $0.busy["/a"] = [reply] }
        let session = bench.session
        async let answer = session.data(for: Bench.request("/a"))
        await bench.clock.isAwaited(bench.clock.now.addingTimeInterval(1.5))
        bench.clock.advance(by: 1.5)
        try await expectEqual(answer.1.statusCode, 200)
        expectEqual(Set(service.tokens).count, 2)
    }
}
