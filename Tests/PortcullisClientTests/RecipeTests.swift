import AlamofireStandIn
import ApolloStandIn
import Expectations
import Foundation
import HTTPTypes
import OpenAPIRuntimeStandIn
import Testing

@testable import ClientRecipes
@testable import PortcullisClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The recipes for other libraries, sending through stand-ins of these.
@Suite struct RecipeTests {
    /// What sends, with a bench whose gateway answers it.
    enum Library: CaseIterable {
        case alamofire, apollo, transport, middleware

        /// Sends one request, and returns the status that its caller sees.
        func send(
            _ target: String,
            _ content: Data? = nil,
            by bench: Bench
        ) async throws -> Int {
            var request = try Bench.request(target, content == nil ? "GET" : "PUT")
            request.httpBody = content
            switch self {
            case .alamofire:
                let api = AlamofireBench(bench).api
                return await api.request(request).validate().serializingData().response
                    .response?.statusCode ?? 0
            case .apollo:
                let gateway = bench.gateway
                let chain = InterceptorChain([
                    ResponseCodeInterceptor(), ApolloSigning(session: bench.session),
                ]) { try await gateway.answer($0) }
                do {
                    return try await chain.data(for: request).1.statusCode
                } catch let error as ResponseCodeInterceptor.ResponseCodeError {
                    return error.response.statusCode
                }
            case .transport:
                return try await RecipeTests.call(
                    request,
                    PortcullisTransport(session: bench.session)
                )
            case .middleware:
                return try await RecipeTests.call(
                    request,
                    GatewayTransport(gateway: bench.gateway),
                    [PortcullisMiddleware(session: bench.session)]
                )
            }
        }
    }

    /// Another library's transport.
    struct GatewayTransport: ClientTransport {
        let gateway: FakeGateway

        func send(
            _ request: HTTPRequest,
            body: HTTPBody?,
            baseURL: URL,
            operationID: String
        ) async throws -> (HTTPTypes.HTTPResponse, HTTPBody?) {
            var made = try PortcullisTransport.urlRequest(request, at: baseURL)
            if let body { made.httpBody = try await Data(collecting: body, upTo: .max) }
            let (data, answer) = try await gateway.answer(made)
            var response = HTTPTypes.HTTPResponse(status: .init(code: answer.statusCode))
            for case (let name as String, let value as String) in answer.allHeaderFields {
                if let name = HTTPField.Name(name) { response.headerFields[name] = value }
            }
            return (response, HTTPBody(data))
        }
    }

    private static func call(
        _ request: URLRequest,
        _ transport: any ClientTransport,
        _ middlewares: [any ClientMiddleware] = []
    ) async throws -> Int {
        let shop = ShopClient(
            serverURL: try Bench.url(FakeGateway.origin),
            transport: transport,
            middlewares: middlewares
        )
        return try await shop.call(request)
    }

    private func busy(_ seconds: String) -> FakeGateway.Reply {
        var busy = FakeGateway.problem(503, "store-unavailable", next: "retry-later")
        busy.fields["App-Attest-Error"] = "store-unavailable;next=retry-later"
        busy.fields["Retry-After"] = seconds
        return busy
    }

    @Test(arguments: Library.allCases)
    func `a request enrols, is signed and passes`(library: Library) async throws {
        let bench = try Bench()
        try await expectEqual(library.send("/a?b=c%20d", by: bench), 200)
        try await expectEqual(library.send("/a", Data("lamp".utf8), by: bench), 200)
        await expectEqual(bench.verdicts, ["pass", "pass"])
        await expectEqual(bench.gateway.seen.last?.content, Data("lamp".utf8))
        await expectEqual(bench.counts, [1, 1])
    }

    @Test(arguments: Library.allCases)
    func `an answer that asks for a proof teaches the route, and the request goes again`(
        library: Library
    ) async throws {
        let bench = try Bench { $0.defaultRequirement = nil }
        try await expectEqual(library.send("/a", Data("lamp".utf8), by: bench), 200)
        try await expectEqual(library.send("/a", Data("desk".utf8), by: bench), 200)
        await expectEqual(bench.verdicts, ["assertion-missing", "pass", "pass"])
        await expectEqual(bench.gateway.seen.last?.content, Data("desk".utf8))
    }

