import ClientKit
import Expectations
import Foundation
import RequestBinding
import Testing

@testable import PortcullisClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The plan that is fetched, and what survives the process.
@Suite struct PlanSourceTests {
    private static let parts = SigningRequirement(
        form: .lines([.method, .target], headers: []),
        challenge: .none,
        counter: .window(64)
    )

    /// A plan with one rule.
    private static func plan(
        _ sign: String = #""method","target""#,
        path: String = "/**",
        more: String = ""
    ) -> Data {
        let text = """
            {"portcullis_plan":1,"endpoints":"/.well-known/app-attest","rules":[
              {"name":"all","hosts":["*"],"methods":["*"],"paths":["\(path)"],"sign":[\(sign)],
               "form":"lines","headers":[],"challenge":"none","digest":"held","counter":64,
               "accept":["assertion"]\(more)}],"unmatched":null}
            """
        return Data(text.utf8)
    }

    /// A session whose plan is fetched, with a gateway that enforces ``parts``.
    private func bench(
        serving plan: Data? = PlanSourceTests.plan(),
        _ change: (inout PortcullisConfiguration) -> Void = { _ in }
    ) async throws -> Bench {
        let bench = try Bench {
            $0.defaultRequirement = nil
            $0.fetchesPlan = true
            change(&$0)
        }
        await bench.gateway.change {
            $0.requirement = Self.parts
            $0.plan = plan
        }
        return bench
    }

    private func tries(_ session: PortcullisSession, _ path: String = "/a") async throws -> Int {
        let answer = try await session.data(for: Bench.request(path)).1
        expectEqual(answer.statusCode, 200)
        return answer.attempts
    }

    private func fetches(_ bench: Bench) async -> Int {
        await bench.gateway.calls.count { $0 == "plan" }
    }

    /// Waits until the plan was asked for so often.
    private func awaitFetches(_ count: Int, _ bench: Bench) async {
        while await fetches(bench) < count { await Task.yield() }
    }

    // MARK: Fetching

    @Test func `an app knows what a route asks before its first try`() async throws {
        let bench = try await bench()
        try await expectEqual(tries(bench.session), 1)
        await expectEqual(bench.verdicts, ["pass"])
        await expectEqual(bench.gateway.calls, ["plan", "challenges", "keys"])
        try await expectEqual(tries(bench.session, "/b"), 1)
        await expectEqual(fetches(bench), 1)
    }

    @Test func `the plan is not fetched unless the app says so`() async throws {
        let bench = try await bench { $0.fetchesPlan = false }
        try await expectEqual(tries(bench.session), 2)
        await expectEqual(fetches(bench), 0)
    }

    @Test func `prewarm fetches the plan`() async throws {
        let bench = try await bench()
        await expectEqual(bench.session.prewarm(), nil)
        await expectEqual(fetches(bench), 1)
        try await expectEqual(tries(bench.session), 1)
    }

    /// Others could write it, and have the app sign less than the gateway asks.
    @Test(arguments: [
        ("http://api.example.com", false), ("http://127.0.0.1:8080", true),
        ("https://api.example.com", true),
    ])
    func `no plan is fetched over plain HTTP from another machine`(
        gateway: String,
        isFetched: Bool
    ) throws {
        var configuration = PortcullisConfiguration(gateway: try Bench.url(gateway))
        configuration.fetchesPlan = true
        let calls = GatewayCalls(configuration, transport: FakeGateway())
        let source = PlanSource(
            configuration,
            calls: calls,
            routes: RouteTable(configuration),
            events: EventHub(nil)
        )
        expectEqual((source != nil), isFetched)
    }

