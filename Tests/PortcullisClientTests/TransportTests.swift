import Expectations
import Foundation
import LoopbackKit
import Testing

@testable import PortcullisClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// URLSession as it really is, over loopback.
@Suite struct TransportTests {
    private func request(_ server: LoopbackServer, _ path: String = "/") throws -> URLRequest {
        URLRequest(url: try Bench.url(server.url + path))
    }

    // MARK: What is sent is what was signed

    @Test(arguments: [
        ("", "/"), ("/", "/"), ("?", "/"), ("?x=1", "/?x=1"), ("/a?", "/a"), ("/a#f", "/a"),
        ("/a?b#c?d", "/a?b"), ("/a/../b", "/b"), ("/a/./b/.", "/a/b/"), ("/a/..", "/"),
        ("/../../a", "/a"), ("/a//b", "/a//b"), ("/a/b/../../../c/", "/c/"),
        ("/%e4%b8%ad", "/%e4%b8%ad"), ("/%E4", "/%E4"), ("/x%2fy", "/x%2fy"),
        ("/%2e%2e/a", "/%2e%2e/a"), ("/a%zz", "/a%25zz"), ("/ü", "/%C3%BC"), ("/a b", "/a%20b"),
        ("/a?q=[1]&r={}|^`\"<>", "/a?q=%5B1%5D&r=%7B%7D%7C%5E%60%22%3C%3E"),
        ("/~;=:@!$&'()*+,-._", "/~;=:@!$&'()*+,-._"), ("/a?b=c?d/../e", "/a?b=c?d/../e"),
        ("/a\\b", "/a%5Cb"), ("/a?%7e=%41", "/a?%7e=%41"), ("/a;b=c/..;d", "/a;b=c/..;d"),
    ])
    func `the target that is signed is the one on the wire`(
        path: String,
        target: String
    ) async throws {
        let server = try LoopbackServer("200 OK")
        let canonical = try #require(CanonicalRequest(request(server, path)))
        expectEqual(canonical.target, target)
        let transport = URLSessionTransport(configuration: .ephemeral)
        _ = try await transport.send(canonical.request, content: .none)
        expectEqual(server.seen.map(\.target), [target])
    }

    @Test(arguments: [
        ("get", "GET"), ("pOst", "POST"), ("PATCH", "PATCH"), ("PROPFIND", "PROPFIND"),
    ])
    func `the method that is signed is the one on the wire`(
        method: String,
        sent: String
    ) async throws {
        let server = try LoopbackServer("200 OK")
        var request = try request(server)
        request.httpMethod = method
        let canonical = try #require(CanonicalRequest(request))
        expectEqual(canonical.method, sent)
        let transport = URLSessionTransport(configuration: .ephemeral)
        _ = try await transport.send(canonical.request, content: .none)
        #expect(server.seen[0].head[0].hasPrefix(sent + " "))
    }

    @Test(arguments: ["127.0.0.1", "localhost", "LocalHost", "user:word@127.0.0.1"])
    func `the host that is signed is the one on the wire`(host: String) async throws {
        let server = try LoopbackServer("200 OK")
        let url = try Bench.url("http://\(host):\(server.port)/")
        let canonical = try #require(CanonicalRequest(URLRequest(url: url)))
        let transport = URLSessionTransport(configuration: .ephemeral)
        _ = try await transport.send(canonical.request, content: .none)
        expectEqual(
            server.seen.map { $0.value("Host") },
            [CanonicalRequest.host(canonical.request)]
        )
    }

