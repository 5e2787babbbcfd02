import ClientKit
import Expectations
import Foundation
import Testing

@testable import PortcullisClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What comes in between: a refusal, a reset, another process.
@Suite struct EnrolmentRaceTests {
    /// Moves a clock on until the value is there.
    private func ticking<Value: Sendable>(
        _ clock: ManualClock,
        _ body: () async throws -> Value
    ) async rethrows -> Value {
        let ticking = Task {
            while !Task.isCancelled {
                clock.advance(by: 0.05)
                await Task.yield()
            }
        }
        defer { ticking.cancel() }
        return try await body()
    }

    private func second(of service: FakeService) async throws -> String {
        try #require(await service.keysMade.dropFirst().first, "no second key")
    }

    @Test func `a key that is refused while an enrolment ends does not come back`() async throws {
        let memory = MemoryEnrolmentStore()
        let first = try Bench(store: memory)
        _ = try await first.session.data(for: Bench.request("/a"))
        let old = await first.service.keysMade[0]

        // The app starts again, and reads the record while the key is refused.
        let store = GatedStore(memory)
        let latch = Latch()
        let session = try Bench.session(first.service, store, first.clock, first.gateway)
        await store.holdRead(at: latch)
        async let answer = session.data(for: Bench.request("/a")).1
        await latch.awaitArrivals(1)
        await session.driver.prover.enroller.forget(old, reason: "key-revoked")
        latch.open()
        try await expectEqual(answer.proof, .assertion(keyID: second(of: first.service)))
        await expectEqual(first.counts, [2, 2])
    }

    @Test func `a refused key is not used on because the store failed`() async throws {
        let store = GatedStore()
        let (gateway, service) = (FakeGateway(), FakeService())
        let session = try Bench.session(service, store, ManualClock(), gateway)
        _ = try await session.data(for: Bench.request("/a"))
        await gateway.wipe()
        await store.failWrites(1)
        let answer = try await session.data(for: Bench.request("/a")).1
        expectEqual(answer.statusCode, 200)
        await expectEqual(service.attestations.count, 2)
        await expectEqual(gateway.seen.map(\.verdict), ["pass", "key-unknown", "pass"])
    }

    @Test func `a request from before a reset gets no key from after it`() async throws {
        let service = LatchedService()
        let gateway = FakeGateway()
        await gateway.change { $0.forwards = true }
        let session = try Bench.session(service, MemoryEnrolmentStore(), ManualClock(), gateway) {
            $0.context = Data("account 7".utf8)
        }
        async let first = session.data(for: Bench.request("/a")).1
        await service.latch.awaitArrivals(1)
        try await session.reset(context: Data("account 8".utf8))
        async let second = session.data(for: Bench.request("/a")).1
        service.latch.open()
        try await expectEqual(first.proof, .none(.enrolling))
        try await expectEqual(second.proof, .assertion(keyID: LatchedService.keyID(1)))
        // Never two at a time, and the first of them was not brought to the gateway.
        await expectEqual(service.mostAtOnce, 1)
        await expectEqual(gateway.calls.filter { $0 == "keys" }.count, 1)
    }

    @Test func `a reset whose store failed does not bring the old key back`() async throws {
        let store = GatedStore()
        let service = FakeService()
        let session = try Bench.session(service, store, ManualClock(), FakeGateway())
        _ = try await session.data(for: Bench.request("/a"))
        await store.failWrites(1)
        await session.reset()
        let answer = try await session.data(for: Bench.request("/a")).1
        #expect(answer.proof == .assertion(keyID: try await second(of: service)))
    }

    @Test func `a reset ends a session that is being opened`() async throws {
        let (gateway, service) = (FakeGateway(), FakeService())
        let transport = HeldTransport(gateway, holding: "/sessions")
        let requirement = SigningRequirement(accepts: [.assertion, .session])
        await gateway.change { $0.requirement = requirement }
        var configuration = PortcullisConfiguration(gateway: try Bench.url(FakeGateway.origin))
        configuration.defaultRequirement = requirement
        configuration.clock = ManualClock()
        let session = PortcullisSession(
            configuration,
            service: service,
            store: MemoryEnrolmentStore(),
            transport: transport
        )
        async let first = session.data(for: Bench.request("/a")).1
        await transport.latch.awaitArrivals(1)
        await session.reset()
        transport.latch.open()
        _ = try await first
        let proof = try await session.data(for: Bench.request("/a")).1.proof
        let keys = await service.keysMade
        expectEqual(keys.count, 2)
        #expect(proof == .session(keyID: try await second(of: service)))
    }

