import Expectations
import Foundation
import RequestBinding
import Synchronization
import TestSupport
import Testing

@testable import PortcullisClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite struct SessionProofTests {
    // MARK: What a route signs

    @Test func `an unknown route goes without proof, and its 401 teaches what it signs`()
        async throws
    {
        let bench = try Bench { $0.defaultRequirement = nil }
        await bench.gateway.change {
            $0.requirement = SigningRequirement(
                form: .lines([.method, .target], headers: ["idempotency-key"]),
                challenge: .none
            )
        }
        var request = try Bench.request("/v1/orders", "POST")
        request.setValue("8e03978e", forHTTPHeaderField: "Idempotency-Key")
        request.httpBody = Data("{}".utf8)
        let first = try await bench.session.data(for: request).1
        let second = try await bench.session.data(for: request).1
        #expect((first.attempts, second.attempts) == (2, 1))
        await expectEqual(bench.verdicts, ["assertion-missing", "pass", "pass"])
    }

    @Test func `an observing rule teaches before it enforces`() async throws {
        let bench = try Bench { $0.defaultRequirement = nil }
        await bench.gateway.change { $0.enforces = false }
        for _ in 0..<2 { _ = try await bench.session.data(for: Bench.request("/a")) }
        // The second one begins to enrol the key, and does not wait for it.
        await expectEqual(bench.session.prewarm(), nil)
        _ = try await bench.session.data(for: Bench.request("/a"))
        await expectEqual(bench.verdicts.first, "assertion-missing")
        await expectEqual(bench.verdicts.last, "pass")
        await expectEqual(bench.counts, [1, 1])
    }

    @Test func `a key that an observing rule does not know is enrolled anew before it enforces`()
        async throws
    {
        let bench = try Bench()
        await bench.gateway.change { $0.enforces = false }
        _ = try await bench.session.data(for: Bench.request("/a"))
        await bench.gateway.wipe()
        _ = try await bench.session.data(for: Bench.request("/a"))
        await expectEqual(bench.session.prewarm(), nil)
        _ = try await bench.session.data(for: Bench.request("/a"))
        await expectEqual(bench.verdicts, ["pass", "key-unknown", "pass"])
        await expectEqual(bench.counts, [2, 2])
    }

    @Test func `a plan that is outdated is mended by one request without proof`() async throws {
        let bench = try Bench()
        await bench.gateway.change {
            $0.requirement = SigningRequirement(form: .lines([.method, .body], headers: []))
            $0.requirement.challenge = .none
        }
        let first = try await bench.session.data(for: Bench.request("/a")).1
        let second = try await bench.session.data(for: Bench.request("/a")).1
        #expect((first.statusCode, first.attempts, second.attempts) == (200, 3, 1))
        let expected = ["signature-mismatch", "assertion-missing", "pass", "pass"]
        await expectEqual(bench.verdicts, expected)
    }

    @Test(arguments: [SigningForm.content, .challenge])
    func `the other forms are signed`(form: SigningForm) async throws {
        let requirement = SigningRequirement(form: form)
        let bench = try Bench { $0.defaultRequirement = requirement }
        await bench.gateway.change { $0.requirement = requirement }
        var request = try Bench.request("/a", "POST")
        request.httpBody = Data("{\"a\":1}".utf8)
        try await expectEqual(bench.session.data(for: request).1.statusCode, 200)
    }

    @Test func `a route that asks for nothing costs nothing`() async throws {
        let bench = try Bench { $0.defaultRequirement = nil }
        let answer = try await bench.session.data(for: Bench.request("/free")).1
        expectEqual(answer.proof, .none(.routeUnknown))
        await expectEqual(bench.counts, [0, 0])
    }

    @Test func `a device that can't attest says so and is served where the rule observes`()
        async throws
    {
        let bench = try Bench(isSupported: false)
        await bench.gateway.change { $0.enforces = false }
        let answer = try await bench.session.data(for: Bench.request("/a")).1
        expectEqual(answer.proof, .none(.unsupported))
        expectEqual(answer.statusCode, 200)
        let sent = await bench.gateway.seen[0].request
        expectEqual(sent.value(forHTTPHeaderField: "App-Attest-Unsupported"), "1")
        expectEqual(sent.value(forHTTPHeaderField: "App-Attest-Challenge"), nil)
    }

    @Test func `a service that fails to sign is asked twice, then the request says so`()
        async throws
    {
        let bench = try Bench()
        await bench.gateway.change { $0.enforces = false }
        _ = try await bench.session.data(for: Bench.request("/a"))
        await bench.service.fail(asserting: [.invalidInput, .invalidInput, .unknownSystemFailure])
        let second = try await bench.session.data(for: Bench.request("/a")).1
        let third = try await bench.session.data(for: Bench.request("/a")).1
        expectEqual(second.proof, .none(.serviceFailed(.invalidInput)))
        #expect(third.proof.keyID != nil)
        await expectEqual(bench.counts, [1, 1])
    }

    @Test func `a key that the service signs nothing with is replaced after three requests, once`()
        async throws
    {
        let bench = try Bench()
        await bench.gateway.change { $0.enforces = false }
        _ = try await bench.session.data(for: Bench.request("/a"))
        // Each request asks twice.
        func fail(_ requests: Int) async throws {
            let errors = Array(repeating: AttestationServiceError.invalidInput, count: requests * 2)
            await bench.service.fail(asserting: errors)
            for _ in 0..<requests {
                let answer = try await bench.session.data(for: Bench.request("/a")).1
                expectEqual(answer.proof.keyID, nil)
            }
        }
        try await fail(2)
        await expectEqual(bench.counts, [1, 1])
        try await fail(1)
        // The next one enrols another key, and that is all for the day.
        try await fail(5)
        await expectEqual(bench.counts, [2, 2])
    }

    @Test func `a key does not inherit what the service refused another one`() async throws {
        let bench = try Bench()
        await bench.gateway.change { $0.enforces = false }
        func refuse(_ requests: Int) async throws {
            let errors = Array(repeating: AttestationServiceError.invalidInput, count: requests * 2)
            await bench.service.fail(asserting: errors)
            for _ in 0..<requests { _ = try await bench.session.data(for: Bench.request("/a")) }
        }
        _ = await bench.session.prewarm()
        try await refuse(2)
        await bench.session.reset()
        _ = await bench.session.prewarm()
        // The third in a row, but the first of this key.
        try await refuse(1)
        let answer = try await bench.session.data(for: Bench.request("/a")).1
        #expect(answer.proof == .assertion(keyID: await bench.service.keysMade[1]))
        await expectEqual(bench.counts, [2, 2])
    }

    @Test func `a service that never signs keeps a request for a limited time`() async throws {
        let gateway = FakeGateway()
        await gateway.change { $0.enforces = false }
        let clock = ManualClock()
        let service = SilentService()
        var configuration = PortcullisConfiguration(gateway: try Bench.url(FakeGateway.origin))
        configuration.defaultRequirement = SigningRequirement()
        configuration.clock = clock
        let session = PortcullisSession(
            configuration,
            service: service,
            store: MemoryEnrolmentStore(),
            transport: gateway
        )
        _ = await session.prewarm()
        async let answer = session.data(for: Bench.request("/a"))
        await service.isAsked()
        clock.advance(by: 11)
        try await expectEqual(answer.1.proof, .none(.serviceFailed(.serverUnavailable)))
    }

    // MARK: Who is believed

    @Test func `an origin's own 401 that says enrol is not obeyed`() async throws {
        let bench = try Bench()
        await bench.gateway.change {
            $0.origins["/login"] = FakeGateway.forgery(401, "key-unknown", next: "enrol")
        }
        let answer = try await bench.session.data(for: Bench.request("/login")).1
        expectEqual(answer.statusCode, 401)
        expectEqual(answer.refusal, nil)
        expectEqual(answer.attempts, 1)
        await expectEqual(bench.counts, [1, 1])
    }

    @Test func `another origin gets no proof and is not believed`() async throws {
        let bench = try Bench()
        await bench.gateway.change {
            $0.origins["/x"] = FakeGateway.Reply(
                status: 401,
                fields: ["WWW-Authenticate": "AppAttest error=\"key-unknown\", next=\"enrol\""]
            )
        }
        _ = try await bench.session.data(for: Bench.request("/a"))
        let url = try Bench.url("https://evil.example/x")
        let answer = try await bench.session.data(for: URLRequest(url: url)).1
        expectEqual(answer.proof, .none(.otherOrigin))
        await expectEqual(bench.counts, [1, 1])
        let sent = try #require(await bench.gateway.seen.last).request
        #expect(sent.allHTTPHeaderFields?.keys.contains { $0.hasPrefix("App-Attest") } != true)
    }

    // MARK: Redirects

    @Test func `a redirect to the same origin is signed anew, with its content where that stays`()
        async throws
    {
        let bench = try Bench()
        await bench.gateway.change {
            $0.origins["/old"] = FakeGateway.Reply(status: 307, fields: ["Location": "/new?x=1"])
            $0.origins["/see"] = FakeGateway.Reply(status: 303, fields: ["Location": "/other"])
        }
        var request = try Bench.request("/old", "POST")
        request.httpBody = Data("content".utf8)
        try await expectEqual(bench.session.data(for: request).1.statusCode, 200)
        request.url = try Bench.url(FakeGateway.origin + "/see")
        try await expectEqual(bench.session.data(for: request).1.statusCode, 200)
        let seen = await bench.gateway.seen
        expectEqual(seen.map(\.verdict), ["pass", "pass", "pass", "pass"])
        expectEqual(seen.map(\.request.httpMethod), ["POST", "POST", "POST", "GET"])
        expectEqual(seen.map(\.content.count), [7, 7, 7, 0])
    }

    @Test func `a redirect that comes with advice teaches its route`() async throws {
        let bench = try Bench { $0.defaultRequirement = nil }
        await bench.gateway.change {
            $0.enforces = false
            $0.origins["/see"] = FakeGateway.Reply(status: 303, fields: ["Location": "/other"])
        }
        await expectEqual(bench.session.prewarm(), nil)
        for _ in 0..<2 { _ = try await bench.session.data(for: Bench.request("/see", "POST")) }
        let missing = "assertion-missing"
        await expectEqual(bench.verdicts, [missing, missing, "pass", "pass"])
    }

    @Test func `a redirect elsewhere carries no proof and no credentials`() async throws {
        let bench = try Bench()
        await bench.gateway.change {
            let fields = ["Location": "https://cdn.example/file"]
            $0.origins["/file"] = FakeGateway.Reply(status: 302, fields: fields)
        }
        var request = try Bench.request("/file")
        request.setValue("Bearer secret", forHTTPHeaderField: "Authorization")
        request.setValue("left", forHTTPHeaderField: "App-Attest-Assertion")
        _ = try await bench.session.data(for: request)
        let sent = try #require(await bench.gateway.seen.last).request
        expectEqual(sent.url?.host, "cdn.example")
        let names = sent.allHTTPHeaderFields?.keys.sorted() ?? []
        expectEqual(names.filter { $0.hasPrefix("App-Attest") || $0 == "Authorization" }, [])
    }

    @Test func `a redirect from https to http is the caller's, and a circle ends`() async throws {
        let bench = try Bench()
        await bench.gateway.change {
            let fields = ["Location": "http://api.example.com/a"]
            $0.origins["/down"] = FakeGateway.Reply(status: 301, fields: fields)
            $0.origins["/loop"] = FakeGateway.Reply(status: 302, fields: ["Location": "/loop"])
        }
        try await expectEqual(bench.session.data(for: Bench.request("/down")).1.statusCode, 301)
        let circle = try await bench.session.data(for: Bench.request("/loop")).1
        expectEqual(circle.statusCode, 302)
        expectEqual(circle.attempts, 11)
    }

    // MARK: Content and fields

    @Test func `a body in memory, a stream and a file are all sent and signed`() async throws {
        let bench = try Bench()
        let content = Data((0..<700_000).map { UInt8(truncatingIfNeeded: $0) })
        let file = FileManager.default.temporaryDirectory
            .appending(path: "portcullis-test-\(UUID().uuidString)")
        try content.write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        var request = try Bench.request("/a", "PUT")
        request.httpBody = content
        _ = try await bench.session.data(for: request)
        request.httpBodyStream = InputStream(data: content)
        _ = try await bench.session.data(for: request)
        _ = try await bench.session.upload(for: Bench.request("/a", "PUT"), fromFile: file)
        let seen = await bench.gateway.seen
        expectEqual(seen.map(\.verdict), ["pass", "pass", "pass"])
        #expect(seen.allSatisfy { $0.content == content })
    }

    @Test func `a content type that URLSession would add is there before it is signed`()
        async throws
    {
        let requirement = SigningRequirement(
            form: .lines(.all, headers: ["content-type", "accept-language", "x-none"])
        )
        let bench = try Bench { $0.defaultRequirement = requirement }
        await bench.gateway.change { $0.requirement = requirement }
        var request = try Bench.request("/a", "POST")
        request.httpBody = Data("a=1".utf8)
        try await expectEqual(bench.session.data(for: request).1.statusCode, 200)
        let sent = await bench.gateway.seen[0].request
        let type = sent.value(forHTTPHeaderField: "Content-Type")
        expectEqual(type, "application/x-www-form-urlencoded")
        #expect(sent.value(forHTTPHeaderField: "Accept-Language") != nil)
    }

    @Test func `proof fields that the caller left in a request are replaced`() async throws {
        let bench = try Bench()
        var request = try Bench.request("/a")
        request.setValue("old", forHTTPHeaderField: "App-Attest-Assertion")
        request.setValue("old", forHTTPHeaderField: "App-Attest-Session")
        try await expectEqual(bench.session.data(for: request).1.statusCode, 200)
        let sent = await bench.gateway.seen[0].request
        expectEqual(sent.value(forHTTPHeaderField: "App-Attest-Session"), nil)
    }

    // MARK: Challenges and sessions

    @Test func `challenges from before a restart cost one more try`() async throws {
        let bench = try Bench()
        _ = await bench.session.prewarm()
        await bench.gateway.restart()
        let answer = try await bench.session.data(for: Bench.request("/a")).1
        expectEqual(answer.attempts, 2)
        await expectEqual(bench.verdicts, ["challenge-unknown", "pass"])
    }

    @Test func `requests go by a session where the route accepts it, opened once`() async throws {
        let requirement = SigningRequirement(accepts: [.assertion, .session])
        let bench = try Bench { $0.defaultRequirement = requirement }
        await bench.gateway.change { $0.requirement = requirement }
        let session = bench.session
        try await withThrowingTaskGroup(of: ProvenResponse.self) { group in
            for number in 0..<100 {
                group.addTask { try await session.data(for: Bench.request("/\(number)")).1 }
            }
            for try await answer in group {
                expectEqual(answer.statusCode, 200)
                guard case .session = answer.proof else {
                    Issue.record("\(answer.proof)")
                    continue
                }
            }
        }
        await expectEqual(bench.gateway.calls.filter { $0 == "sessions" }.count, 1)
        await expectEqual(bench.counts, [1, 1])
    }

    @Test func `a session that is unknown after a restart is opened anew`() async throws {
        let requirement = SigningRequirement(accepts: [.assertion, .session])
        let bench = try Bench { $0.defaultRequirement = requirement }
        await bench.gateway.change { $0.requirement = requirement }
        _ = try await bench.session.data(for: Bench.request("/a"))
        await bench.gateway.restart()
        let second = try await bench.session.data(for: Bench.request("/a")).1
        let third = try await bench.session.data(for: Bench.request("/a")).1
        #expect((second.statusCode, third.statusCode, third.attempts) == (200, 200, 1))
        #expect(second.attempts <= 3)
        await expectEqual(bench.gateway.calls.filter { $0 == "sessions" }.count, 2)
    }

    @Test func `a session that an observing rule does not know is opened again`() async throws {
        let requirement = SigningRequirement(accepts: [.assertion, .session])
        let bench = try Bench { $0.defaultRequirement = requirement }
        await bench.gateway.change {
            $0.requirement = requirement
            $0.enforces = false
        }
        _ = try await bench.session.data(for: Bench.request("/a"))
        await bench.gateway.restart()
        for _ in 0..<3 { _ = try await bench.session.data(for: Bench.request("/a")) }
        await expectEqual(bench.verdicts, ["pass", "session-unknown", "pass", "pass"])
        // It is opened beside the requests, which do not wait for it.
        #expect(
            await eventually { await bench.gateway.calls.filter { $0 == "sessions" }.count == 2 }
        )
    }

    @Test func `a refused opening of a session is signed again with the challenge that came`()
        async throws
    {
        let requirement = SigningRequirement(accepts: [.assertion, .session])
        let bench = try Bench { $0.defaultRequirement = requirement }
        await bench.gateway.change {
            $0.requirement = requirement
            let field = "AppAttest error=\"challenge-unknown\", next=\"sign-again\""
            $0.troubles["sessions"] = [.init(status: 401, fields: ["WWW-Authenticate": field])]
        }
        _ = try await bench.session.data(for: Bench.request("/a"))
        await expectEqual(bench.verdicts, ["pass"])
        // One to enrol, one for four that sign.
        let calls = await bench.gateway.calls
        expectEqual(calls, ["challenges", "keys", "challenges", "sessions", "sessions"])
    }

    @Test func `a gateway without sessions is asked for one once`() async throws {
        let requirement = SigningRequirement(accepts: [.assertion, .session])
        let bench = try Bench { $0.defaultRequirement = requirement }
        await bench.gateway.change {
            $0.requirement = requirement
            $0.sessionsAreOffered = false
        }
        for _ in 0..<5 {
            let answer = try await bench.session.data(for: Bench.request("/a")).1
            #expect(answer.proof.keyID != nil)
        }
        await expectEqual(bench.gateway.calls.filter { $0 == "sessions" }.count, 1)
    }

    // MARK: Signing for others

    @Test func `a signed request can be sent by others, and signed again after a 401`()
        async throws
    {
        let bench = try Bench()
        var request = try Bench.request("/a", "POST")
        request.httpBody = Data("content".utf8)
        let signed = try await bench.session.sign(request)
        expectEqual(signed.request.httpBody, Data("content".utf8))
        #expect(signed.proof.keyID != nil)
        // The system sends it twice: the second time its proof is spent.
        var statuses: [Int] = []
        var last: HTTPURLResponse?
        for _ in 0..<2 {
            let body = RequestContent.data(signed.request.httpBody ?? Data())
            last = try await bench.gateway.send(signed.request, content: body).response
            statuses.append(last?.statusCode ?? 0)
        }
        expectEqual(statuses, [200, 401])
        let response = try #require(last)
        let again = try #require(try await bench.session.signAgain(signed, after: response))
        let body = RequestContent.data(again.request.httpBody ?? Data())
        let good = try await bench.gateway.send(again.request, content: body).response
        expectEqual(good.statusCode, 200)
        #expect(try await bench.session.signAgain(again, after: good) == nil)
    }

    @Test func `a file and a stream are signed for others`() async throws {
        let bench = try Bench()
        let content = Data(repeating: 3, count: 300_000)
        let file = FileManager.default.temporaryDirectory
            .appending(path: "portcullis-test-\(UUID().uuidString)")
        try content.write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let upload = try await bench.session.sign(Bench.request("/a", "PUT"), fromFile: file)
        #expect(upload.request.httpBody == nil && upload.request.httpBodyStream == nil)
        _ = try await bench.gateway.send(upload.request, content: .file(file))
        var request = try Bench.request("/a", "PUT")
        request.httpBodyStream = InputStream(data: content)
        let streamed = try await bench.session.sign(request)
        #expect(streamed.request.httpBodyStream != nil)
        _ = try await bench.gateway.send(streamed.request, content: .data(content))
        await expectEqual(bench.verdicts, ["pass", "pass"])
    }

    @Test func `what happens is told to all who listen, and a closed session proves nothing`()
        async throws
    {
        let bench = try Bench()
        let (one, other) = (bench.session.events, bench.session.events)
        _ = try await bench.session.data(for: Bench.request("/a"))
        await bench.session.close()
        let keyID = await bench.service.keysMade[0]
        let expected: [PortcullisEvent] = [
            .keyGenerated(keyID: keyID), .attestationRequested(keyID: keyID),
            .enrolled(keyID: keyID),
        ]
        for stream in [one, other] {
            await expectEqual(stream.reduce(into: []) { $0.append($1) }, expected)
        }
        // A stream that is asked for later ends at once.
        await expectEqual(bench.session.events.reduce(into: []) { $0.append($1) }, [])
        let answer = try await bench.session.data(for: Bench.request("/a")).1
        expectEqual(answer.proof, .none(.closed))
        // To sign again would not help.
        #expect((answer.statusCode, answer.attempts) == (401, 1))
    }

    @Test func `a closed session proves nothing where a rule of the plan takes sessions`()
        async throws
    {
        let plan = try SigningPlan(
            json: Data(
                #"""
                {"portcullis_plan":1,"rules":[{"name":"chat","sign":["method","target","body"],
                 "challenge":"none","counter":64,"accept":["assertion","session"]}]}
                """#.utf8
            )
        )
        let bench = try Bench {
            $0.defaultRequirement = nil
            $0.plan = plan
        }
        await bench.gateway.change {
            $0.requirement = SigningRequirement(
                form: .lines([.method, .target, .body], headers: []),
                challenge: .none,
                counter: .window(64),
                accepts: [.assertion, .session]
            )
        }
        let keyID = try await bench.session.data(for: Bench.request("/a")).1.proof.keyID
        #expect(keyID != nil)
        try await expectEqual(
            bench.session.data(for: Bench.request("/a")).1.proof,
            .session(keyID: keyID ?? "")
        )
        await bench.session.close()
        let calls = await bench.gateway.calls.count
        for _ in 0..<2 {
            let answer = try await bench.session.data(for: Bench.request("/a")).1
            expectEqual(answer.proof, .none(.closed))
        }
        await expectEqual(bench.gateway.calls.count, calls)
        let last = try #require(await bench.gateway.seen.last).request
        expectEqual(last.value(forHTTPHeaderField: "App-Attest-Session"), nil)
        expectEqual(last.value(forHTTPHeaderField: "App-Attest-Assertion"), nil)
    }
}

/// A service that makes and attests keys, and never answers when it is asked to sign.
private actor SilentService: AttestationService {
    nonisolated let isSupported = true
    private let service = FakeService()
    private var hasBeenAsked = false
    private var awaited: CheckedContinuation<Void, Never>?
    private static let unanswered = Mutex<[AsyncStream<Data>.Continuation]>([])

    func generateKey() async throws(AttestationServiceError) -> String {
        try await service.generateKey()
    }

    func attestKey(
        _ keyID: String,
        clientDataHash: Data
    ) async throws(AttestationServiceError) -> Data {
        try await service.attestKey(keyID, clientDataHash: clientDataHash)
    }

    func generateAssertion(_ keyID: String, clientDataHash: Data) async -> Data {
        hasBeenAsked = true
        awaited?.resume()
        awaited = nil
        // As long as the task is not cancelled, and nobody cancels it.
        let (stream, continuation) = AsyncStream.makeStream(of: Data.self)
        // Held from outside, so that no sanitizer takes the task for a leak.
        Self.unanswered.withLock { $0.append(continuation) }
        for await data in stream { return data }
        return Data()
    }

    func isAsked() async {
        guard !hasBeenAsked else { return }
        await withCheckedContinuation { awaited = $0 }
    }

    // MARK: The key beside a session

    @Test(arguments: [true, false, nil])
    func `a session's requests name the key where the gateway that opened it takes that`(
        accepts: Bool?
    ) async throws {
        let requirement = SigningRequirement(accepts: [.assertion, .session])
        let bench = try Bench { $0.defaultRequirement = requirement }
        await bench.gateway.change {
            $0.requirement = requirement
            $0.acceptsKeyID = accepts
            $0.refusesKeyID = accepts != true
        }
        for _ in 0..<2 { _ = try await bench.session.data(for: Bench.request("/a")) }
        await expectEqual(bench.verdicts, ["pass", "pass"])
        for seen in await bench.gateway.seen {
            let keyID = seen.request.value(forHTTPHeaderField: "App-Attest-Key-Id")
            #expect(seen.request.value(forHTTPHeaderField: "App-Attest-Session") != nil)
            expectEqual((keyID != nil), accepts == true)
        }
    }

    @Test func `an older gateway that takes no key beside a session gets an assertion`()
        async throws
    {
        let requirement = SigningRequirement(accepts: [.assertion, .session])
        let bench = try Bench { $0.defaultRequirement = requirement }
        await bench.gateway.change {
            $0.requirement = requirement
            $0.refusesKeyID = true
        }
        let answer = try await bench.session.data(for: Bench.request("/a")).1
        #expect((answer.statusCode, answer.attempts) == (200, 2))
        await expectEqual(bench.verdicts, ["assertion-malformed", "pass"])
    }
}
