import Expectations
import Foundation
import Testing

@testable import PortcullisClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Calls of the gateway's endpoints, and how long they and others may take.
@Suite struct CallTests {
    private func configuration(
        _ gateway: String = FakeGateway.origin
    ) throws -> PortcullisConfiguration {
        var configuration = PortcullisConfiguration(gateway: try Bench.url(gateway))
        configuration.defaultRequirement = SigningRequirement(accepts: [.assertion, .session])
        configuration.random = { 0.5 }
        return configuration
    }

    @Test(.timeLimit(.minutes(1)))
    func `a call whose answer never ends is given up`() async throws {
        let clock = ManualClock()
        var configuration = try configuration()
        configuration.clock = clock
        let transport = EndlessTransport()
        let calls = GatewayCalls(configuration, transport: transport)
        async let result = calls.challenges()
        await clock.isAwaited(clock.now.addingTimeInterval(configuration.limits.callTime.seconds))
        clock.advance(by: configuration.limits.callTime.seconds)
        guard case .failure(.unreachable(nil)) = await result else {
            Issue.record("\(await result)")
            return
        }
        #expect(await transport.isReadNoMore)
    }

    @Test func `calls carry none of the app's cookies`() async throws {
        let bench = try Bench()
        _ = await bench.session.prewarm()
        let calls = GatewayCalls(try configuration(), transport: bench.gateway)
        #expect(!calls.sessionRequest.httpShouldHandleCookies)
    }

    @Test(arguments: [
        ("https://api.example.com", true), ("http://api.example.com", false),
        ("http://127.0.0.1:8080", true), ("http://127.9.9.9", true), ("http://localhost:1", true),
        ("http://a.localhost", true), ("http://[::1]:8080", true), ("http://10.0.0.1", false),
        ("http://127.example.com", false), ("http://127.0.0.1.example.com", false),
        ("http://notlocalhost", false), ("http://[fe80::1]", false), ("http://127.0.0.300", false),
    ])
    func `no session is opened where others can read its secret`(
        origin: String,
        isOpened: Bool
    ) throws {
        let session = PortcullisSession(
            try configuration(origin),
            service: FakeService(),
            store: MemoryEnrolmentStore(),
            transport: FakeGateway()
        )
        let requirement = SigningRequirement(accepts: [.assertion, .session])
        let request = try #require(CanonicalRequest(Bench.request("/a")))
        var machine = session.driver.machine(for: request)
        let want = machine.began(.asks(requirement), isOwnOrigin: true)
        expectEqual(want, isOpened ? .session(requirement) : .assertion(requirement))
    }

    // MARK: Strict routes

    @Test func `requests of a route that is strict are sent one at a time`() async throws {
        let gateway = OrderlyGateway()
        var configuration = try configuration()
        configuration.defaultRequirement = SigningRequirement(counter: .strict)
        configuration.clock = ManualClock()
        let session = PortcullisSession(
            configuration,
            service: FakeService(),
            store: MemoryEnrolmentStore(),
            transport: gateway
        )
        _ = await session.prewarm()
        try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<20 {
                group.addTask {
                    try await session.data(for: Bench.request("/\(number)")).1.statusCode
                }
            }
            for try await status in group { expectEqual(status, 200) }
        }
        await expectEqual(gateway.mostAtOnce, 1)
    }

    /// All rules were strict by default, and these requests took sixteen seconds.
    @Test(
        .timeLimit(.minutes(1)),
        arguments: [
            (SigningRequirement(), 2.0), (SigningRequirement(counter: .strict), 16.0),
        ] as [(SigningRequirement, Double)]
    )
    func `eight requests of two seconds at once take two, or sixteen where the rule is strict`(
        requirement: SigningRequirement,
        seconds: Double
    ) async throws {
        let clock = ManualClock()
        var configuration = try configuration()
        configuration.defaultRequirement = requirement
        configuration.clock = clock
        let session = PortcullisSession(
            configuration,
            service: FakeService(),
            store: MemoryEnrolmentStore(),
            transport: UnhurriedGateway(clock, seconds: 2)
        )
        _ = await session.prewarm()
        let start = clock.now
        let rounds = Int(seconds / 2)
        try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<8 {
                group.addTask {
                    try await session.data(for: Bench.request("/\(number)")).1.statusCode
                }
            }
            for _ in 0..<rounds {
                await clock.isAwaited(clock.now.addingTimeInterval(2), by: 8 / rounds)
                clock.advance(by: 2)
            }
            for try await status in group { expectEqual(status, 200) }
        }
        expectEqual(clock.now.timeIntervalSince(start), seconds)
    }

    @Test(.timeLimit(.minutes(1)))
    func `an answer that is slow to come keeps a strict route's other requests for a limited time`()
        async throws
    {
        let clock = ManualClock()
        let gateway = OrderlyGateway(holds: "/slow")
        var configuration = try configuration()
        configuration.defaultRequirement = SigningRequirement(counter: .strict)
        configuration.clock = clock
        let limits = configuration.limits
        let session = PortcullisSession(
            configuration,
            service: FakeService(),
            store: MemoryEnrolmentStore(),
            transport: gateway
        )
        _ = await session.prewarm()
        async let slow = session.data(for: Bench.request("/slow"))
        await clock.isAwaited(clock.now.addingTimeInterval(limits.strictTurn.seconds))
        async let other = session.data(for: Bench.request("/other"))
        await clock.isAwaited(clock.now.addingTimeInterval(limits.strictWait.seconds))
        clock.advance(by: limits.strictTurn.seconds)
        try await expectEqual(other.1.statusCode, 200)
        await gateway.release()
        try await expectEqual(slow.1.statusCode, 200)
    }

    @Test(.timeLimit(.minutes(1)))
    func `a challenge that ends while others have their turn is not used`() async throws {
        let clock = ManualClock()
        let gateway = OrderlyGateway(holds: "/slow")
        await gateway.bringsNone()
        var configuration = try configuration()
        configuration.defaultRequirement = SigningRequirement(counter: .strict)
        configuration.clock = clock
        // Longer than a challenge lives, which is 300 s.
        configuration.limits.strictTurn = .seconds(900)
        configuration.limits.strictWait = .seconds(800)
        let session = PortcullisSession(
            configuration,
            service: FakeService(),
            store: MemoryEnrolmentStore(),
            transport: gateway
        )
        _ = await session.prewarm()
        async let slow = session.data(for: Bench.request("/slow"))
        await clock.isAwaited(clock.now.addingTimeInterval(900))
        var request = try Bench.request("/other")
        request.timeoutInterval = 1000
        async let other = session.data(for: request)
        await clock.isAwaited(clock.now.addingTimeInterval(800))
        // All that was issued so far ends before the request gets its turn.
        let issued = await gateway.issued
        clock.advance(by: 295)
        await gateway.release()
        try await expectEqual(slow.1.statusCode, 200)
        try await expectEqual(other.1.statusCode, 200)
        let used = try #require(await gateway.challenge(of: "/other"))
        let earlier = (1...issued).map { "challenge-\($0)" }
        #expect(!earlier.contains(used), "\(used), of \(issued)")
    }

    // MARK: A service that fails

    @Test(arguments: [(2.0, nil), (100, "1")])
    func `a request says that its device can't attest when that lasts longer than a request waits`(
        delay: Double,
        field: String?
    ) async throws {
        let bench = try Bench { $0.limits.enrolmentDelay = .seconds(delay) }
        await bench.gateway.change { $0.enforces = false }
        await bench.service.fail(attesting: [.unknownSystemFailure])
        let answer = try await bench.session.data(for: Bench.request("/a")).1
        guard case .none(.enrolmentHeld(let hold)) = answer.proof else {
            Issue.record("\(answer.proof)")
            return
        }
        expectEqual(hold.cause, .serviceFailed(.unknownSystemFailure))
        let sent = await bench.gateway.seen[0].request
        expectEqual(sent.value(forHTTPHeaderField: "App-Attest-Unsupported"), field)
    }
}