    @Test(arguments: [
        ("https://api.example.com/a:1", "api.example.com"),
        ("https://api.example.com:443/", "api.example.com"),
        ("https://api.example.com:80", "api.example.com:80"),
        ("http://api.example.com:80/?:81", "api.example.com"),
        ("http://me@api.example.com:8080/", "api.example.com:8080"),
        ("https://[::1]/", "[::1]"), ("https://[::1]:8443/", "[::1]:8443"),
        ("https://API.example.com./", "api.example.com."),
    ])
    func `a port is signed with the host where it is not the scheme's own`(
        text: String,
        host: String
    ) throws {
        let canonical = CanonicalRequest(URLRequest(url: try Bench.url(text)))
        expectEqual(CanonicalRequest.host(try #require(canonical).request), host)
    }

    @Test func `a WebSocket belongs to the server that answers its handshake`() throws {
        let secure = try Bench.request("/chat?a=b")
        var socket = secure
        for (text, origin) in [
            ("wss://api.example.com/chat?a=b", "https://api.example.com"),
            ("WSS://API.example.com:443/chat?a=b", "https://api.example.com"),
            ("ws://api.example.com/chat?a=b", "http://api.example.com"),
        ] {
            socket.url = try Bench.url(text)
            #expect(CanonicalRequest(socket) == nil)
            let handshake = try #require(CanonicalRequest(socket, isHandshake: true))
            expectEqual(handshake.target, "/chat?a=b")
            #expect(
                CanonicalRequest.Origin(handshake.url)
                    == CanonicalRequest.Origin(try Bench.url(origin))
            )
        }
        socket.httpMethod = "POST"
        #expect(CanonicalRequest(socket, isHandshake: true) == nil)
    }

    @Test(arguments: ["ftp://h/", "file:///a", "data:,a", "https:///a", "mailto:a@b"])
    func `a URL that is none of HTTP is refused`(text: String) throws {
        #expect(CanonicalRequest(URLRequest(url: try Bench.url(text))) == nil)
    }

    @Test func `a host in any spelling is the same origin`() throws {
        func origin(_ text: String) throws -> CanonicalRequest.Origin? {
            CanonicalRequest.Origin(try Bench.url(text))
        }
        try expectEqual(
            origin("https://münchen.example"),
            origin("HTTPS://xn--mnchen-3ya.example:443")
        )
        try expectEqual(origin("https://h.example./"), origin("https://H.example/a"))
        try expectEqual(origin("https://[0:0::1]/"), origin("https://[::1]:443/"))
        #expect(try origin("http://h.example") != origin("https://h.example"))
        #expect(try origin("https://h.example:444") != origin("https://h.example"))
    }

    @Test(arguments: [RequestContent.none, .data(Data("abc".utf8))])
    func `fields that are signed are on the wire as they were signed`(
        content: RequestContent
    ) async throws {
        let server = try LoopbackServer("200 OK")
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpAdditionalHeaders = ["X-Extra": "more"]
        let transport = URLSessionTransport(configuration: configuration)
        var request = transport.prepared(try request(server))
        request.httpMethod = "POST"
        let names = [
            "content-type", "accept", "accept-language", "accept-encoding", "user-agent", "x-extra",
        ]
        OwnFields.settle(names, in: &request, hasContent: content != .none)
        _ = try await transport.send(request, content: content)
        let sent = server.seen[0]
        for name in names { expectEqual(sent.value(name), request.value(forHTTPHeaderField: name)) }
        expectEqual(sent.value("x-extra"), "more")
    }

    // MARK: Content

    @Test func `content from memory and from a file arrives whole`() async throws {
        let server = try LoopbackServer("200 OK")
        let transport = URLSessionTransport(configuration: .ephemeral)
        let content = Data((0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7) })
        let file = try TemporaryFile()
        try file.append(content)
        try file.end()
        var request = try request(server)
        request.httpMethod = "PUT"
        _ = try await transport.send(request, content: .data(content))
        _ = try await transport.send(request, content: .file(file.url))
        expectEqual(server.seen.map(\.content), [content, content])
    }

    @Test func `a large file arrives whole`() async throws {
        let server = try LoopbackServer("200 OK")
        let file = try TemporaryFile()
        let piece = Data(repeating: 7, count: 1 << 20)
        for _ in 0..<96 { try file.append(piece) }
        try file.end()
        let content = try await ReplayableContent(file: file.url)
        var request = try request(server)
        request.httpMethod = "POST"
        let transport = URLSessionTransport(configuration: .ephemeral)
        _ = try await transport.send(request, content: content.content)
        expectEqual(server.seen[0].contentCount, 96 << 20)
    }