    @Test(arguments: Library.allCases)
    func `a key that the gateway has forgotten is enrolled anew`(library: Library) async throws {
        let bench = try Bench()
        try await expectEqual(library.send("/a", by: bench), 200)
        await bench.gateway.wipe()
        try await expectEqual(library.send("/a", by: bench), 200)
        await expectEqual(bench.verdicts.last, "pass")
        await expectEqual(bench.counts, [2, 2])
    }

    @Test(.timeLimit(.minutes(1)), arguments: Library.allCases)
    func `a busy gateway is asked again after its Retry-After`(library: Library) async throws {
        let bench = try Bench()
        let busy = busy("2")
        await bench.gateway.change { $0.busy["/a"] = [busy] }
        async let status = library.send("/a", by: bench)
        await bench.clock.isAwaited(bench.clock.now.addingTimeInterval(2.5))
        bench.clock.advance(by: 2.5)
        try await expectEqual(status, 200)
        await expectEqual(bench.verdicts, ["busy", "pass"])
    }

    @Test(arguments: Library.allCases)
    func `a refusal that nothing mends is the caller's`(library: Library) async throws {
        let bench = try Bench()
        var refusal = FakeGateway.problem(403, "build-refused", next: "none")
        refusal.fields["App-Attest-Error"] = "build-refused;next=none"
        let reply = refusal
        await bench.gateway.change { $0.busy["/a"] = [reply] }
        try await expectEqual(library.send("/a", by: bench), 403)
        await expectEqual(bench.verdicts, ["busy"])
    }

    @Test(arguments: Library.allCases)
    func `a good answer brings the next challenge`(library: Library) async throws {
        let bench = try Bench()
        try await expectEqual(library.send("/a", by: bench), 200)
        let calls = await bench.gateway.calls.count
        // The gateway gives eight challenges at once: without those of answers it is asked eight
        // times more.
        for _ in 0..<64 { try await expectEqual(library.send("/a", by: bench), 200) }
        // Alamofire tells of an answer after its caller has it. A request that goes before that
        // takes one challenge more from the stock, and an empty stock asks the gateway.
        let late = library == .alamofire ? 4 : 0
        #expect(await bench.gateway.calls.count <= calls + late)
    }

    // MARK: Alamofire

    /// A session of Alamofire's, as an app makes it.
    struct AlamofireBench {
        let signing: AlamofireSigning
        let api: Session

        init(_ bench: Bench, interceptor: ((AlamofireSigning) -> Interceptor)? = nil) {
            let signing = AlamofireSigning(bench.session)
            let gateway = bench.gateway
            self.signing = signing
            api = Session(
                sender: { request, uploadable in
                    switch uploadable {
                    case .data(let data): try await gateway.answer(request, .data(data))
                    case .file(let file): try await gateway.answer(request, .file(file))
                    case nil: try await gateway.answer(request)
                    }
                },
                interceptor: interceptor?(signing) ?? signing,
                redirectHandler: Redirector.doNotFollow,
                eventMonitors: [signing]
            )
        }
    }

    @Test(arguments: ["stream", "data", "file"])
    func `Alamofire's content of each kind is what was signed, also the second time`(
        kind: String
    ) async throws {
        let bench = try Bench { $0.defaultRequirement = nil }
        let alamofire = AlamofireBench(bench)
        let content = Data(repeating: 0x61, count: 300_000)
        let file = FileManager.default.temporaryDirectory
            .appending(path: "portcullis-test-\(UUID().uuidString)")
        try content.write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        var request = try Bench.request("/a", "PUT")
        let sent: DataRequest
        switch kind {
        case "data":
            sent = alamofire.api.upload(
                content,
                with: request,
                interceptor: alamofire.signing.uploading(.data(content))
            )
        case "file":
            sent = alamofire.api.upload(
                file,
                with: request,
                interceptor: alamofire.signing.uploading(.file(file))
            )
        default:
            request.httpBodyStream = InputStream(data: content)
            sent = alamofire.api.request(request)
        }
        let response = await sent.validate().serializingData().response
        expectEqual(response.response?.statusCode, 200)
        await expectEqual(bench.verdicts, ["assertion-missing", "pass"])
        for seen in await bench.gateway.seen { expectEqual(seen.content, content) }
    }

