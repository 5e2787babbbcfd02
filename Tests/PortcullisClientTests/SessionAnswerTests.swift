import Expectations
import Foundation
import RequestBinding
import Testing

@testable import PortcullisClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Which answers are the gateway's, and what is done because of one.
@Suite struct SessionAnswerTests {
    private static let other = SigningRequirement(
        form: .lines([.method, .body], headers: []),
        challenge: .none
    )

    @Test func `an origin's own 403 that says signature-mismatch is the caller's answer`()
        async throws
    {
        let bench = try Bench()
        await bench.gateway.change {
            $0.origins["/x"] = FakeGateway.forgery(403, "signature-mismatch", next: "none")
        }
        let (data, answer) = try await bench.session.data(for: Bench.request("/x"))
        #expect((answer.statusCode, answer.attempts) == (403, 1))
        expectEqual(answer.refusal, nil)
        #expect(data.count > 0)
        await expectEqual(bench.verdicts, ["pass"])
    }

    @Test func `a refusal of any status is told to the caller`() async throws {
        let bench = try Bench { $0.limits.maximumAttempts = 1 }
        await bench.gateway.change { $0.requirement = Self.other }
        let answer = try await bench.session.data(for: Bench.request("/a")).1
        expectEqual(answer.statusCode, 403)
        let expected = GatewayRefusal(reason: "signature-mismatch", next: .none)
        expectEqual(answer.refusal, expected)
    }

    @Test func `a refused call of gRPC has status 200, and teaches what its route signs`()
        async throws
    {
        let bench = try Bench { $0.defaultRequirement = nil }
        await bench.gateway.change {
            let lesson =
                "AppAttest error=\"assertion-missing\", next=\"sign-again\", "
                + "sign=\"method target body challenge\", counter=\"64\""
            let fields = [
                "App-Attest-Error": "assertion-missing;next=sign-again",
                "WWW-Authenticate": lesson, "grpc-status": "16",
            ]
            $0.busy["/a"] = [FakeGateway.Reply(fields: fields)]
        }
        let answer = try await bench.session.data(for: Bench.request("/a", "POST")).1
        #expect((answer.statusCode, answer.attempts) == (200, 2))
        expectEqual(answer.refusal, nil)
        await expectEqual(bench.verdicts, ["busy", "pass"])
    }

    /// `retryWait` is ten seconds: the jitter does not count against it.
    @Test(.timeLimit(.minutes(1)), arguments: [("2", 2.5), ("10", 10.5)])
    func `a busy gateway is asked again after its Retry-After`(
        seconds: String,
        wait: Double
    ) async throws {
        let bench = try Bench()
        await bench.gateway.change {
            var busy = FakeGateway.problem(503, "store-unavailable", next: "retry-later")
            busy.fields["Retry-After"] = seconds
            $0.busy["/a"] = [busy]
        }
        let session = bench.session
        async let answer = session.data(for: Bench.request("/a"))
        // Half a second of jitter.
        await bench.clock.isAwaited(bench.clock.now.addingTimeInterval(wait))
        bench.clock.advance(by: wait)
        try await expectEqual(answer.1.statusCode, 200)
        await expectEqual(bench.verdicts, ["busy", "pass"])
    }

    @Test(arguments: [("11", true), ("2", false)])
    func `a long wait, and one that an origin asks for, is the caller's`(
        seconds: String,
        isOwn: Bool
    ) async throws {
        let bench = try Bench()
        await bench.gateway.change {
            var busy =
                isOwn
                ? FakeGateway.problem(503, "store-unavailable", next: "retry-later")
                : FakeGateway.forgery(503, "store-unavailable", next: "retry-later")
            busy.fields["Retry-After"] = seconds
            $0.busy["/a"] = [busy]
        }
        let answer = try await bench.session.data(for: Bench.request("/a")).1
        #expect((answer.statusCode, answer.attempts) == (503, 1))
        expectEqual(answer.refusal?.next, isOwn ? .retryLater : nil)
    }

