import Expectations
import Foundation
import Testing

@testable import PortcullisClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A device whose service fails whenever a key is to be attested. Rules may admit it as one that
/// can't attest (`unsupported: forward`), if its requests say so.
@Suite struct BrokenDeviceTests {
    private static let lasting: [AttestationServiceError] = [
        .invalidKey, .invalidInput, .featureUnsupported, .unknownSystemFailure,
    ]

    /// Sends a request, and returns whether it said that it is unsupported.
    private func saysUnsupported(_ bench: Bench, _ session: PortcullisSession? = nil) async throws
        -> Bool
    {
        _ = try await (session ?? bench.session).data(for: Bench.request("/a"))
        let request = await bench.gateway.seen.last?.request
        return request?.value(forHTTPHeaderField: "App-Attest-Unsupported") == "1"
    }

    @Test(arguments: lasting)
    func `a device that never attests says so after the second time, also at the daily cap`(
        error: AttestationServiceError
    ) async throws {
        let bench = try Bench()
        await bench.service.fail(attesting: [AttestationServiceError](repeating: error, count: 99))
        await bench.gateway.change { $0.forwards = true }
        var said: [Int: Set<Bool>] = [:]
        for _ in 0..<40 {
            let says = try await saysUnsupported(bench)
            said[await bench.service.attestations.count, default: []].insert(says)
            bench.clock.advance(by: 600)
        }
        // Without a reason, the first key is tried twice, and the second one stays.
        let isUnexplained = error == .unknownSystemFailure
        let tries = isUnexplained ? 5 : 3
        await expectEqual(bench.counts, [isUnexplained ? 2 : 3, tries])
        // An invalid key is replaced at once, so that the first request sees two failures.
        if error == .invalidKey {
            expectEqual(said, [2: [true], 3: [true]])
        } else {
            expectEqual(said[1], [false])
            for number in 2...tries { expectEqual(said[number], [true]) }
        }
    }

    @Test func `a device that fails without a reason costs two keys in any day, and few calls`()
        async throws
    {
        let bench = try Bench()
        let errors = Array(repeating: AttestationServiceError.unknownSystemFailure, count: 999)
        await bench.service.fail(attesting: errors)
        await bench.gateway.change { $0.forwards = true }
        // What was made and asked for until each hour of five days.
        var counts: [[Int]] = [[0, 0]]
        for _ in 0..<120 {
            // Every request of the hour finds what holds the enrolment.
            for _ in 0..<3 { _ = try await bench.session.data(for: Bench.request("/a")) }
            counts.append(await bench.counts)
            bench.clock.advance(by: 3600)
        }
        let days = zip(counts.dropFirst(24), counts).map { [$0[0] - $1[0], $0[1] - $1[1]] }
        expectEqual(days.map { $0[0] }.max(), 2)
        #expect((days.map { $0[1] }.max() ?? 0) <= 8)
    }

    @Test func `a device that makes no key says so after the second time`() async throws {
        let bench = try Bench()
        let service = KeylessService()
        let session = try Bench.session(service, bench.store, bench.clock, bench.gateway)
        await bench.gateway.change { $0.forwards = true }
        var said: [Bool] = []
        for _ in 0..<4 {
            said.append(try await saysUnsupported(bench, session))
            bench.clock.advance(by: 60)
        }
        expectEqual(said, [false, true, true, true])
    }

    @Test func `that Apple is not reached says nothing about the device`() async throws {
        let bench = try Bench()
        await bench.service.fail(attesting: Array(repeating: .serverUnavailable, count: 9))
        await bench.gateway.change { $0.forwards = true }
        for _ in 0..<9 {
            #expect(try await !saysUnsupported(bench))
            bench.clock.advance(by: 7200)
        }
    }

    @Test func `the next process says so at once, also after a reset`() async throws {
        let bench = try Bench()
        await bench.service.fail(attesting: Array(repeating: .unknownSystemFailure, count: 9))
        await bench.gateway.change { $0.forwards = true }
        for _ in 0..<2 {
            _ = try await saysUnsupported(bench)
            bench.clock.advance(by: 60)
        }
        await bench.session.reset()
        let next = try Bench.session(bench.service, bench.store, bench.clock, bench.gateway)
        #expect(try await saysUnsupported(bench, next))
    }

    @Test func `the first key that is attested ends it`() async throws {
        let bench = try Bench()
        await bench.service.fail(attesting: [.invalidInput, .unknownSystemFailure])
        await bench.gateway.change { $0.forwards = true }
        var said: [Bool] = []
        for _ in 0..<3 {
            said.append(try await saysUnsupported(bench))
            bench.clock.advance(by: 60)
        }
        expectEqual(said, [false, true, false])
        await expectEqual(bench.verdicts.last, "pass")
        let record = EnrolmentRecord(await bench.store.read(), gateway: FakeGateway.endpoints)
        expectEqual(record.deviceFailures, 0)
    }
}

/// A service that makes no key.
private struct KeylessService: AttestationService {
    let isSupported = true

    func generateKey() async throws(AttestationServiceError) -> String {
        throw .unknownSystemFailure
    }

    func attestKey(
        _ keyID: String,
        clientDataHash: Data
    ) async throws(AttestationServiceError) -> Data { throw .invalidKey }

    func generateAssertion(
        _ keyID: String,
        clientDataHash: Data
    ) async throws(AttestationServiceError) -> Data { throw .invalidKey }
}
