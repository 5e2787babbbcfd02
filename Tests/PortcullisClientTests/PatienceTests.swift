import ClientKit
import Expectations
import Foundation
import Testing

@testable import PortcullisClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// How long one request waits in all. The clock moves when a test says so: a request that waits for
/// longer does not return within the limit.
@Suite(.timeLimit(.minutes(1))) struct PatienceTests {
    private let clock = ManualClock()
    private let gateway = FakeGateway()
    private let store = MemoryEnrolmentStore()

    private func session(
        _ service: any AttestationService,
        _ change: (inout PortcullisConfiguration) -> Void = { _ in }
    ) throws -> PortcullisSession {
        var configuration = PortcullisConfiguration(gateway: try Bench.url(FakeGateway.origin))
        configuration.defaultRequirement = SigningRequirement()
        configuration.clock = clock
        change(&configuration)
        return PortcullisSession(
            configuration,
            service: service,
            store: store,
            transport: ChallengelessTransport(gateway: gateway)
        )
    }

    /// Moves the clock on once somebody waits for a time that is so many seconds away.
    private func pass(_ seconds: Double) async {
        await clock.isAwaited(clock.now.addingTimeInterval(seconds))
        clock.advance(by: seconds)
    }

    @Test(arguments: [(60.0, 10.0), (3, 3), (0, 10)])
    func `with no challenge to enrol, a request waits once, and no longer than its timeout`(
        timeout: Double,
        seconds: Double
    ) async throws {
        let session = try session(FakeService())
        var request = try Bench.request("/a")
        request.timeoutInterval = timeout
        async let answer = session.data(for: request).1
        await pass(seconds)
        try await expectEqual(answer.statusCode, 401)
        try await expectEqual(answer.attempts, 1)
        try await expectEqual(answer.proof, .none(.enrolling))
    }

    @Test func `with no challenge to sign, all tries of a request share its time`() async throws {
        let service = FakeService()
        let first = try Bench.session(service, store, clock, gateway)
        await expectEqual(first.prewarm(), nil)
        await gateway.change { $0.bringsChallenges = false }
        let session = try session(service)
        async let answer = session.data(for: Bench.request("/a")).1
        // Two waits for a challenge are all that the time has room for.
        for _ in 0..<2 { await pass(5) }
        try await expectEqual(answer.attempts, 3)
        try await expectEqual(answer.proof, .none(.challengeUnavailable))
    }

    @Test func `a redirect begins no new time`() async throws {
        await gateway.change {
            $0.forwards = true
            $0.origins["/a"] = FakeGateway.Reply(status: 307, fields: ["Location": "/b"])
        }
        let session = try session(FakeService())
        async let answer = session.data(for: Bench.request("/a")).1
        await pass(10)
        try await expectEqual(answer.statusCode, 200)
        await expectEqual(gateway.seen.map(\.request.url?.path), ["/a", "/b"])
    }

    @Test func `a request that something else sends has one time, too`() async throws {
        let session = try session(FakeService())
        async let signing = session.sign(Bench.request("/a"))
        await pass(10)
        let signed = try await signing
        let answer = try await gateway.send(signed.request, content: .none).response
        expectEqual(answer.statusCode, 401)
        #expect(try await session.signAgain(signed, after: answer) == nil)
    }

    @Test(arguments: [(4, true), (5, false)])
    func `a Retry-After that is longer than the rest of the time is the caller's`(
        retryAfter: Int,
        waits: Bool
    ) async throws {
        let session = try session(FakeService()) {
            $0.limits.proofWait = .seconds(4)
            $0.defaultRequirement = nil
        }
        let busy = FakeGateway.Reply(
            status: 503,
            fields: [
                "App-Attest-Error": "store-unavailable;next=retry-later",
                "Retry-After": "\(retryAfter)",
            ]
        )
        await gateway.change {
            $0.forwards = true
            $0.busy["/a"] = [busy]
        }
        async let answer = session.data(for: Bench.request("/a")).1
        if waits {
            while await gateway.seen.isEmpty { await Task.yield() }
            while await gateway.seen.count < 2 {
                clock.advance(by: 0.5)
                await Task.yield()
            }
        }
        try await expectEqual(answer.statusCode, waits ? 200 : 503)
    }

    // MARK: Resets

    @Test func `three resets while a key is enrolled refuse none of 160 requests`() async throws {
        let service = LatchedService()
        let session = try Bench.session(service, store, clock, gateway) {
            $0.limits.keysPerDay = 10
        }
        try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<160 {
                group.addTask {
                    try await session.data(for: Bench.request("/orders/\(number)")).1.statusCode
                }
            }
            for round in 1...3 {
                // All of them wait for the key.
                await clock.isAwaited(clock.now.addingTimeInterval(10), by: 160)
                await session.reset()
                while await gateway.seen.count < 160 * round { await Task.yield() }
            }
            service.latch.open()
            for try await status in group { expectEqual(status, 200) }
        }
    }
}

/// A gateway whose `…/challenges` is not reached, and does not fail either.
private struct ChallengelessTransport: HTTPTransport {
    let gateway: FakeGateway

    func send(_ request: URLRequest, content: RequestContent) async throws -> TransportAnswer {
        if request.url?.path.hasSuffix("/challenges") == true {
            let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
            for await _ in stream {}
            continuation.finish()
            throw CancellationError()
        }
        return try await gateway.send(request, content: content)
    }
}

/// A service whose attestations wait at a latch.
private actor LatchedService: AttestationService {
    nonisolated let isSupported = true
    let latch = Latch()
    private let service = FakeService()

    func generateKey() async throws(AttestationServiceError) -> String {
        try await service.generateKey()
    }

    func attestKey(
        _ keyID: String,
        clientDataHash: Data
    ) async throws(AttestationServiceError) -> Data {
        await latch.pass()
        return try await service.attestKey(keyID, clientDataHash: clientDataHash)
    }

    func generateAssertion(
        _ keyID: String,
        clientDataHash: Data
    ) async throws(AttestationServiceError) -> Data {
        try await service.generateAssertion(keyID, clientDataHash: clientDataHash)
    }
}
