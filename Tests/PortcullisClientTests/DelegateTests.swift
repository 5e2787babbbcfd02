import Expectations
import Foundation
import LoopbackKit
import Testing

@testable import PortcullisClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What an app's own delegate of a request hears.
@Suite struct DelegateTests {
    /// Writes down what it hears, and would follow every redirect and answer every challenge.
    private final class Listener: NSObject, URLSessionTaskDelegate {
        let heard = Guarded<[String]>([])

        private func note(_ text: String) { heard.withLock { $0.append(text) } }

        func urlSession(
            _ session: URLSession,
            task: URLSessionTask,
            willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest,
            completionHandler: @escaping @Sendable (URLRequest?) -> Void
        ) {
            note("redirect")
            completionHandler(request)
        }

        func urlSession(
            _ session: URLSession,
            task: URLSessionTask,
            didReceive challenge: URLAuthenticationChallenge,
            completionHandler:
                @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            note("challenge")
            let credential = URLCredential(user: "u", password: "p", persistence: .forSession)
            completionHandler(.useCredential, credential)
        }

        func urlSession(
            _ session: URLSession,
            task: URLSessionTask,
            didCompleteWithError error: (any Error)?
        ) {
            note(error == nil ? "complete" : "failed")
        }
    }

    private func request(_ server: LoopbackServer, _ path: String) throws -> URLRequest {
        var request = URLRequest(url: try Bench.url(server.url + path))
        request.httpMethod = "POST"
        return request
    }

    /// A session whose gateway is the server.
    private func session(_ server: LoopbackServer) throws -> PortcullisSession {
        PortcullisSession(
            PortcullisConfiguration(gateway: try Bench.url(server.url)),
            service: FakeService(),
            store: MemoryEnrolmentStore(),
            transport: URLSessionTransport(configuration: .ephemeral)
        )
    }

    private static func answer(_ head: String) -> [Data] {
        [Data("HTTP/1.1 \(head)\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".utf8)]
    }

    @Test(arguments: [false, true])
    func `progress counts what was sent, to the last byte`(isFile: Bool) async throws {
        let server = try LoopbackServer("200 OK")
        let session = try session(server)
        let content = Data(repeating: 7, count: 3 << 20)
        let amounts = Guarded<[TransferProgress.Amount]>([])
        let progress = TransferProgress { amount in amounts.withLock { $0.append(amount) } }
        if isFile {
            let file = FileManager.default.temporaryDirectory
                .appending(path: "progress-\(UUID().uuidString)")
            defer { try? FileManager.default.removeItem(at: file) }
            try content.write(to: file)
            _ = try await session.upload(
                for: request(server, "/"),
                fromFile: file,
                delegate: progress
            )
        } else {
            _ = try await session.upload(
                for: request(server, "/"),
                from: content,
                delegate: progress
            )
        }
        let seen = amounts.withLock(\.self)
        #expect(seen.count > 1)
        expectEqual(seen.map(\.sent), seen.map(\.sent).sorted())
        expectEqual(seen.last?.sent, 3 << 20)
        #expect(seen.allSatisfy { $0.total == 3 << 20 })
    }

    @Test func `redirects stay the client's, and each target's task is heard of`() async throws {
        let server = try LoopbackServer(
            { request in
                Self.answer(
                    request.target == "/from" ? "307 Temporary Redirect\r\nLocation: /to" : "200 OK"
                )
            }
        )
        let listener = Listener()
        let answer = try await session(server)
            .upload(for: request(server, "/from"), from: Data("a".utf8), delegate: listener).1
        expectEqual(answer.statusCode, 200)
        expectEqual(server.seen.map(\.target), ["/from", "/to"])
        let heard = listener.heard.withLock(\.self)
        expectEqual(Set(heard), ["complete"])
    }

    /// URLSession would send the request again by itself, with the same proof.
    @Test func `a challenge about a user is no delegate's, and its 401 is the answer`() async throws
    {
        let server = try LoopbackServer(
            { _ in Self.answer("401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"a\"") }
        )
        let listener = Listener()
        let answer = try await session(server)
            .data(for: request(server, "/"), delegate: listener).1
        expectEqual(answer.statusCode, 401)
        expectEqual(server.seen.count, 1)
        #expect(!listener.heard.withLock(\.self).contains("challenge"))
    }

    @Test func `a request that fails is heard of, and none is held after its end`() async throws {
        let server = try LoopbackServer({ _ in [Data("nonsense\r\n\r\n".utf8)] })
        weak var released: Listener?
        do {
            let listener = Listener()
            released = listener
            await #expect(throws: (any Error).self) {
                try await session(server).data(for: request(server, "/"), delegate: listener)
            }
            expectEqual(listener.heard.withLock(\.self), ["failed"])
        }
        while released != nil { await Task.yield() }
    }
}
