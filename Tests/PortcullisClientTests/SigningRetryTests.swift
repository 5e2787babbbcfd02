import Expectations
import Foundation
import Testing

@testable import PortcullisClient

/// A device that can't sign at this moment.
@Suite struct SigningRetryTests {
    /// Moves the clock on whenever a request waits to be signed.
    private func helping(_ bench: Bench) -> Task<[Double], Never> {
        let (events, clock) = (bench.session.events, bench.clock)
        return Task {
            var delays: [Double] = []
            for await case .signingDelayed(let until) in events {
                delays.append(until.timeIntervalSince(clock.now))
                clock.advance(by: until.timeIntervalSince(clock.now))
            }
            return delays
        }
    }

    @Test func `serverUnavailable while signing is tried later with the same key and hash`()
        async throws
    {
        let bench = try Bench()
        let help = helping(bench)
        await bench.service.fail(asserting: [.serverUnavailable, .serverUnavailable])
        let answer = try await bench.session.data(for: Bench.request("/a")).1
        #expect(answer.proof == .assertion(keyID: await bench.service.keysMade[0]))
        let assertions = await bench.service.assertions
        expectEqual(assertions.count, 3)
        expectEqual(Set(assertions.map(\.hash)).count, 1)
        expectEqual(Set(assertions.map(\.keyID)).count, 1)
        await bench.session.close()
        await expectEqual(help.value, [0.1875, 0.375])
    }

    @Test func `a service that stays unavailable is asked a few times, then once a request`()
        async throws
    {
        let bench = try Bench()
        await bench.gateway.change { $0.enforces = false }
        let help = helping(bench)
        await bench.service.fail(asserting: Array(repeating: .serverUnavailable, count: 100))
        var counts: [Int] = []
        for _ in 0..<3 {
            let proof = try await bench.session.data(for: Bench.request("/a")).1.proof
            expectEqual(proof, .none(.serviceFailed(.serverUnavailable)))
            counts.append(await bench.service.assertions.count)
        }
        expectEqual(counts, [4, 5, 6])
        bench.clock.advance(by: 60)
        _ = try await bench.session.data(for: Bench.request("/a"))
        await expectEqual(bench.service.assertions.count, 10)
        await expectEqual(bench.counts, [1, 1])
        await bench.session.close()
        _ = await help.value
    }
}
