import Expectations
import LoopbackKit
import Testing

extension Scenarios {
    struct ExpectTests {
        private static let head = """
            POST /upload HTTP/1.1\r
            Host: a\r
            Content-Length: 5\r
            Expect: 100-continue\r
            \r

            """

        @Test func `a client that waits is told to go on, and the origin has no part in it`() throws
        {
            let bench = try Bench()
            defer { bench.stop() }
            let client = try bench.connect()
            try client.send(Self.head)
            try expectEqual(client.readResponse().status, 100)
            try client.send("hello")
            try expectEqual(client.readResponse().status, 200)
            let request = try #require(bench.origin.requests.first)
            expectEqual(request.body, Array("hello".utf8))
            #expect(!request.head.has("expect"))
        }

        @Test func `a client that has sent its content is not told to go on`() throws {
            let bench = try Bench()
            defer { bench.stop() }
            let client = try bench.connect()
            try client.send(Self.head + "hello")
            try expectEqual(client.readResponse().status, 200)
        }

        @Test(arguments: ["none", "streamed", "held"])
        func `a refused client gets the refusal and no 100`(_ digest: String) throws {
            let origin = try TestOrigin()
            defer { origin.stop() }
            let sign = digest == "none" ? "[method, target]" : "[method, target, body]"
            let gateway = try TestGateway(
                [("shop", [origin.address])],
                fallback: """
                    { origin: shop, mode: enforce, sign: \(sign), body: { digest: \(digest) } }
                    """,
                more: """
                    apps: [{ id: ABCDE12345.com.example.shop, environments: [production] }]
                    store: { sqlite: keys.db }
                    """
            )
            defer { gateway.stop() }
            let client = try gateway.connect()
            try client.send(Self.head)
            let answer = try client.readResponse()
            expectEqual(answer.status, 401)
            expectEqual(answer.head.all("connection"), ["close"])
            expectEqual(answer.head.value("content-type"), "application/problem+json")
            #expect(answer.head.has("www-authenticate"))
            // The content is ambiguous now, and no request may be seen in it.
            try client.send("GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try client.endsSilently())
            #expect(origin.connections.isEmpty)
        }

        /// An app that took the broken pipe for the end never saw that it had to sign again.
        @Test func `a client that does not wait finds the refusal when it reads after its reset`()
            throws
        {
            let origin = try TestOrigin()
            defer { origin.stop() }
            let gateway = try TestGateway(
                [("shop", [origin.address])],
                fallback: "{ origin: shop, mode: enforce, body: { digest: streamed } }",
                more: """
                    apps: [{ id: ABCDE12345.com.example.shop, environments: [production] }]
                    store: { sqlite: keys.db }
                    timeouts: { linger: 50ms }
                    limits: { drain: 1KiB }
                    """
            )
            defer { gateway.stop() }
            let client = try gateway.connect()
            try client.send("POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 8000000\r\n\r\n")
            do {
                for _ in 0..<80 { try client.send([UInt8](repeating: 0, count: 100_000)) }
                Issue.record("nothing was refused")
            } catch WireFault.reset {}
            let answer = try client.readFinalResponse()
            expectEqual(answer.status, 401)
            #expect(answer.head.has("app-attest-error"))
            #expect(origin.connections.isEmpty)
        }

        @Test func `a target that can't be routed is answered without a 100`() throws {
            let bench = try Bench()
            defer { bench.stop() }
            let client = try bench.connect()
            try client.send(Self.head.replacing("/upload", with: "/a/..%2f/b"))
            try expectEqual(client.readResponse().status, 400)
            #expect(try client.endsSilently())
        }

        @Test func `an origin that answers early spares the client its content`() throws {
            let bench = try Bench { connection in
                guard let head = try connection.nextHead() else { return }
                try connection.answer(413, to: head)
                try connection.awaitEnd()
            }
            defer { bench.stop() }
            let client = try bench.connect()
            try client.send(Self.head)
            try expectEqual(client.readResponse().status, 100)
            let answer = try client.readResponse()
            expectEqual(answer.status, 413)
            expectEqual(answer.head.all("connection"), ["close"])
            #expect(try client.endsSilently())
            #expect(bench.origin.wait { $0.allSatisfy { !$0.isOpen } })
        }
    }
}
