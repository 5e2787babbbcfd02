import Expectations
import Foundation
import RequestBinding
import Testing

@testable import PortcullisClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Routes that sign `cookie`, over URLSession as it really is: what is signed is what is sent.
@Suite struct CookieTests {
    /// A transport that notes what was signed, before URLSession sees it.
    private struct NotingTransport: HTTPTransport {
        let transport: URLSessionTransport
        let signed = Guarded<[String?]>([])

        func prepared(_ request: URLRequest) -> URLRequest { transport.prepared(request) }
        func cookies(for request: URLRequest) -> String? { transport.cookies(for: request) }
        func keepCookies(of response: HTTPURLResponse, to request: URLRequest) {
            transport.keepCookies(of: response, to: request)
        }

        func send(_ request: URLRequest, content: RequestContent) async throws -> TransportAnswer {
            if request.url?.path.contains("well-known") != true {
                signed.withLock { $0.append(request.value(forHTTPHeaderField: "Cookie")) }
            }
            return try await transport.send(request, content: content)
        }
    }

    private let jar = URLSessionConfiguration.ephemeral

    /// A server that gives a challenge, takes any key, and sets another cookie with each answer.
    private func server() throws -> LoopbackServer {
        try LoopbackServer { request in
            var fields: [String] = []
            var content = Data("{}".utf8)
            if request.target.hasSuffix("/challenges") {
                let text = UUID().uuidString
                content = Data("{\"challenges\":[\"\(text)\"],\"expires_in\":300}".utf8)
            } else if request.target.hasSuffix("/keys") {
                content = Data("{\"key_id\":\"\"}".utf8)
                let length = ["Content-Length: \(content.count)"]
                return [LoopbackServer.head("201 Created", length), content]
            } else if request.target == "/away" {
                fields = ["Location: /there", "Set-Cookie: way=taken; Path=/"]
                let head = LoopbackServer.head("307 Away", fields + ["Content-Length: 2"])
                return [head, content]
            } else {
                fields = ["Set-Cookie: seen=\(request.target.dropFirst()); Path=/"]
            }
            fields.append("Content-Length: \(content.count)")
            return [LoopbackServer.head("200 OK", fields), content]
        }
    }

    private func session(
        _ server: LoopbackServer,
        _ transport: any HTTPTransport
    ) throws -> PortcullisSession {
        var configuration = PortcullisConfiguration(gateway: try Bench.url(server.url))
        configuration.defaultRequirement = SigningRequirement(
            form: .lines(.all, headers: ["cookie"]),
            counter: .window(64)
        )
        // Beside other load, no wait may end before its time.
        configuration.limits.proofWait = .seconds(50)
        configuration.limits.enrolmentWait = .seconds(50)
        configuration.limits.challengeWait = .seconds(50)
        return PortcullisSession(
            configuration,
            service: FakeService(),
            store: MemoryEnrolmentStore(),
            transport: transport
        )
    }

    private func sent(_ server: LoopbackServer) -> [String?] {
        server.seen.filter { !$0.target.contains("well-known") }.map { $0.value("Cookie") }
    }

    @Test func `the jar's cookies are signed, sent, and kept from answers`() async throws {
        let server = try server()
        let transport = NotingTransport(transport: URLSessionTransport(configuration: jar))
        let session = try session(server, transport)
        for path in ["/login", "/a", "/away"] {
            let (_, answer) = try await session.data(
                for: URLRequest(url: try Bench.url(server.url + path))
            )
            guard case .assertion = answer.proof else { return #expect(Bool(false), "\(answer)") }
        }
        let all = sent(server)
        expectEqual(all[..<3], [nil, "seen=login", "seen=a"])
        // At the target of a redirect, with what the redirect has set.
        let last = Set((all[3] ?? "").components(separatedBy: "; "))
        expectEqual(last, ["seen=a", "way=taken"])
        let signed = transport.signed.withLock { $0 }
        expectEqual(signed, all)
    }

    @Test func `a cookie that the caller wrote is the one that is signed and sent`() async throws {
        let server = try server()
        let transport = NotingTransport(transport: URLSessionTransport(configuration: jar))
        let session = try session(server, transport)
        var request = URLRequest(url: try Bench.url(server.url + "/login"))
        _ = try await session.data(for: request)
        request.setValue("own=1", forHTTPHeaderField: "Cookie")
        _ = try await session.data(for: request)
        request.setValue(nil, forHTTPHeaderField: "Cookie")
        request.httpShouldHandleCookies = false
        _ = try await session.data(for: request)
        expectEqual(sent(server), [nil, "own=1", nil])
        expectEqual(transport.signed.withLock { $0 }, [nil, "own=1", nil])
    }

    @Test func `a request that something else sends has the jar's cookies, and takes no others`()
        async throws
    {
        let server = try server()
        let session = try session(server, URLSessionTransport(configuration: jar))
        let login = URLRequest(url: try Bench.url(server.url + "/login"))
        _ = try await session.data(for: login)
        let signed = try await session.sign(URLRequest(url: try Bench.url(server.url + "/a")))
        expectEqual(signed.request.value(forHTTPHeaderField: "Cookie"), "seen=login")
        #expect(!signed.request.httpShouldHandleCookies)
        let other = URLSessionConfiguration.ephemeral
        #if canImport(FoundationNetworking)
            // It would put the cookies of its own storage in their place.
            other.httpCookieStorage = nil
        #endif
        let sender = URLSession(configuration: other)
        defer { sender.finishTasksAndInvalidate() }
        let (_, answer) = try await sender.data(for: signed.request)
        expectEqual(sent(server).last, "seen=login")
        let response = try #require(answer as? HTTPURLResponse)
        // What the answer sets is kept where the next request gets it from.
        _ = try await session.signAgain(signed, after: response)
        _ = try await session.data(for: login)
        expectEqual(sent(server).last, "seen=a")
    }
}