    @Test func `without a plan at the gateway, requests learn from answers and it is asked seldom`()
        async throws
    {
        let bench = try await bench(serving: nil)
        let events = bench.session.events
        try await expectEqual(tries(bench.session), 2)
        try await expectEqual(tries(bench.session, "/b"), 2)
        await expectEqual(fetches(bench), 1)
        bench.clock.advance(by: 31)
        try await expectEqual(tries(bench.session, "/c"), 2)
        await expectEqual(fetches(bench), 2)
        await bench.session.close()
        let missed = await events.reduce(into: 0) { count, event in
            if case .planUnavailable = event { count += 1 }
        }
        expectEqual(missed, 2)
    }

    @Test func `a plan that does not come keeps requests waiting once, and for a bounded time`()
        async throws
    {
        let bench = try await bench()
        let transport = ScriptedTransport(bench.gateway)
        let latch = Latch()
        transport.next("/.well-known/app-attest/plan", .wait(latch))
        var configuration = PortcullisConfiguration(gateway: try Bench.url(FakeGateway.origin))
        configuration.fetchesPlan = true
        configuration.clock = bench.clock
        let session = PortcullisSession(
            configuration,
            service: bench.service,
            store: bench.store,
            transport: transport
        )
        let start = bench.clock.now
        let first = Task { try await tries(session) }
        await bench.clock.isAwaited(start.addingTimeInterval(2))
        bench.clock.advance(by: 2)
        try await expectEqual(first.value, 2)
        // The clock stands still: nothing waits any more.
        try await expectEqual(tries(session, "/b"), 2)
        latch.open()
        while transport.exchanges("/.well-known/app-attest/plan").isEmpty { await Task.yield() }
    }

    @Test func `a known plan is asked for again when it is old, by its tag`() async throws {
        let bench = try await bench()
        try await expectEqual(tries(bench.session), 1)
        bench.clock.advance(by: 299)
        try await expectEqual(tries(bench.session), 1)
        await expectEqual(fetches(bench), 1)
        bench.clock.advance(by: 2)
        try await expectEqual(tries(bench.session), 1)
        await awaitFetches(2, bench)
        let tags = await bench.gateway.planTags
        expectEqual(tags.first, .some(nil))
        expectEqual(tags.last??.hasPrefix("\""), true)
    }