    @Test func `a store that never takes a record ends an enrolment, with an event`() async throws {
        let store = StubbornStore()
        let gateway = FakeGateway()
        await gateway.change { $0.forwards = true }
        let clock = ManualClock()
        // The clock goes on however slow the machine is.
        let session = try Bench.session(FakeService(), store, clock, gateway) {
            ($0.limits.enrolmentWait, $0.limits.proofWait) = (.seconds(1e5), .seconds(1e5))
        }
        var events = session.events.makeAsyncIterator()
        var request = try Bench.request("/a")
        request.timeoutInterval = 1e5
        let answer = try await ticking(clock) { try await session.data(for: request).1 }
        expectEqual(answer.proof, .none(.storeUnavailable))
        #expect(await store.writes < 20)
        await expectEqual(events.next(), .storeContended)
    }

    @Test func `a process with a shorter lease does not break into an enrolment`() async throws {
        let service = LatchedService()
        let gateway = FakeGateway()
        await gateway.change { $0.forwards = true }
        let (store, clock) = (MemoryEnrolmentStore(), ManualClock())
        let app = try Bench.session(service, store, clock, gateway)
        let other = try Bench.session(service, store, clock, gateway) {
            $0.limits.lease = .seconds(5)
        }
        async let first = app.data(for: Bench.request("/a")).1
        await service.latch.awaitArrivals(1)
        let proof = try await ticking(clock) {
            try await other.data(for: Bench.request("/a")).1.proof
        }
        expectEqual(proof, .none(.enrolling))
        service.latch.open()
        _ = try await first
        await expectEqual(service.attestations, 1)
    }

    @Test func `a process goes on with the key that another one made in place of its own`()
        async throws
    {
        let bench = try Bench()
        let other = try Bench.session(bench.service, bench.store, bench.clock, bench.gateway)
        _ = try await bench.session.data(for: Bench.request("/a"))
        _ = try await other.data(for: Bench.request("/a"))
        await bench.session.reset()
        _ = try await bench.session.data(for: Bench.request("/a"))
        bench.clock.advance(by: 60)
        let proof = try await other.data(for: Bench.request("/a")).1.proof
        #expect(proof == .assertion(keyID: try await second(of: bench.service)))
        await expectEqual(bench.counts, [2, 2])
    }

    @Test func `a delay that another process has lifted holds no request any more`() async throws {
        let bench = try Bench()
        await bench.gateway.change {
            $0.forwards = true
            $0.troubles["challenges"] = [
                FakeGateway.problem(429, "enrolment-not-yet", next: "retry-later", retryAfter: 100)
            ]
        }
        let other = try Bench.session(bench.service, bench.store, bench.clock, bench.gateway)
        _ = try await bench.session.data(for: Bench.request("/a"))
        let held = try await other.data(for: Bench.request("/a")).1.proof
        guard case .none(.enrolmentHeld(let hold)) = held else {
            Issue.record("\(held)")
            return
        }
        expectEqual(hold.cause, .throttled)
        await bench.session.reset()
        bench.clock.advance(by: 15)
        let proof = try await other.data(for: Bench.request("/a")).1.proof
        #expect(proof == .assertion(keyID: try await second(of: bench.service)))
    }