/// A server that sends the head of an answer, and its content never.
private actor EndlessTransport: HTTPTransport {
    private let ending = SharedWork<Void>()

    func send(_ request: URLRequest, content: RequestContent) async throws -> TransportAnswer {
        guard let url = request.url,
            let response = HTTPURLResponse(
                url: url,
                statusCode: 200,
                httpVersion: nil,
                headerFields: nil
            )
        else { throw URLError(.badURL) }
        let ending = ending
        return TransportAnswer(
            response: response,
            content: AnswerContent {
                // Ends when the reading task is cancelled.
                let piece = SharedWork<Void>()
                _ = await piece.value(until: .distantFuture, by: ManualClock())
                ending.end(with: ())
                throw CancellationError()
            }
        )
    }

    /// Whether its reader gives up, within a time in which every reader would.
    nonisolated var isReadNoMore: Bool {
        get async {
            await ending.value(until: Date(timeIntervalSinceNow: 20), by: SystemClock()) != nil
        }
    }
}

/// A gateway that counts how many requests are under way, and may hold the answer of a path.
private actor OrderlyGateway: HTTPTransport {
    private let gateway = FakeGateway()
    private let held: String?
    private let latch = SharedWork<Void>()
    private var count = 0
    private(set) var mostAtOnce = 0

    init(holds path: String? = nil) { held = path }

    func release() { latch.end(with: ()) }

    /// No answer of an origin brings a challenge from now on.
    func bringsNone() async { await gateway.change { $0.bringsChallenges = false } }

    /// How many challenges there were.
    var issued: Int { get async { await gateway.serial } }

    /// The challenge that a request brought.
    func challenge(of path: String) async -> String? {
        let sent = await gateway.seen.last { $0.request.url?.path == path }
        return sent?.request.value(forHTTPHeaderField: "App-Attest-Challenge")
    }

    func send(_ request: URLRequest, content: RequestContent) async throws -> TransportAnswer {
        let path = request.url?.path ?? ""
        guard !path.hasPrefix("/.well-known") else {
            return try await gateway.send(request, content: content)
        }
        count += 1
        mostAtOnce = max(mostAtOnce, count)
        defer { count -= 1 }
        let answer = try await gateway.send(request, content: content)
        if path == held {
            _ = await latch.value(until: .distantFuture, by: ManualClock())
        } else {
            for _ in 0..<20 { await Task.yield() }
        }
        return answer
    }
}

/// A gateway whose origin answers each request after a time, however many there are.
private struct UnhurriedGateway: HTTPTransport {
    private let gateway = FakeGateway()
    private let clock: ManualClock
    private let seconds: Double

    init(_ clock: ManualClock, seconds: Double) { (self.clock, self.seconds) = (clock, seconds) }

    func send(_ request: URLRequest, content: RequestContent) async throws -> TransportAnswer {
        if request.url?.path.hasPrefix("/.well-known") == false {
            try await clock.wait(until: clock.now.addingTimeInterval(seconds))
        }
        return try await gateway.send(request, content: content)
    }
}
