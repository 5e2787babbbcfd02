import ClientKit
import Expectations
import Foundation
import Testing

@testable import PortcullisClient

/// A gateway, or a cache on the way, that repeats the challenges that it gave. What that costs is
/// counted in calls.
@Suite struct ChallengeStormTests {
    /// More than any test asks for.
    private static let repeats = 2000

    /// A session with a key and no challenge, whose gateway gives one challenge again and again.
    private func bench() async throws -> Bench {
        let bench = try Bench { $0.limits.challengesAsked = 1 }
        await bench.gateway.change { $0.bringsChallenges = false }
        _ = try await bench.session.data(for: Bench.request("/a"))
        let text = "{\"challenges\":[\"old\"],\"expires_in\":300}"
        await bench.gateway.change { gateway in
            gateway.enforces = false
            gateway.troubles["challenges"] = [FakeGateway.Reply](
                repeating: FakeGateway.Reply(content: Data(text.utf8)),
                count: Self.repeats
            )
        }
        return bench
    }

    private func calls(of bench: Bench) async -> Int {
        await bench.gateway.calls.filter { $0 == "challenges" }.count
    }

    @Test func `a gateway that repeats a challenge is asked twice, not until it stops`()
        async throws
    {
        let bench = try await bench()
        let before = await calls(of: bench)
        var proofs: [SentProof] = []
        for _ in 0..<4 {
            proofs.append(try await bench.session.data(for: Bench.request("/a")).1.proof)
        }
        let keyID = await bench.service.keysMade[0]
        let none = SentProof.none(.challengeUnavailable)
        expectEqual(proofs, [.assertion(keyID: keyID), none, none, none])
        await expectEqual(calls(of: bench) - before, 2)
    }

    @Test func `many requests at once do not multiply the calls`() async throws {
        let bench = try await bench()
        let before = await calls(of: bench)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<100 {
                group.addTask {
                    _ = try await bench.session.data(for: Bench.request("/orders/\(number)"))
                }
            }
            try await group.waitForAll()
        }
        #expect(await calls(of: bench) - before <= 8)
    }

    @Test func `the gateway is asked again later and later`() async throws {
        let bench = try await bench()
        _ = try await bench.session.data(for: Bench.request("/a"))
        var seconds: [Double] = []
        var asked = await calls(of: bench)
        var last = bench.clock.now
        while seconds.count < 9 {
            _ = try await bench.session.data(for: Bench.request("/a"))
            if await calls(of: bench) > asked {
                asked += 1
                seconds.append(bench.clock.now.timeIntervalSince(last))
                last = bench.clock.now
            }
            bench.clock.advance(by: 0.5)
        }
        expectEqual(seconds, [0, 1, 2, 4, 8, 16, 32, 32, 32])
    }

    @Test func `challenges that come with answers are used meanwhile, and a good call ends it`()
        async throws
    {
        let bench = try await bench()
        for _ in 0..<3 { _ = try await bench.session.data(for: Bench.request("/a")) }
        await bench.gateway.change { gateway in
            gateway.enforces = true
            gateway.bringsChallenges = true
        }
        // The 401 brings a challenge.
        let answer = try await bench.session.data(for: Bench.request("/a")).1
        #expect((answer.statusCode, answer.attempts) == (200, 2))
        await bench.gateway.change { gateway in
            gateway.bringsChallenges = false
            gateway.troubles = [:]
        }
        bench.clock.advance(by: 10)
        for _ in 0..<3 {
            let answer = try await bench.session.data(for: Bench.request("/a")).1
            #expect((answer.statusCode, answer.attempts) == (200, 1))
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func `a task that is cancelled while challenges are fetched takes none from others`()
        async throws
    {
        let (gateway, latch, clock) = (FakeGateway(), Latch(), ManualClock())
        await gateway.change { $0.bringsChallenges = false }
        let transport = ScriptedTransport(gateway)
        // The first call is the enrolment's.
        transport.next("/.well-known/app-attest/challenges", .pass, .wait(latch))
        var configuration = PortcullisConfiguration(gateway: try Bench.url(FakeGateway.origin))
        configuration.defaultRequirement = SigningRequirement()
        configuration.routeMemory = .none
        configuration.clock = clock
        let session = PortcullisSession(
            configuration,
            service: FakeService(),
            store: MemoryEnrolmentStore(),
            transport: transport
        )
        let warming = Task { await session.prewarm() }
        await latch.awaitArrivals(1)
        async let answer = session.data(for: Bench.request("/a")).1
        // As long as a request waits for a challenge.
        await clock.isAwaited(clock.now.addingTimeInterval(5))
        warming.cancel()
        _ = await warming.value
        latch.open()
        try await expectEqual(answer.attempts, 1)
        await expectEqual(gateway.seen.map(\.verdict), ["pass"])
    }
}
