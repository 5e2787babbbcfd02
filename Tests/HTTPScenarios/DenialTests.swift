import Expectations
import LoopbackKit
import Testing

extension Scenarios {
    /// What `mode: deny` answers, whatever the request is.
    struct DenialTests {
        /// A gateway that forwards `GET /open` and denies everything else.
        private static let more = """
            rules:
              - { id: no, match: { path: /no/** }, mode: deny }
              - { id: open, match: { method: GET, path: /open }, mode: off, origin: shop }
            """

        private func gateway(_ origin: TestOrigin, more: String = "") throws -> TestGateway {
            try TestGateway(
                [("shop", [origin.address])],
                fallback: "{ mode: deny }",
                more: Self.more + more
            )
        }

        @Test(arguments: [
            "GET /elsewhere HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /no/matter HTTP/1.1\r\nHost: a\r\n\r\n",
            "HEAD /elsewhere HTTP/1.1\r\nHost: a\r\n\r\n",
            "POST /open HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi",
            """
            POST /open HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
            2\r\nhi\r\n0\r\n\r\n
            """,
            "PURGE /open HTTP/1.1\r\nHost: a\r\n\r\n",
            "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
            """
            OPTIONS /open HTTP/1.1\r\nHost: a\r\nOrigin: https://b\r\n\
            Access-Control-Request-Method: GET\r\n\r\n
            """,
            "GET /elsewhere HTTP/1.0\r\n\r\n",
            "GET http://a/elsewhere HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /.well-known/app-attest HTTP/1.1\r\nHost: a\r\n\r\n",
            """
            GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
            Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n
            """,
        ])
        func `a request that no rule is for is answered 404, and no origin is asked`(
            request: String
        ) throws {
            let origin = try TestOrigin()
            defer { origin.stop() }
            let gateway = try gateway(origin)
            defer { gateway.stop() }
            let method = String(request.prefix { $0 != " " })
            let answer = try gateway.ask(request, method: method)
            expectEqual(answer.status, 404)
            expectEqual(answer.head.value("content-type"), "application/problem+json")
            expectEqual(answer.head.value("cache-control"), "no-store")
            #expect(!answer.head.has("app-attest-challenge"))
            #expect(!answer.head.has("upgrade"))
            let text = String(decoding: answer.body, as: UTF8.self)
            expectEqual(text.contains(#""reason":"no-rule""#), method != "HEAD")
            // What a rule is for is served, on a connection that was not made before.
            let open = try gateway.ask("GET /open HTTP/1.1\r\nHost: a\r\n\r\n")
            expectEqual(open.status, 200)
            expectEqual(origin.requests.map(\.head.startLine), ["GET /open HTTP/1.1"])
        }

        @Test func `a denied client keeps its content, and its connection without any`() throws {
            let origin = try TestOrigin()
            defer { origin.stop() }
            let gateway = try gateway(origin)
            defer { gateway.stop() }
            let client = try gateway.connect()
            try client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
            try expectEqual(client.readResponse().status, 404)
            try client.send("GET /b HTTP/1.1\r\nHost: a\r\n\r\n")
            try expectEqual(client.readResponse().status, 404)
            try client.send(
                "PUT /c HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n"
            )
            let answer = try client.readResponse()
            expectEqual(answer.status, 404)
            expectEqual(answer.head.all("connection"), ["close"])
            #expect(origin.requests.isEmpty)
        }

        /// A client that sends head and content apart, as most do, must not pay a new connection
        /// for each refusal.
        @Test(arguments: [false, true])
        func `a denied client whose content is on its way keeps its connection`(
            isSecure: Bool
        ) throws {
            let bench = try Bench(isSecure: isSecure, more: Self.more)
            defer { bench.stop() }
            let client = try bench.connect()
            defer { client.close() }
            let count = 64 << 10
            try client.send(
                "POST /no/a HTTP/1.1\r\nHost: a\r\nContent-Length: \(count + 2)\r\n\r\nab"
            )
            let answer = try client.readResponse()
            expectEqual(answer.status, 404)
            expectEqual(answer.head.all("connection"), [])
            let hidden = "GET /open?hidden HTTP/1.1\r\nHost: a\r\n\r\n"
            let content = String(repeating: hidden, count: count / hidden.utf8.count)
            try client.send(content)
            let rest = String(repeating: "c", count: count - content.utf8.count)
            try client.send(rest + "GET /open HTTP/1.1\r\nHost: a\r\n\r\n")
            try expectEqual(client.readResponse().status, 200)
            expectEqual(bench.origin.requests.map(\.head.startLine), ["GET /open HTTP/1.1"])
        }

        @Test(arguments: [
            "Content-Length: \((64 << 10) + 1)\r\n\r\n",
            "Content-Length: \(1 << 40)\r\n\r\n",
            "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
            "Content-Length: 2\r\nConnection: close\r\n\r\n",
        ])
        func `a denied client with much to send, or an unknown amount, is let go of`(
            rest: String
        ) throws {
            let bench = try Bench(more: Self.more)
            defer { bench.stop() }
            let client = try bench.connect()
            defer { client.close() }
            try client.send("POST /no/a HTTP/1.1\r\nHost: a\r\n\(rest)")
            let answer = try client.readResponse()
            expectEqual(answer.status, 404)
            expectEqual(answer.head.all("connection"), ["close"])
            #expect(try client.endsSilently())
        }

        @Test func `a denied client that does not send what it announced is let go of`() throws {
            let bench = try Bench(more: Self.more + "\ntimeouts: { linger: 200ms }")
            defer { bench.stop() }
            let client = try bench.connect()
            defer { client.close() }
            try client.send("POST /no/a HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab")
            try expectEqual(client.readResponse().status, 404)
            #expect(try client.endsSilently())
        }

        @Test func `a path that can't be read in one way is malformed before it is denied`()
            throws
        {
            let origin = try TestOrigin()
            defer { origin.stop() }
            let gateway = try gateway(origin)
            defer { gateway.stop() }
            let answer = try gateway.ask("GET /no/%2e%2e/open HTTP/1.1\r\nHost: a\r\n\r\n")
            expectEqual(answer.status, 400)
            #expect(origin.requests.isEmpty)
        }
    }
}
