import ClientKit
import Expectations
import Foundation
import TestSupport
import Testing

@testable import PortcullisClient

/// Routes whose rules only observe, on a day on which Apple is slow. The clock stands still: a
/// request that waits does not return within the limit.
@Suite(.timeLimit(.minutes(1))) struct ObservingRuleTests {
    private static func bench(
        accepts: Set<SigningRequirement.Kind> = [.assertion],
        _ change: (inout PortcullisConfiguration) -> Void = { _ in }
    ) async throws -> (LatchedService, FakeGateway, PortcullisSession) {
        let (service, gateway) = (LatchedService(), FakeGateway())
        await gateway.change {
            $0.enforces = false
            $0.requirement.accepts = accepts
        }
        let session = try Bench.session(service, MemoryEnrolmentStore(), ManualClock(), gateway) {
            // Learned from the first answer.
            $0.defaultRequirement = nil
            change(&$0)
        }
        return (service, gateway, session)
    }

    @Test(arguments: [[SigningRequirement.Kind.assertion], [.assertion, .session]])
    func `a request to a rule that observes goes without waiting for Apple`(
        accepts: [SigningRequirement.Kind]
    ) async throws {
        let (service, gateway, session) = try await Self.bench(accepts: Set(accepts))
        var proofs: [SentProof] = []
        for _ in 0..<4 {
            let answer = try await session.data(for: Bench.request("/a")).1
            #expect((answer.statusCode, answer.attempts) == (200, 1))
            proofs.append(answer.proof)
        }
        expectEqual(proofs, [.none(.routeUnknown)] + Array(repeating: .none(.enrolling), count: 3))
        await expectEqual(gateway.seen.count, 4)
        // The key is enrolled beside them.
        await service.latch.awaitArrivals(1)
        service.latch.open()
        let isProven = try await eventually {
            try await session.data(for: Bench.request("/a")).1.proof.keyID != nil
        }
        #expect(isProven)
        await expectEqual(service.attestations, 1)
    }

    @Test func `a rule that begins to enforce is waited for, also with one try`() async throws {
        let (service, gateway, session) = try await Self.bench { $0.limits.maximumAttempts = 1 }
        for _ in 0..<2 { _ = try await session.data(for: Bench.request("/a")) }
        await gateway.change { $0.enforces = true }
        async let answer = session.data(for: Bench.request("/a")).1
        #expect(await eventually { await gateway.seen.count == 3 })
        service.latch.open()
        try await expectEqual(answer.statusCode, 200)
        try await expectEqual(answer.attempts, 2)
        await expectEqual(gateway.seen.map(\.verdict).last, "pass")
        // From now on the route is one that enforces.
        let url = try Bench.url(FakeGateway.origin + "/a")
        #expect(!session.driver.routes.observes(method: "GET", url: url))
    }

    @Test func `a route of which nothing was said is waited for`() async throws {
        let (service, gateway, session) = try await Self.bench {
            $0.defaultRequirement = SigningRequirement()
        }
        async let answer = session.data(for: Bench.request("/a")).1
        await service.latch.awaitArrivals(1)
        #expect(await gateway.seen.isEmpty)
        service.latch.open()
        #expect(try await answer.proof.keyID != nil)
    }

    @Test func `the first request of a process uses the key that an earlier one enrolled`()
        async throws
    {
        let memory = MemoryEnrolmentStore()
        let bench = try Bench(store: memory)
        await bench.gateway.change { $0.enforces = false }
        await expectEqual(bench.session.prewarm(), nil)
        let keyID = await bench.service.keysMade[0]
        // The app starts again, and knows that the rule observes.
        let (store, latch) = (GatedStore(memory), Latch())
        let session = try Bench.session(bench.service, store, bench.clock, bench.gateway)
        let advice = NextField("sign-again;sign=\"method target body challenge\";counter=64")
        let lesson = try #require(advice?.lesson)
        let url = try Bench.url(FakeGateway.origin + "/a")
        _ = session.driver.routes.learn(lesson, method: "GET", url: url)
        #expect(session.driver.routes.observes(method: "GET", url: url))
        await store.holdRead(at: latch)
        async let answer = session.data(for: Bench.request("/a")).1
        await latch.awaitArrivals(1)
        latch.open()
        try await expectEqual(answer.proof, .assertion(keyID: keyID))
        await expectEqual(bench.verdicts, ["pass"])
    }

    @Test func `a refusal that says nothing of the route ends the haste of its request`() {
        var machine = RequestMachine(
            limits: PortcullisLimits(),
            usesSessions: false,
            isRepeatable: true,
            patience: Patience(PortcullisLimits(), timeout: 60)
        )
        let asks = RouteTable.Knowledge.asks(SigningRequirement())
        _ = machine.began(asks, isOwnOrigin: true, observes: true)
        #expect(!machine.waitsForKey)
        let refusal = GatewayRefusal(reason: "assertion-missing", next: .signAgain)
        let answer = RequestMachine.Answer(status: 401, refusal: refusal)
        let verdict = machine.answered(answer, to: .none(.enrolling), now: Date())
        expectEqual(verdict.step, .again)
        _ = machine.began(asks, isOwnOrigin: true, observes: true)
        #expect(machine.waitsForKey)
    }
}

/// A service whose attestations wait at a latch.
private actor LatchedService: AttestationService {
    nonisolated let isSupported = true
    let latch = Latch()
    private(set) var attestations = 0
    private let service = FakeService()

    func generateKey() async throws(AttestationServiceError) -> String {
        try await service.generateKey()
    }

    func attestKey(
        _ keyID: String,
        clientDataHash: Data
    ) async throws(AttestationServiceError) -> Data {
        attestations += 1
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