    @Test
    func `the next challenge is read from its own field, whatever a rule's fields are called`()
        async throws
    {
        var requirement = SigningRequirement()
        requirement.fields = ProofFieldNames(assertion: "X-Proof", challenge: "X-Challenge")
        let bench = try Bench { [requirement] in $0.defaultRequirement = requirement }
        await bench.gateway.change { [requirement] in
            $0.requirement = requirement
            $0.origins["/a"] = FakeGateway.Reply(fields: ["X-Challenge": "the origin's"])
        }
        _ = await bench.session.prewarm()
        let before = await bench.gateway.calls.count
        for _ in 0..<10 {
            let answer = try await bench.session.data(for: Bench.request("/a")).1
            #expect((answer.statusCode, answer.attempts) == (200, 1))
        }
        await expectEqual(bench.gateway.calls.count, before)
    }

    @Test func `what a cache says in the gateway's name is not obeyed`() async throws {
        let gateway = FakeGateway()
        await gateway.change {
            let fields = ["App-Attest-Next": "enrol", "App-Attest-Challenge": "stale"]
            $0.origins["/a"] = FakeGateway.Reply(fields: fields)
            $0.origins["/b"] = FakeGateway.Reply(
                status: 401,
                fields: ["WWW-Authenticate": "AppAttest error=\"key-unknown\", next=\"enrol\""]
            )
        }
        let service = FakeService()
        var configuration = PortcullisConfiguration(gateway: try Bench.url(FakeGateway.origin))
        configuration.defaultRequirement = SigningRequirement()
        configuration.clock = ManualClock()
        let session = PortcullisSession(
            configuration,
            service: service,
            store: MemoryEnrolmentStore(),
            transport: CachingTransport(gateway)
        )
        for path in ["/a", "/b", "/a"] {
            try await expectEqual(session.data(for: Bench.request(path)).1.attempts, 1)
        }
        await expectEqual(gateway.seen.map(\.verdict), ["pass", "pass", "pass"])
        await expectEqual(service.keysMade.count, 1)
    }

    // MARK: Signing for others

    @Test func `a request signed for others by an outdated plan is signed right after its 403`()
        async throws
    {
        let bench = try Bench()
        await bench.gateway.change { $0.requirement = Self.other }
        var signed = try await bench.session.sign(Bench.request("/a"))
        for _ in 0..<2 {
            let answer = try await bench.gateway.send(signed.request, content: .none).response
            signed = try #require(try await bench.session.signAgain(signed, after: answer))
        }
        let good = try await bench.gateway.send(signed.request, content: .none).response
        expectEqual(good.statusCode, 200)
        #expect(try await bench.session.signAgain(signed, after: good) == nil)
        let next = try await bench.session.sign(Bench.request("/a"))
        _ = try await bench.gateway.send(next.request, content: .none)
        let expected = ["signature-mismatch", "assertion-missing", "pass", "pass"]
        await expectEqual(bench.verdicts, expected)
    }

    @Test func `no cache answers a request that was signed for others`() async throws {
        let bench = try Bench()
        var request = try Bench.request("/a")
        try await expectEqual(
            bench.session.sign(request).request.cachePolicy,
            .reloadIgnoringLocalCacheData
        )
        request.url = try Bench.url("https://elsewhere.example/")
        try await expectEqual(
            bench.session.sign(request).request.cachePolicy,
            .useProtocolCachePolicy
        )
    }
}

/// Every answer comes out of a cache, but those of the gateway's endpoints.
private struct CachingTransport: HTTPTransport {
    private let gateway: FakeGateway

    init(_ gateway: FakeGateway) { self.gateway = gateway }

    func send(_ request: URLRequest, content: RequestContent) async throws -> TransportAnswer {
        let answer = try await gateway.send(request, content: content)
        let isEndpoint = request.url?.path.hasPrefix("/.well-known") == true
        return TransportAnswer(
            response: answer.response,
            content: answer.content,
            source: isEndpoint ? .network : .cache
        )
    }
}
