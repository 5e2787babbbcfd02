import Expectations
import Foundation
import Testing

@testable import PortcullisClient

@Suite struct SessionEnrolmentTests {
    @Test func `200 concurrent first requests make one key and one attestation`() async throws {
        let bench = try Bench()
        let session = bench.session
        try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<200 {
                group.addTask {
                    let request = try Bench.request("/v1/orders/\(number)")
                    return try await session.data(for: request).1.statusCode
                }
            }
            for try await status in group { expectEqual(status, 200) }
        }
        await expectEqual(bench.counts, [1, 1])
        await expectEqual(bench.verdicts, [String](repeating: "pass", count: 200))
    }

    @Test func `a store that the gateway lost costs one key more, not one for each request`()
        async throws
    {
        let bench = try Bench()
        let session = bench.session
        _ = try await session.data(for: Bench.request("/a"))
        await bench.gateway.wipe()
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<50 {
                group.addTask { try await session.data(for: Bench.request("/a")).1.statusCode }
            }
            for try await status in group { expectEqual(status, 200) }
        }
        await expectEqual(bench.counts, [2, 2])
    }

    @Test func `serverUnavailable is tried later with the same key and the same hash`()
        async throws
    {
        let bench = try Bench()
        await bench.service.fail(attesting: [.serverUnavailable, .serverUnavailable])
        await bench.gateway.change { $0.forwards = true }
        for _ in 0..<3 {
            _ = try await bench.session.data(for: Bench.request("/a"))
            bench.clock.advance(by: 10)
        }
        let attestations = await bench.service.attestations
        await expectEqual(bench.counts, [1, 3])
        expectEqual(Set(attestations.map(\.hash)).count, 1)
        expectEqual(Set(attestations.map(\.keyID)).count, 1)
        await expectEqual(bench.verdicts, ["assertion-missing", "assertion-missing", "pass"])
    }

    @Test func `requests before the end of a delay ask nobody`() async throws {
        let bench = try Bench()
        await bench.service.fail(attesting: [.serverUnavailable])
        await bench.gateway.change { $0.forwards = true }
        var proofs: [SentProof] = []
        for _ in 0..<5 {
            proofs.append(try await bench.session.data(for: Bench.request("/a")).1.proof)
        }
        let until = bench.clock.now.addingTimeInterval(1.5)
        let hold = EnrolmentHold(.appleUnavailable, until: until)
        expectEqual(proofs, [SentProof](repeating: .none(.enrolmentHeld(hold)), count: 5))
        await expectEqual(bench.counts, [1, 1])
    }

    @Test func `keys that the device lost are replaced, with a growing delay`() async throws {
        let bench = try Bench()
        await bench.gateway.change { $0.forwards = true }
        var counts: [[Int]] = []
        for _ in 0..<3 {
            _ = try await bench.session.data(for: Bench.request("/a"))
            counts.append(await bench.counts)
            await bench.service.loseKeys()
        }
        // The second loss of a day waits.
        expectEqual(counts, [[1, 1], [2, 2], [2, 2]])
        bench.clock.advance(by: 3600)
        let answer = try await bench.session.data(for: Bench.request("/a")).1
        #expect(answer.proof == .assertion(keyID: await bench.service.keysMade[2]))
    }

    @Test func `an install whose keys are gone recovers though its record survived`() async throws {
        let first = try Bench()
        _ = try await first.session.data(for: Bench.request("/a"))
        // A restored device: the record is there, the key is not.
        let service = FakeService()
        _ = try await service.generateKey()
        let session = try Bench.session(service, first.store, first.clock, first.gateway)
        let answer = try await session.data(for: Bench.request("/a")).1
        expectEqual(answer.statusCode, 200)
        await expectEqual(service.attestations.count, 1)
    }

    @Test func `no more keys are attested in a day than the limit`() async throws {
        let bench = try Bench { $0.limits.enrolmentDelay = .milliseconds(10) }
        await bench.gateway.change { $0.forwards = true }
        for _ in 0..<8 {
            _ = try await bench.session.data(for: Bench.request("/a"))
            await bench.service.loseKeys()
            bench.clock.advance(by: 60)
        }
        await expectEqual(bench.counts, [3, 3])
        bench.clock.advance(by: 86_400)
        _ = try await bench.session.data(for: Bench.request("/a"))
        await expectEqual(bench.counts, [4, 4])
    }

    @Test func `Retry-After is obeyed before Apple is asked`() async throws {
        let bench = try Bench()
        await bench.gateway.change {
            $0.forwards = true
            $0.troubles["challenges"] = [
                FakeGateway.problem(429, "enrolment-not-yet", next: "retry-later", retryAfter: 100)
            ]
        }
        for _ in 0..<10 {
            _ = try await bench.session.data(for: Bench.request("/a"))
            bench.clock.advance(by: 9)
        }
        await expectEqual(bench.counts, [1, 0])
        await expectEqual(bench.gateway.calls, ["challenges"])
        // Up to a quarter more.
        bench.clock.advance(by: 25)
        _ = try await bench.session.data(for: Bench.request("/a"))
        await expectEqual(bench.counts, [1, 1])
    }

    @Test func `an attestation whose registration failed is not lost`() async throws {
        let bench = try Bench()
        await bench.gateway.change {
            $0.forwards = true
            $0.troubles["keys"] = [FakeGateway.Reply(status: 503)]
        }
        _ = try await bench.session.data(for: Bench.request("/a"))
        await bench.session.close()
        bench.clock.advance(by: 10)
        // The app starts again.
        let service = bench.service
        let next = try Bench.session(service, bench.store, bench.clock, bench.gateway)
        let answer = try await next.data(for: Bench.request("/a")).1
        #expect(answer.proof == .assertion(keyID: await service.keysMade[0]))
        await expectEqual(bench.counts, [1, 1])
    }

    @Test func `a page of something in between enrols no key, and costs no other one`()
        async throws
    {
        let bench = try Bench()
        await bench.gateway.change {
            $0.forwards = true
            let fields = ["Content-Type": "text/html"]
            let page = Data("<html>Sign in</html>".utf8)
            $0.troubles["keys"] = [FakeGateway.Reply(fields: fields, content: page)]
        }
        let held = try await bench.session.data(for: Bench.request("/a")).1.proof
        guard case .none(.enrolmentHeld(let hold)) = held else {
            Issue.record("\(held)")
            return
        }
        expectEqual(hold.cause, .gatewayUnavailable)
        bench.clock.advance(by: 10)
        let proof = try await bench.session.data(for: Bench.request("/a")).1.proof
        #expect(proof == .assertion(keyID: await bench.service.keysMade[0]))
        await expectEqual(bench.counts, [1, 1])
        await expectEqual(bench.verdicts.last, "pass")
    }

    @Test(arguments: ["enrol", "none"])
    func `a refused attestation is followed by a new key only where that helps`(
        next: String
    ) async throws {
        let bench = try Bench()
        await bench.gateway.change {
            $0.forwards = true
            $0.troubles["keys"] = [FakeGateway.problem(403, "challenge-expired", next: next)]
        }
        for _ in 0..<3 { _ = try await bench.session.data(for: Bench.request("/a")) }
        await expectEqual(bench.counts, next == "enrol" ? [2, 2] : [1, 1])
    }

    @Test func `a service that hangs keeps no request, and what it brings late is used`()
        async throws
    {
        let service = HangingService()
        let clock = ManualClock()
        let gateway = FakeGateway()
        await gateway.change { $0.forwards = true }
        var configuration = PortcullisConfiguration(gateway: try Bench.url(FakeGateway.origin))
        configuration.defaultRequirement = SigningRequirement()
        configuration.clock = clock
        let session = PortcullisSession(
            configuration,
            service: service,
            store: MemoryEnrolmentStore(),
            transport: gateway
        )
        async let first = session.data(for: Bench.request("/a"))
        await service.hasBegun()
        clock.advance(by: 11)
        try await expectEqual(first.1.proof, .none(.enrolling))
        await service.finish()
        let second = try await session.data(for: Bench.request("/a")).1
        expectEqual(second.proof, .assertion(keyID: HangingService.keyID))
        await expectEqual(service.calls, 1)
    }

    @Test func `two processes that share a store make one key`() async throws {
        let gateway = FakeGateway()
        let service = FakeService()
        let store = MemoryEnrolmentStore()
        let clock = ManualClock()
        let sessions = try (0..<4).map { _ in try Bench.session(service, store, clock, gateway) }
        let ticking = Task {
            while !Task.isCancelled {
                clock.advance(by: 0.05)
                await Task.yield()
            }
        }
        try await withThrowingTaskGroup(of: SentProof.self) { group in
            for session in sessions {
                group.addTask { try await session.data(for: Bench.request("/a")).1.proof }
            }
            var proofs: Set<SentProof> = []
            for try await proof in group { proofs.insert(proof) }
            #expect(proofs == [.assertion(keyID: await service.keysMade[0])])
        }
        ticking.cancel()
        await expectEqual(service.keysMade.count, 1)
        await expectEqual(service.attestations.count, 1)
    }

    @Test func `a session of a key that another process has replaced is not used on`()
        async throws
    {
        let requirement = SigningRequirement(accepts: [.assertion, .session])
        let bench = try Bench { $0.defaultRequirement = requirement }
        await bench.gateway.change { $0.requirement = requirement }
        let first = try await bench.session.data(for: Bench.request("/a")).1.proof
        let other = try Bench.session(bench.service, bench.store, bench.clock, bench.gateway)
        try await other.reset(context: Data("the next user".utf8))
        await expectEqual(other.prewarm(), nil)
        // Longer than between two looks into the store.
        bench.clock.advance(by: 11)
        let second = try await bench.session.data(for: Bench.request("/a")).1.proof
        let keys = await bench.service.keysMade
        expectEqual(keys.count, 2)
        expectEqual([first, second], keys.map { SentProof.session(keyID: $0) })
        await expectEqual(bench.verdicts, ["pass", "pass"])
    }

    @Test func `a context is attested with the key`() async throws {
        let bench = try Bench { $0.context = Data("account 7".utf8) }
        try await expectEqual(bench.session.data(for: Bench.request("/a")).1.statusCode, 200)
        try await bench.session.reset(context: Data("account 8".utf8))
        try await expectEqual(bench.session.data(for: Bench.request("/a")).1.statusCode, 200)
        await expectEqual(bench.counts, [2, 2])
    }

    @Test func `a store that can't be read makes no key`() async throws {
        let gateway = FakeGateway()
        await gateway.change { $0.forwards = true }
        let service = FakeService()
        let session = try Bench.session(service, LockedStore(), ManualClock(), gateway)
        let answer = try await session.data(for: Bench.request("/a")).1
        expectEqual(answer.proof, .none(.storeUnavailable))
        #expect(await service.keysMade.isEmpty)
    }

    @Test func `prewarming makes the first request one round trip`() async throws {
        let bench = try Bench()
        await expectEqual(bench.session.prewarm(), nil)
        let calls = await bench.gateway.calls.count
        _ = try await bench.session.data(for: Bench.request("/a"))
        await expectEqual(bench.gateway.calls.count, calls)
        await expectEqual(bench.verdicts, ["pass"])
    }
}