    @Test func `a plan that is none, or is too long, is passed over with an event`() async throws {
        let hostile = [
            Data("<html>Sign in</html>".utf8), Data(), Data("{\"portcullis_plan\":2}".utf8),
            Self.plan(more: #","fields":{"key_id":"Host"}"#),
            Self.plan(more: #","fields":{"assertion":"X-A\r\nX-B"}"#),
            Self.plan(more: #","fields":{"assertion":"content-length"}"#),
            Self.plan(more: #","fields":{"unsupported":""}"#),
            Self.plan(path: "/" + String(repeating: "a", count: 10 << 20)),
        ]
        for plan in hostile {
            let bench = try await bench(serving: plan) {
                $0.plan = try? SigningPlan(json: Self.plan())
            }
            let events = bench.session.events
            try await expectEqual(tries(bench.session), 1)
            await awaitFetches(1, bench)
            // The fetch has ended once another is not begun beside it.
            _ = await bench.session.prewarm()
            try await expectEqual(tries(bench.session), 1)
            await bench.session.close()
            let kinds = await events.reduce(into: [String]()) { kinds, event in
                switch event {
                case .planIgnored: kinds.append("ignored")
                case .planUnavailable: kinds.append("unavailable")
                case .planFetched: kinds.append("fetched")
                default: break
                }
            }
            expectEqual(kinds, [plan.count > 1 << 20 ? "unavailable" : "ignored"])
        }
    }

    @Test func `a counter that no gateway has makes requests go one at a time`() throws {
        for text in ["0", "-1", "65", "9007199254740993"] {
            let plan = try SigningPlan(
                json: Data(
                    String(decoding: Self.plan(), as: UTF8.self)
                        .replacing("\"counter\":64", with: "\"counter\":\(text)").utf8
                )
            )
            let url = try Bench.url(FakeGateway.origin + "/a")
            guard case .rule(_, let requirement) = plan.answer(method: "GET", url: url) else {
                Issue.record("no rule")
                return
            }
            expectEqual(requirement.counter, .strict)
        }
    }

    // MARK: What was said last

    @Test func `an answer is newer than the plan, and has another one fetched`() async throws {
        let bench = try await bench()
        try await expectEqual(tries(bench.session), 1)
        await bench.gateway.change {
            $0.requirement.form = .lines([.method], headers: [])
            $0.plan = Self.plan(#""method""#)
        }
        bench.clock.advance(by: 61)
        // 403, then without proof, then right.
        try await expectEqual(tries(bench.session), 3)
        try await expectEqual(tries(bench.session), 1)
        bench.clock.advance(by: 61)
        try await expectEqual(tries(bench.session), 1)
        await awaitFetches(2, bench)
        _ = await bench.session.prewarm()
        // Also where no answer has taught it.
        try await expectEqual(tries(bench.session, "/never-seen"), 1)
    }

    @Test func `a plan that was fetched later replaces what answers said`() async throws {
        let bench = try await bench(serving: nil)
        try await expectEqual(tries(bench.session), 2)
        await bench.gateway.change {
            $0.requirement.form = .lines([.method], headers: [])
            $0.plan = Self.plan(#""method""#)
        }
        bench.clock.advance(by: 31)
        _ = await bench.session.prewarm()
        try await expectEqual(tries(bench.session), 1)
    }

    @Test func `a plan out of a cache does not replace what an answer said`() async throws {
        let bench = try await bench(serving: Self.plan(#""method""#))
        await bench.gateway.change { $0.planFields = ["Age": "200"] }
        try await expectEqual(tries(bench.session), 3)
        bench.clock.advance(by: 3_600)
        _ = await bench.session.prewarm()
        await expectEqual(fetches(bench), 2)
        try await expectEqual(tries(bench.session), 1)
    }

    @Test func `an age that is no whole number does not decide when a plan is fetched again`()
        async throws
    {
        let bench = try await bench()
        await bench.gateway.change { $0.planFields = ["Age": "nan"] }
        try await expectEqual(tries(bench.session), 1)
        await expectEqual(bench.session.prewarm(), nil)
        await expectEqual(fetches(bench), 1)
        bench.clock.advance(by: 3_600)
        await expectEqual(bench.session.prewarm(), nil)
        await expectEqual(fetches(bench), 2)
    }

    @Test func `a plan that is older than the one at hand is passed over`() async throws {
        let bench = try await bench()
        await bench.gateway.change { $0.planFields = ["Date": "Sun, 06 Nov 1994 08:49:37 GMT"] }
        try await expectEqual(tries(bench.session), 1)
        await bench.gateway.change {
            $0.plan = Self.plan(#""method""#)
            $0.planFields = ["Date": "Sun, 06 Nov 1994 08:49:36 GMT"]
        }
        bench.clock.advance(by: 3_600)
        _ = await bench.session.prewarm()
        await expectEqual(fetches(bench), 2)
        try await expectEqual(tries(bench.session), 1)
    }

    @Test func `a plan of a gateway whose clock was ahead gives way to the next one`() async throws
    {
        let bench = try await bench(serving: Self.plan(#""method""#))
        await bench.gateway.change { $0.planFields = ["Date": "Sat, 15 Jan 2028 08:00:00 GMT"] }
        await expectEqual(bench.session.prewarm(), nil)
        await bench.gateway.change {
            $0.plan = Self.plan()
            $0.planFields = ["Date": "Fri, 15 Jan 2027 09:00:00 GMT"]
        }
        bench.clock.advance(by: 3_600)
        await expectEqual(bench.session.prewarm(), nil)
        await expectEqual(fetches(bench), 2)
        try await expectEqual(tries(bench.session), 1)
    }

    // MARK: What survives the process

    private func file() -> URL {
        FileManager.default.temporaryDirectory.appending(path: "routes-\(UUID().uuidString)")
    }

    /// The next process of an app.
    private func next(
        _ bench: Bench,
        _ file: URL,
        fetches: Bool = false
    ) throws -> PortcullisSession {
        try Bench.session(bench.service, bench.store, bench.clock, bench.gateway) {
            $0.defaultRequirement = nil
            $0.fetchesPlan = fetches
            $0.routeMemory = .file(file)
        }
    }

    @Test func `what answers taught survives the process, without paths or secrets`() async throws {
        let file = file()
        defer { try? FileManager.default.removeItem(at: file) }
        let bench = try await bench(serving: nil) {
            $0.fetchesPlan = false
            $0.routeMemory = .file(file)
        }
        try await expectEqual(tries(bench.session, "/users/alice"), 2)
        await bench.session.close()
        let text = try String(contentsOf: file, encoding: .utf8)
        for secret in ["alice", "users", "challenge-1", await bench.service.keysMade[0]] {
            #expect(!text.contains(secret))
        }
        try await expectEqual(tries(next(bench, file), "/users/alice"), 1)
        try await expectEqual(tries(next(bench, file), "/users/bob"), 2)
        // A rule that was turned off says nothing that would correct it.
        bench.clock.advance(by: 8 * 86_400)
        try await expectEqual(tries(next(bench, file), "/users/alice"), 2)
        await expectEqual(bench.counts, [1, 1])
    }

    @Test func `a fetched plan survives the process, and its tag`() async throws {
        let file = file()
        defer { try? FileManager.default.removeItem(at: file) }
        let bench = try await bench { $0.routeMemory = .file(file) }
        try await expectEqual(tries(bench.session), 1)
        await bench.session.close()
        // The gateway is asked beside the request, and says that nothing has changed.
        let second = try next(bench, file, fetches: true)
        try await expectEqual(tries(second, "/b"), 1)
        await awaitFetches(2, bench)
        await expectEqual(bench.gateway.planTags.last??.hasPrefix("\""), true)
        await second.close()
        // Its age counts from when it was confirmed.
        bench.clock.advance(by: 29 * 86_400)
        let third = try next(bench, file, fetches: true)
        try await expectEqual(tries(third, "/d"), 1)
        await awaitFetches(3, bench)
        _ = await third.prewarm()
        await third.close()
        bench.clock.advance(by: 2 * 86_400)
        await bench.gateway.change { $0.plan = nil }
        try await expectEqual(tries(next(bench, file, fetches: true), "/e"), 1)
        // An app that fetches none any more has its own.
        try await expectEqual(tries(next(bench, file), "/c"), 2)
    }

    @Test func `a file that is damaged, of another gateway or too long is passed over`()
        async throws
    {
        let file = file()
        defer { try? FileManager.default.removeItem(at: file) }
        let bench = try await bench { $0.routeMemory = .file(file) }
        try await expectEqual(tries(bench.session), 1)
        await bench.session.close()
        let whole = try Data(contentsOf: file)
        await bench.gateway.change { $0.plan = nil }
        let text = String(decoding: whole, as: UTF8.self)
        let damaged = stride(from: 0, to: whole.count - 1, by: whole.count / 7).map {
            whole.prefix($0)
        }
        let other = [
            Data(text.replacing("api.example", with: "other.example").utf8),
            Data(text.replacing("portcullis_routes\":1", with: "portcullis_routes\":2").utf8),
            Data(repeating: UInt8(ascii: " "), count: 8 << 20) + whole,
            Data(repeating: 0, count: 100),
        ]
        for content in damaged + other {
            try Data(content).write(to: file)
            let session = try next(bench, file, fetches: true)
            let path = "/\(UUID().uuidString.prefix(4))x"
            try await expectEqual(tries(session, path), 2)
            await session.close()
        }
        // A file that can't be there is none.
        let session = try next(bench, URL(filePath: "/dev/null/routes"))
        try await expectEqual(tries(session, "/last"), 2)
        await session.close()
        await expectEqual(bench.counts, [1, 1])
    }
}
