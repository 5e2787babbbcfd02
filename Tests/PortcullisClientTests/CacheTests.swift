import Expectations
import Foundation
import Testing

@testable import PortcullisClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What URLSession's cache holds of the gateway's words.
@Suite struct CacheTests {
    private static let cacheable = "Cache-Control: private, max-age=600"
    private static let next = "App-Attest-Next"

    private func configuration() -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.default
        configuration.urlCache = URLCache(
            memoryCapacity: 4 << 20,
            diskCapacity: 0,
            diskPath: nil
        )
        return configuration
    }

    private func now() -> String {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return "Date: " + formatter.string(from: Date())
    }

    private func read(
        _ transport: URLSessionTransport,
        _ request: URLRequest
    ) async throws -> TransportAnswer {
        let answer = try await transport.send(request, content: .none)
        _ = try await answer.content.collected(atMost: 100)
        return answer
    }

    @Test func `advice to enrol does not come out of the cache again`() async throws {
        let fields = [
            Self.cacheable, now(), "\(Self.next): enrol", "App-Attest-Challenge: AQ", "X-Own: 1",
        ]
        let server = try LoopbackServer("200 OK", fields, content: Data("fine".utf8))
        let configuration = configuration()
        let transport = URLSessionTransport(configuration: configuration)
        let request = URLRequest(url: try Bench.url(server.url + "/a"))
        let first = try await read(transport, request)
        expectEqual(first.response.value(forHTTPHeaderField: Self.next), "enrol")
        expectEqual(first.source, .network)
        // URLSession on Linux keeps nothing where it has a delegate. This is what the others do.
        let session = URLSession(configuration: .ephemeral)
        let delegate = TransportDelegate(nil)
        delegate.urlSession(
            session,
            dataTask: session.dataTask(with: request),
            willCacheResponse: CachedURLResponse(response: first.response, data: Data("old".utf8))
        ) { kept in
            guard let kept else { return }
            configuration.urlCache?.storeCachedResponse(kept, for: request)
        }
        session.invalidateAndCancel()
        let count = server.seen.count
        let again = try await read(URLSessionTransport(configuration: configuration), request)
        expectEqual(server.seen.count, count)
        expectEqual(again.response.value(forHTTPHeaderField: "X-Own"), "1")
        expectEqual(again.response.value(forHTTPHeaderField: Self.next), nil)
        expectEqual(again.response.value(forHTTPHeaderField: "App-Attest-Challenge"), nil)
    }

    @Test(arguments: [
        (200, next, "enrol"), (404, "App-Attest-Error", "key-unknown;next=enrol"),
    ])
    func `what another session has put into the cache is not taken for the gateway's word`(
        status: Int,
        name: String,
        old: String
    ) async throws {
        let server = try LoopbackServer(
            "200 OK",
            [Self.cacheable, now(), "\(name): other"],
            content: Data("new".utf8)
        )
        let configuration = configuration()
        let request = URLRequest(url: try Bench.url(server.url + "/a"))
        let cached = try #require(
            HTTPURLResponse(
                url: Bench.url(server.url + "/a"),
                statusCode: status,
                httpVersion: "HTTP/1.1",
                headerFields: [
                    "Cache-Control": "private, max-age=600", name: old,
                    "Date": String(now().dropFirst("Date: ".count)),
                ]
            )
        )
        configuration.urlCache?.storeCachedResponse(
            CachedURLResponse(response: cached, data: Data("old".utf8)),
            for: request
        )
        let transport = URLSessionTransport(configuration: configuration)
        let answer = try await read(transport, request)
        #expect(server.seen.isEmpty)
        expectEqual(answer.response.value(forHTTPHeaderField: name), old)
        expectEqual(answer.source, .cache)
        // It is forgotten, so that the next one is the gateway's.
        let second = try await read(transport, request)
        expectEqual(server.seen.count, 1)
        expectEqual(second.response.value(forHTTPHeaderField: name), "other")
        expectEqual(second.source, .network)
    }

    @Test(arguments: [
        (200, ["X-Own": "1"], ["X-Own"]), (200, [next: "enrol", "X-Own": "1"], ["X-Own"]),
        (200, ["App-Attest-Challenge": "AQ"], []), (403, ["App-Attest-Error": "a;next=none"], nil),
        (401, ["WWW-Authenticate": "Basic realm=\"a\""], ["WWW-Authenticate"]),
        (401, ["WWW-Authenticate": "AppAttest error=\"key-unknown\", next=\"enrol\""], nil),
    ])
    func `a cache keeps answers without what the gateway said in them`(
        status: Int,
        fields: [String: String],
        kept: [String]?
    ) throws {
        let response = try #require(
            HTTPURLResponse(
                url: Bench.url(FakeGateway.origin),
                statusCode: status,
                httpVersion: "HTTP/1.1",
                headerFields: fields
            )
        )
        let proposed = CachedURLResponse(response: response, data: Data("a".utf8))
        let answer = CachedAnswer.kept(proposed)
        let names = (answer?.response as? HTTPURLResponse)?.allHeaderFields.keys
            .compactMap { $0 as? String }
        expectEqual(names?.map { $0.lowercased() }.sorted(), kept?.map { $0.lowercased() }.sorted())
        expectEqual(answer.map(\.data), kept == nil ? nil : Data("a".utf8))
    }
}