    @Test(arguments: [false, true])
    func `an unfit context is told once, whatever another process writes`(
        hasOther: Bool
    ) async throws {
        let bench = try Bench()
        await bench.gateway.change { $0.forwards = true }
        await bench.service.fail(attesting: Array(repeating: .serverUnavailable, count: 10))
        let unfit = try Bench.session(bench.service, bench.store, bench.clock, bench.gateway) {
            $0.context = Data()
        }
        let events = unfit.events
        let hold = EnrolmentHold(.contextUnfit, until: .distantFuture)
        for _ in 0..<4 {
            // Another process, whose context is fit, enrols at the same time.
            if hasOther { _ = try await bench.session.data(for: Bench.request("/a")) }
            let proof = try await unfit.data(for: Bench.request("/a")).1.proof
            expectEqual(proof, .none(.enrolmentHeld(hold)))
            bench.clock.advance(by: 11)
        }
        await unfit.close()
        let holds = await events.reduce(into: [EnrolmentHold]()) { holds, event in
            if case .enrolmentHeld(let hold) = event { holds.append(hold) }
        }
        expectEqual(holds, [hold])
    }

    @Test(arguments: [0, 257])
    func `a context that the gateway would refuse is said before anybody is asked`(
        count: Int
    ) async throws {
        let unfit = Data(repeating: 7, count: count)
        let bench = try Bench { $0.context = unfit }
        await bench.gateway.change { $0.forwards = true }
        let proof = try await bench.session.data(for: Bench.request("/a")).1.proof
        expectEqual(
            proof,
            .none(.enrolmentHeld(EnrolmentHold(.contextUnfit, until: .distantFuture)))
        )
        await #expect(throws: PortcullisError.contextUnfit) {
            try await bench.session.reset(context: unfit)
        }
        await expectEqual(bench.counts, [0, 0])
        #expect(await bench.gateway.calls.isEmpty)
        try await bench.session.reset(context: Data([7]))
        try await expectEqual(bench.session.data(for: Bench.request("/a")).1.statusCode, 200)
        await expectEqual(bench.counts, [1, 1])
    }

    @Test func `requests are not held for ever by a clock that was set back`() async throws {
        let bench = try Bench()
        await bench.gateway.change {
            $0.forwards = true
            $0.troubles["challenges"] = [
                FakeGateway.problem(429, "enrolment-not-yet", next: "retry-later", retryAfter: 100)
            ]
        }
        _ = try await bench.session.data(for: Bench.request("/a"))
        bench.clock.advance(by: -1e8)
        let proof = try await bench.session.data(for: Bench.request("/a")).1.proof
        #expect(proof == .assertion(keyID: await bench.service.keysMade[0]))
    }
}

/// A service whose attestations wait at a latch.
private actor LatchedService: AttestationService {
    nonisolated let isSupported = true
    let latch = Latch()
    private(set) var attestations = 0
    private(set) var mostAtOnce = 0
    private var keys = 0
    private var atOnce = 0

    static func keyID(_ number: UInt8) -> String {
        Data(repeating: number, count: 32).base64EncodedString()
    }

    func generateKey() -> String {
        defer { keys += 1 }
        return Self.keyID(UInt8(keys))
    }

    func attestKey(_ keyID: String, clientDataHash: Data) async -> Data {
        attestations += 1
        atOnce += 1
        mostAtOnce = max(mostAtOnce, atOnce)
        await latch.pass()
        atOnce -= 1
        return FakeGateway.attestation(keyID, clientDataHash)
    }

    func generateAssertion(_ keyID: String, clientDataHash: Data) -> Data {
        FakeGateway.assertion(keyID, clientDataHash)
    }
}

/// A store that says of every write that another process was faster. After a thousand of them it
/// fails, so that a busy loop ends.
private actor StubbornStore: EnrolmentStore {
    private(set) var writes = 0

    func read() -> Data? { nil }

    func replace(_ expected: Data?, with record: Data?) throws -> Bool {
        writes += 1
        guard writes < 1000 else { throw CocoaError(.fileWriteOutOfSpace) }
        return false
    }
}

/// A transport that holds the first call of an endpoint at a latch.
private actor HeldTransport: HTTPTransport {
    let latch = Latch()
    private let gateway: FakeGateway
    private let ending: String
    private var hasHeld = false

    init(_ gateway: FakeGateway, holding ending: String) {
        (self.gateway, self.ending) = (gateway, ending)
    }

    func send(_ request: URLRequest, content: RequestContent) async throws -> TransportAnswer {
        let answer = try await gateway.send(request, content: content)
        if !hasHeld, request.url?.path.hasSuffix(ending) == true {
            hasHeld = true
            await latch.pass()
        }
        return answer
    }
}
