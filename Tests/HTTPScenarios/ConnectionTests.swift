import Expectations
import LoopbackKit
import Testing

extension Scenarios {
    struct ConnectionTests {
        private static let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

        /// Answers with the target that was asked for.
        private static let echo: TestOrigin.Script = { connection in
            while let request = try connection.nextRequest() {
                try connection.answer(200, body: request.target, to: request)
            }
        }

        @Test func `a connection serves request after request, on one connection to the origin`()
            throws
        {
            let bench = try Bench(script: Self.echo)
            defer { bench.stop() }
            let client = try bench.connect()
            for number in 0..<5 {
                try client.send("GET /\(number) HTTP/1.1\r\nHost: a\r\n\r\n")
                let response = try client.readResponse()
                expectEqual(response.text, "/\(number)")
                #expect(!response.head.has("connection"))
            }
            expectEqual(bench.origin.connections.count, 1)
        }

        @Test func `pipelined requests are answered in their order`() throws {
            let bench = try Bench(script: Self.echo)
            defer { bench.stop() }
            let client = try bench.connect()
            let requests = (0..<50).map { number in
                number % 3 == 0
                    ? "POST /\(number) HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
                    : "GET /\(number) HTTP/1.1\r\nHost: a\r\n\r\n"
            }
            try client.send(requests.joined())
            for number in 0..<50 { try expectEqual(client.readResponse().text, "/\(number)") }
        }

        @Test func `nothing is read behind a request that closes`() throws {
            let bench = try Bench(script: Self.echo)
            defer { bench.stop() }
            let client = try bench.connect()
            try client.send("GET /1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" + Self.get)
            let response = try client.readResponse()
            expectEqual(response.head.all("connection"), ["close"])
            #expect(try client.endsSilently())
            expectEqual(bench.origin.requests.map(\.target), ["/1"])
        }

        @Test func `a client that only ends its own direction is answered`() throws {
            let bench = try Bench(script: Self.echo)
            defer { bench.stop() }
            let client = try bench.connect()
            try client.send(Self.get)
            client.finishSending()
            try expectEqual(client.readResponse().text, "/")
            #expect(try client.endsSilently())
        }

        @Test func `an HTTP/1.0 client gets no chunks, no interim response and a close`() throws {
            let bench = try Bench { connection in
                while try connection.nextRequest() != nil {
                    try connection.wire.send(
                        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n"
                            + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
                    )
                }
            }
            defer { bench.stop() }
            let client = try bench.connect()
            try client.send("GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n")
            let response = try client.readResponse()
            expectEqual(response.status, 200)
            #expect(response.isUntilClose)
            expectEqual(response.text, "abcde")
            expectEqual(response.head.all("connection"), ["close"])
            let request = try #require(bench.origin.requests.first)
            expectEqual(request.head.startLine, "GET / HTTP/1.1")
            expectEqual(request.head.all("via").first?.hasPrefix("1.0 "), true)
        }

        @Test func `a response that ends with its connection is chunked for HTTP/1.1`() throws {
            let bench = try Bench { connection in
                guard try connection.nextRequest() != nil else { return }
                try connection.wire.send("HTTP/1.0 200 OK\r\n\r\nold")
            }
            defer { bench.stop() }
            let client = try bench.connect()
            for _ in 0..<2 {
                try client.send(Self.get)
                let response = try client.readResponse()
                expectEqual(response.text, "old")
                expectEqual(response.head.all("transfer-encoding"), ["chunked"])
            }
            expectEqual(bench.origin.connections.count, 2)
        }

        @Test func `HEAD, 204 and 304 have no content and keep the client's connection`() throws {
            let bench = try Bench { connection in
                while let request = try connection.nextRequest() {
                    let status =
                        switch request.target {
                        case "/204": "204 No Content\r\n"
                        case "/304": "304 Not Modified\r\nContent-Length: 7\r\n"
                        default: "200 OK\r\nContent-Length: 7\r\n"
                        }
                    let content = request.target == "/get" ? "content" : ""
                    try connection.wire.send("HTTP/1.1 \(status)\r\n\(content)")
                }
            }
            defer { bench.stop() }
            let client = try bench.connect()
            for (method, target, status, length) in [
                ("HEAD", "/head", 200, ["7"]), ("GET", "/204", 204, []),
                ("GET", "/304", 304, ["7"]),
                ("GET", "/get", 200, ["7"]),
            ] {
                try client.send("\(method) \(target) HTTP/1.1\r\nHost: a\r\n\r\n")
                let response = try client.readResponse(to: method)
                expectEqual(response.status, status)
                expectEqual(response.head.all("content-length"), length)
                #expect(!response.head.has("transfer-encoding"))
            }
            // Content may follow where it was announced, behind HEAD and 304.
            expectEqual(bench.origin.connections.count, 3)
        }

        @Test func `interim responses are passed on, and only so many`() throws {
            let bench = try Bench(more: "limits: { interim_responses: 3 }") { connection in
                while let request = try connection.nextRequest() {
                    let count = request.target == "/few" ? 3 : 4
                    for _ in 0..<count {
                        try connection.wire.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
                    }
                    try connection.answer(200, body: "ok", to: request)
                }
            }
            defer { bench.stop() }
            let client = try bench.connect()
            try client.send("GET /few HTTP/1.1\r\nHost: a\r\n\r\n")
            for _ in 0..<3 {
                let interim = try client.readResponse()
                expectEqual(interim.status, 103)
                expectEqual(interim.head.value("link"), "</a>")
                #expect(!interim.head.has("content-length"))
            }
            try expectEqual(client.readResponse().text, "ok")
            try client.send("GET /many HTTP/1.1\r\nHost: a\r\n\r\n")
            try expectEqual(client.readFinalResponse().status, 502)
        }

        @Test func `a client more than there may be is turned away, the others are served`() throws
        {
            let bench = try Bench(more: "limits: { connections: 2 }")
            defer { bench.stop() }
            let (first, second) = (try bench.connect(), try bench.connect())
            for client in [first, second] {
                try client.send(Self.get)
                try expectEqual(client.readResponse().status, 200)
            }
            let third = try bench.connect()
            #expect(try third.endsSilently())
            try first.send(Self.get)
            try expectEqual(first.readResponse().status, 200)
        }

        @Test func `many clients at once are all served`() throws {
            let bench = try Bench(script: Self.echo)
            defer { bench.stop() }
            let clients = try (0..<300).map { _ in try bench.connect() }
            for (number, client) in clients.enumerated() {
                try client.send("GET /\(number) HTTP/1.1\r\nHost: a\r\n\r\n")
            }
            for (number, client) in clients.enumerated() {
                try expectEqual(client.readResponse().text, "/\(number)")
            }
        }
    }
}
