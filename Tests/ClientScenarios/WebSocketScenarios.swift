import ClientKit
import Expectations
import Foundation
import LoopbackKit
import PortcullisClient
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension ClientScenarios {
    /// WebSockets, whose handshake is a request like others.
    @Suite struct WebSockets {
        private static let rules = """
            - { id: chat, match: { path: /chat/** }, mode: enforce, counter: { window: 64 } }
            """

        /// Agrees to a tunnel, then sends back what it gets.
        private static let echo: TestOrigin.Script = { connection in
            guard try connection.nextRequest() != nil else { return }
            try connection.wire.send(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                    + "Connection: Upgrade\r\n"
                    + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
            )
            do {
                try connection.echo()
            } catch WireFault.ended {
                connection.wire.finishSending()
            }
        }

        private func request(_ stand: ClientStand, _ target: String) throws -> URLRequest {
            let url = "ws://127.0.0.1:\(stand.gateway.port)\(target)"
            return URLRequest(url: try #require(URL(string: url)))
        }

        /// Sends a handshake as URLSession does: with the fields of the request, and those of
        /// WebSockets.
        private func open(
            _ signed: SignedRequest,
            _ stand: ClientStand
        ) throws -> (Wire, WireResponse) {
            let url = try #require(signed.request.url)
            let components = try #require(URLComponents(url: url, resolvingAgainstBaseURL: false))
            let query = components.percentEncodedQuery.map { "?\($0)" } ?? ""
            var lines = [
                "GET \(components.percentEncodedPath)\(query) HTTP/1.1",
                "Host: 127.0.0.1:\(stand.gateway.port)", "Connection: Upgrade",
                "Upgrade: websocket", "Sec-WebSocket-Version: 13",
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            ]
            lines += (signed.request.allHTTPHeaderFields ?? [:]).map { "\($0): \($1)" }
            let wire = try Wire(port: stand.gateway.port)
            try wire.send(lines.joined(separator: "\r\n") + "\r\n\r\n")
            return (wire, try wire.readResponse())
        }

        private func response(_ answer: WireResponse, _ signed: SignedRequest) throws
            -> HTTPURLResponse
        {
            var fields: [String: String] = [:]
            for name in ["WWW-Authenticate", "App-Attest-Error", "App-Attest-Challenge"] {
                fields[name] = answer.head.value(name)
            }
            let made = HTTPURLResponse(
                url: try #require(signed.request.url),
                statusCode: answer.status,
                httpVersion: "HTTP/1.1",
                headerFields: fields
            )
            return try #require(made)
        }

        @Test func `a signed handshake opens a WebSocket through the gateway, once`() async throws {
            let stand = try ClientStand(rules: Self.rules, script: Self.echo)
            defer { stand.end() }
            let app = try stand.app()
            let signed = try await app.sign(request(stand, "/chat/rooms/7?from=%2Fa"))
            expectEqual(signed.request.url?.scheme, "ws")
            let (wire, answer) = try open(signed, stand)
            expectEqual(answer.status, 101)
            // A frame of a client: a masked text.
            let frame: [UInt8] = [0x81, 0x82, 1, 2, 3, 4, 0x69, 0x6B]
            try wire.send(frame)
            try expectEqual(wire.take(frame.count), frame)
            wire.finishSending()
            expectEqual(stand.verdicts, ["pass"])
            expectEqual(stand.origin.requests.last?.target, "/chat/rooms/7?from=%2Fa")
            // The handshake was good once.
            let (_, again) = try open(signed, stand)
            expectEqual(again.status, 401)
            let next = try #require(
                try await app.signAgain(signed, after: response(again, signed))
            )
            let (last, opened) = try open(next, stand)
            expectEqual(opened.status, 101)
            last.finishSending()
            expectEqual(stand.verdicts, ["pass", "pass"])
            expectEqual(stand.cost, Cost(keys: 1, attestations: 1))
        }

        @Test func `a handshake to a route that is not known learns from its 401`() async throws {
            let stand = try ClientStand(rules: Self.rules, script: Self.echo)
            defer { stand.end() }
            let app = try stand.app { $0.defaultRequirement = nil }
            let bare = try await app.sign(request(stand, "/chat/1"))
            let (_, refused) = try open(bare, stand)
            expectEqual(refused.status, 401)
            let signed = try #require(
                try await app.signAgain(bare, after: response(refused, bare))
            )
            let (wire, answer) = try open(signed, stand)
            expectEqual(answer.status, 101)
            wire.finishSending()
        }

        @Test func `a task is made of the signed handshake`() async throws {
            let stand = try ClientStand(rules: Self.rules)
            defer { stand.end() }
            let app = try stand.app()
            let session = URLSession(configuration: .ephemeral)
            defer { session.invalidateAndCancel() }
            let (task, signed) = try await app.webSocketTask(
                for: request(stand, "/chat/1"),
                with: session
            )
            expectEqual(task.state, .suspended)
            guard case .assertion(let keyID) = signed.proof else {
                Issue.record("no assertion: \(signed.proof)")
                return
            }
            let sent = try #require(task.originalRequest)
            expectEqual(sent.url, signed.request.url)
            expectEqual(sent.value(forHTTPHeaderField: "App-Attest-Key-Id"), keyID)
            task.cancel()
        }

        @Test func `a WebSocket is a GET without content, and no request of data`() async throws {
            let stand = try ClientStand(rules: Self.rules)
            defer { stand.end() }
            let app = try stand.app()
            var post = try request(stand, "/chat/1")
            post.httpMethod = "POST"
            var full = try request(stand, "/chat/1")
            full.httpBody = Data("a".utf8)
            for unfit in [post, full] {
                await #expect(throws: PortcullisError.urlUnfit) { try await app.sign(unfit) }
            }
            let plain = try request(stand, "/chat/1")
            await #expect(throws: PortcullisError.urlUnfit) { try await app.data(for: plain) }
            let web = try stand.request("GET", "/chat/1")
            await #expect(throws: PortcullisError.urlUnfit) {
                try await app.webSocketTask(for: web, with: .shared)
            }
            #expect(stand.origin.requests.isEmpty)
        }
    }
}