/// A service whose attestation takes as long as the test likes.
private actor HangingService: AttestationService {
    static let keyID = Data(repeating: 7, count: 32).base64EncodedString()

    nonisolated let isSupported = true
    private(set) var calls = 0
    private var pending: CheckedContinuation<Void, Never>?
    private var awaited: CheckedContinuation<Void, Never>?

    func generateKey() -> String { Self.keyID }

    func attestKey(_ keyID: String, clientDataHash: Data) async -> Data {
        calls += 1
        await withCheckedContinuation {
            pending = $0
            awaited?.resume()
            awaited = nil
        }
        return FakeGateway.attestation(keyID, clientDataHash)
    }

    func generateAssertion(_ keyID: String, clientDataHash: Data) -> Data {
        FakeGateway.assertion(keyID, clientDataHash)
    }

    func hasBegun() async {
        guard pending == nil else { return }
        await withCheckedContinuation { awaited = $0 }
    }

    func finish() {
        pending?.resume()
        pending = nil
    }
}

private struct LockedStore: EnrolmentStore {
    func read() async throws -> Data? { throw CocoaError(.fileReadNoPermission) }

    func replace(_ expected: Data?, with record: Data?) async throws -> Bool {
        throw CocoaError(.fileWriteNoPermission)
    }
}