    @Test func `a stream's file goes with its request, and a stream too long is an error`()
        async throws
    {
        var request = URLRequest(url: try Bench.url("https://h/"))
        request.httpBodyStream = InputStream(data: Data(repeating: 1, count: 1000))
        var content: ReplayableContent? = try await ReplayableContent(
            of: request,
            spooledMax: 1000
        )
        guard case .file(let url) = content?.content else { return #expect(Bool(false)) }
        #expect(FileManager.default.fileExists(atPath: url.path))
        content = nil
        #expect(!FileManager.default.fileExists(atPath: url.path))
        request.httpBodyStream = InputStream(data: Data(repeating: 1, count: 1001))
        let long = request
        await #expect(throws: PortcullisError.contentTooLarge) {
            _ = try await ReplayableContent(of: long, spooledMax: 1000)
        }
        await #expect(throws: PortcullisError.contentUnreadable) {
            _ = try await ReplayableContent(file: URL(filePath: "/nonexistent"))
        }
    }

    // MARK: Answers

    @Test func `an answer is handed out as it comes`() async throws {
        let server = try LoopbackServer { _ in
            [LoopbackServer.head("200 OK", ["Content-Length: 6"]), Data("abc".utf8)]
                + [Data("def".utf8)]
        }
        let transport = URLSessionTransport(configuration: .ephemeral)
        let answer = try await transport.send(request(server), content: .none)
        try await expectEqual(answer.content.collected(atMost: 6), Data("abcdef".utf8))
    }

    @Test func `a redirect is not followed by the transport`() async throws {
        let server = try LoopbackServer("307 Away", ["Location: /there"], content: Data("x".utf8))
        let transport = URLSessionTransport(configuration: .ephemeral)
        var request = try request(server)
        request.httpMethod = "POST"
        let answer = try await transport.send(request, content: .data(Data("abc".utf8)))
        expectEqual(answer.response.statusCode, 307)
        expectEqual(server.seen.count, 1)
    }

    /// Foundation on Linux ends the process where a redirect is answered that nobody awaits.
    @Test func `a request may be cancelled while its redirect comes`() async throws {
        let server = try LoopbackServer("307 Away", ["Location: /there"])
        let transport = URLSessionTransport(configuration: .ephemeral)
        let request = try request(server)
        for round in 0..<400 {
            let task = Task { try await transport.send(request, content: .none).response }
            while server.seen.count <= round { await Task.yield() }
            // From at once to well after the answer.
            for _ in 0..<round { await Task.yield() }
            task.cancel()
            if let response = try? await task.value { expectEqual(response.statusCode, 307) }
        }
    }

    @Test(arguments: ["AppAttest error=\"x\", next=\"enrol\"", "Basic realm=\"a\"", "Odd"])
    func `a 401 of any kind comes back with its content`(field: String) async throws {
        let server = try LoopbackServer(
            "401 Unauthorized",
            ["WWW-Authenticate: \(field)"],
            content: Data("why".utf8)
        )
        let transport = URLSessionTransport(configuration: .ephemeral)
        let answer = try await transport.send(request(server), content: .none)
        expectEqual(answer.response.statusCode, 401)
        try await expectEqual(answer.content.collected(atMost: 3), Data("why".utf8))
    }

    @Test func `more than the limit is refused, in memory and on the way`() async throws {
        let server = try LoopbackServer("200 OK", content: Data(repeating: 0, count: 4 << 20))
        let transport = URLSessionTransport(configuration: .ephemeral)
        let answer = try await transport.send(request(server), content: .none)
        await #expect(throws: PortcullisError.answerTooLarge) {
            try await answer.content.collected(atMost: 1 << 20)
        }
    }

    @Test func `a cancelled task ends its request`() async throws {
        let server = try LoopbackServer { _ in [] }
        let transport = URLSessionTransport(configuration: .ephemeral)
        let request = try request(server)
        let task = Task { try await transport.send(request, content: .none) }
        while server.seen.isEmpty { await Task.yield() }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func `a server that can't be reached is the transport's error`() async throws {
        let port = try RefusingPort()
        let request = URLRequest(url: try Bench.url("http://\(port.address)/"))
        let transport = URLSessionTransport(configuration: .ephemeral)
        await #expect(throws: URLError.self) {
            _ = try await transport.send(request, content: .none)
        }
    }
}