    @Test func `a failure of the network that another retrier has tried again is signed anew`()
        async throws
    {
        struct Retry: RequestInterceptor {
            func retry(
                _ request: Request,
                for session: Session,
                dueTo error: any Error,
                completion: @escaping @Sendable (RetryResult) -> Void
            ) {
                completion(request.retryCount == 0 ? .retry : .doNotRetry)
            }
        }
        let bench = try Bench()
        let alamofire = AlamofireBench(bench) {
            Interceptor(adapters: [$0], retriers: [$0, Retry()])
        }
        await bench.gateway.change { $0.busy["/a"] = [FakeGateway.Reply(status: 502)] }
        let request = alamofire.api.request(try Bench.request("/a"))
        let response = await request.validate().serializingData().response
        expectEqual(response.response?.statusCode, 200)
        let proofs = await bench.gateway.seen.map {
            $0.request.value(forHTTPHeaderField: "App-Attest-Assertion")
        }
        #expect(proofs.count == 2 && Set(proofs).count == 2)
    }

    @Test func `without validation the answer is the caller's, and learned from at its end`()
        async throws
    {
        let bench = try Bench { $0.defaultRequirement = nil }
        let alamofire = AlamofireBench(bench)
        let events = bench.session.events
        let request = alamofire.api.request(try Bench.request("/a"))
        let response = await request.serializingData().response
        expectEqual(response.response?.statusCode, 401)
        for await case .routeLearned in events { break }
        try await expectEqual(Library.alamofire.send("/a", by: bench), 200)
        await expectEqual(bench.verdicts, ["assertion-missing", "pass"])
        // The refused one was not signed a second time.
        await expectEqual(bench.service.assertions.count, 1)
    }

    // MARK: Generated clients

    @Test(arguments: [10, 300_000, 3_000_000])
    func `content that comes in pieces is read once and sent as often as need be`(
        count: Int
    ) async throws {
        let bench = try Bench { $0.defaultRequirement = nil }
        let piece = Data(repeating: 0x61, count: count / 10)
        let pieces = AsyncStream<Data> { stream in
            for _ in 0..<10 { stream.yield(piece) }
            stream.finish()
        }
        let shop = ShopClient(
            serverURL: try Bench.url(FakeGateway.origin + "/"),
            transport: PortcullisTransport(session: bench.session)
        )
        let body = HTTPBody(pieces, length: .unknown, iterationBehavior: .single)
        try await expectEqual(shop.put("/a", body), 200)
        await expectEqual(bench.verdicts, ["assertion-missing", "pass"])
        for seen in await bench.gateway.seen { expectEqual(seen.content.count, count) }
    }

    @Test func `content of a middleware beyond its limit fails, and nothing is sent`()
        async throws
    {
        let bench = try Bench()
        let shop = ShopClient(
            serverURL: try Bench.url(FakeGateway.origin),
            transport: GatewayTransport(gateway: bench.gateway),
            middlewares: [PortcullisMiddleware(session: bench.session, contentBytesMax: 3)]
        )
        await #expect(throws: ClientError.self) { try await shop.put("/a", HTTPBody("lamp")) }
        #expect(await bench.gateway.seen.isEmpty)
    }

    @Test func `content in pieces longer than the limit is not sent`() async throws {
        let bench = try Bench { $0.limits.spooledBytes = 1000 }
        let pieces = AsyncStream<Data> { stream in
            for _ in 0..<101 { stream.yield(Data(count: 10)) }
            stream.finish()
        }
        await #expect(throws: PortcullisError.contentTooLarge) {
            _ = try await bench.session.bytes(for: Bench.request("/a", "PUT"), content: pieces)
        }
        #expect(await bench.gateway.seen.isEmpty)
    }
}
