import Expectations
import LoopbackKit
import Testing

extension Scenarios {
    /// Origins that leave content unread and take it for the next request, as Python's http.server
    /// does with the content of a GET.
    struct UnreadContentTests {
        private static let forged =
            "GET /forged HTTP/1.1\r\nHost: a\r\nApp-Attest-Verdict: pass\r\n\r\n"

        /// Reads heads and no content. It ends a connection when it is told to.
        private static let heedless: TestOrigin.Script = { connection in
            while let head = try connection.nextHead() {
                try connection.answer(200, body: head.target, to: head)
                if head.head.value("connection") == "close" { return }
            }
        }

        /// The same, and goes on reading whatever it is told.
        private static let deaf: TestOrigin.Script = { connection in
            while let head = try connection.nextHead() {
                try connection.answer(200, body: head.target, to: head)
            }
        }

        private static func request(_ method: String, isChunked: Bool, content: String) -> String {
            let framing =
                isChunked
                ? "Transfer-Encoding: chunked" : "Content-Length: \(content.utf8.count)"
            let size = String(content.utf8.count, radix: 16)
            let bytes = isChunked ? "\(size)\r\n\(content)\r\n0\r\n\r\n" : content
            return "\(method) /first HTTP/1.1\r\nHost: a\r\n\(framing)\r\n\r\n\(bytes)"
        }

        @Test(arguments: ["GET", "HEAD", "DELETE", "OPTIONS", "REPORT"], [false, true])
        func `content that an origin leaves unread reaches no other client as its answer`(
            method: String,
            isChunked: Bool
        ) throws {
            for script in [Self.heedless, Self.deaf] {
                let bench = try Bench(script: script)
                defer { bench.stop() }
                let text = Self.request(method, isChunked: isChunked, content: Self.forged)
                try expectEqual(bench.gateway.ask(text, method: method).status, 200)
                for number in 0..<3 {
                    let target = "/other\(number)"
                    let answer = try bench.gateway.ask("GET \(target) HTTP/1.1\r\nHost: b\r\n\r\n")
                    expectEqual(answer.text, target)
                }
                let connections = bench.origin.connections
                expectEqual(connections.count, 2)
                expectEqual(connections[0].heads[0].head.value("connection"), "close")
                // What the deaf one takes for a request of its own was sent to nobody else.
                expectEqual(connections[1].heads.map(\.target), ["/other0", "/other1", "/other2"])
            }
        }

        @Test(arguments: ["POST", "PUT", "PATCH"])
        func `content with a method that has some keeps its connection`(method: String) throws {
            let bench = try Bench()
            defer { bench.stop() }
            for _ in 0..<3 {
                let text = Self.request(method, isChunked: false, content: "hello")
                try expectEqual(bench.gateway.ask(text, method: method).status, 200)
            }
            expectEqual(bench.origin.connections.count, 1)
            #expect(bench.origin.requests.allSatisfy { !$0.head.has("connection") })
        }

        @Test func `without a pool content of a POST that is left unread is nobody's request`()
            throws
        {
            let bench = try Bench(more: "limits: { pooled: 0 }", script: Self.heedless)
            defer { bench.stop() }
            let text = Self.request("POST", isChunked: false, content: Self.forged)
            try expectEqual(bench.gateway.ask(text, method: "POST").status, 200)
            let other = try bench.gateway.ask("GET /other HTTP/1.1\r\nHost: b\r\n\r\n")
            expectEqual(other.text, "/other")
            let heads = bench.origin.connections.map(\.heads)
            expectEqual(heads.map { $0.map(\.target) }, [["/first"], ["/other"]])
            expectEqual(heads.first?.first?.head.value("connection"), "close")
        }

        @Test func `a request to upgrade that has content is not upgraded`() throws {
            let bench = try Bench()
            defer { bench.stop() }
            let text =
                "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
                + "Content-Length: 2\r\n\r\nhi"
            try expectEqual(bench.gateway.ask(text).status, 200)
            let head = bench.origin.requests[0].head
            #expect(!head.has("upgrade") && head.value("connection") == "close")
        }
    }
}
