import ClientKit
import Expectations
import Foundation
import Testing

@testable import PortcullisClient

/// Users who sign in and out on one device. What each of them costs at Apple is counted.
@Suite struct SignOutTests {
    private static let sessions: @Sendable (isolated FakeGateway) -> Void = {
        $0.requirement.accepts = [.assertion, .session]
    }

    /// A session of which two keys of the day are used up, and the third is enrolled.
    private func benchWithLastKey(_ context: Data? = nil) async throws -> Bench {
        let bench = try Bench { $0.context = context }
        for _ in 0..<2 {
            _ = try await bench.session.data(for: Bench.request("/a"))
            await bench.session.reset()
        }
        return bench
    }

    @Test func `signing out drops the session and keeps the key`() async throws {
        let bench = try Bench { $0.defaultRequirement?.accepts = [.assertion, .session] }
        await bench.gateway.change(Self.sessions)
        for _ in 0..<5 {
            let answer = try await bench.session.data(for: Bench.request("/a")).1
            #expect(answer.proof == .session(keyID: await bench.service.keysMade[0]))
            await bench.session.signOut()
        }
        await expectEqual(bench.gateway.calls.filter { $0 == "sessions" }.count, 5)
        await expectEqual(bench.counts, [1, 1])
    }

    @Test func `the sixth sign-in of a day is served, with the third key`() async throws {
        let bench = try Bench()
        var forgotten: [Bool] = []
        for _ in 0..<6 {
            try await expectEqual(bench.session.data(for: Bench.request("/a")).1.statusCode, 200)
            forgotten.append(await bench.session.reset())
        }
        await expectEqual(bench.counts, [3, 3])
        expectEqual(forgotten, [true, true, false, false, false, false])
        bench.clock.advance(by: 86_401)
        #expect(await bench.session.reset())
    }

    @Test func `the last key of a day is given up where it is bound to a context`() async throws {
        let bench = try await benchWithLastKey()
        try await bench.session.reset(context: Data("account 7".utf8))
        _ = try await bench.session.data(for: Bench.request("/a"))
        // Also by a process that does not know what the key was enrolled with.
        let next = try Bench.session(bench.service, bench.store, bench.clock, bench.gateway)
        #expect(await next.reset())
        expectEqual(
            EnrolmentRecord(await bench.store.read(), gateway: FakeGateway.endpoints).phase,
            .none
        )
    }

    @Test func `a refused key is not kept because it is the last one of a day`() async throws {
        let store = GatedStore()
        let service = FakeService()
        let session = try Bench.session(service, store, ManualClock(), FakeGateway())
        for _ in 0..<2 {
            _ = try await session.data(for: Bench.request("/a"))
            #expect(await session.reset())
        }
        _ = try await session.data(for: Bench.request("/a"))
        // The record still has it.
        await store.failWrites(1)
        let keyID = try #require(await service.keysMade.last)
        await session.driver.prover.enroller.forget(keyID, reason: "key-revoked")
        #expect(await session.reset())
    }

    @Test
    func `a reset whose context needs a key that no one may make throws, and forgets nothing`()
        async throws
    {
        let bench = try await benchWithLastKey()
        _ = try await bench.session.data(for: Bench.request("/a"))
        await #expect(throws: PortcullisError.keysExhausted) {
            try await bench.session.reset(context: Data("account 4".utf8))
        }
        try await expectEqual(bench.session.data(for: Bench.request("/a")).1.statusCode, 200)
        await expectEqual(bench.counts, [3, 3])
        bench.clock.advance(by: 86_401)
        try await bench.session.reset(context: Data("account 4".utf8))
        try await expectEqual(bench.session.data(for: Bench.request("/a")).1.statusCode, 200)
        await expectEqual(bench.counts, [4, 4])
    }

    @Test func `a key of whose context nothing is known is not kept for the next user`() {
        var record = EnrolmentRecord(gateway: "g")
        let now = Date(timeIntervalSince1970: 1_800_000_000)
        record.attestations = [Double](repeating: now.timeIntervalSince1970, count: 3)
        record.phase = .enrolled(keyID: "k")
        for (hasContext, isKept) in [(nil, false), (true, false), (false, true)] as [(Bool?, Bool)]
        {
            record.hasContext = hasContext
            var machine = EnrolmentMachine(record, limits: PortcullisLimits())
            expectEqual(machine.reset(keepsLast: true, now: now), !isKept)
            expectEqual(machine.record.phase, isKept ? record.phase : .none)
            expectEqual(machine.record.attestations, record.attestations)
        }
    }

    @Test func `signing out ends an enrolment that would bind the key to the user`() async throws {
        let bench = try Bench { $0.context = Data("account 7".utf8) }
        await bench.gateway.change {
            $0.forwards = true
            // Apple has attested the key, and the gateway has not taken it yet.
            $0.troubles["keys"] = [FakeGateway.Reply(status: 503)]
        }
        _ = try await bench.session.data(for: Bench.request("/a"))
        await bench.session.signOut()
        let proof = try await bench.session.data(for: Bench.request("/a")).1.proof
        let keys = await bench.service.keysMade
        expectEqual(keys.count, 2)
        #expect(proof == .assertion(keyID: try #require(keys.last)))
        let record = EnrolmentRecord(await bench.store.read(), gateway: FakeGateway.endpoints)
        expectEqual(record.hasContext, false)
    }

    @Test func `a sign-out whose store failed still ends an enrolment with a context`() async throws
    {
        let store = GatedStore()
        let (service, gateway) = (FakeService(), FakeGateway())
        await gateway.change {
            $0.forwards = true
            $0.troubles["keys"] = [FakeGateway.Reply(status: 503)]
        }
        let session = try Bench.session(service, store, ManualClock(), gateway) {
            $0.context = Data("account 7".utf8)
        }
        _ = try await session.data(for: Bench.request("/a"))
        await store.failWrites(1)
        await session.signOut()
        let proof = try await session.data(for: Bench.request("/a")).1.proof
        let keys = await service.keysMade
        expectEqual(keys.count, 2)
        #expect(proof == .assertion(keyID: try #require(keys.last)))
    }
}
