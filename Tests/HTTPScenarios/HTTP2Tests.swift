import Cryptography
import Expectations
import Foundation
import LoopbackKit
import Testing

extension Scenarios {
    /// Requests and responses over HTTP/2.
    struct HTTP2Tests {
        @Test(arguments: [false, true])
        func `a request over HTTP/2 reaches the origin as one of HTTP/1.1`(
            isSecure: Bool
        ) throws {
            let bench = try Bench(isSecure: isSecure, http2: true)
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            let answer = try client.ask(HTTP2Client.get("/a?b=c", [("x-note", "one")]))
            expectEqual(answer.status, 200)
            expectEqual(answer.text, "ok")
            expectEqual(answer.value("content-length"), "2")
            #expect(answer.value("date") != nil)
            expectEqual(answer.value("connection"), nil)
            let request = try #require(bench.origin.requests.first)
            expectEqual(request.head.startLine, "GET /a?b=c HTTP/1.1")
            expectEqual(request.head.all("host"), ["a.test"])
            expectEqual(request.head.value("x-note"), "one")
            expectEqual(request.head.value("via"), "2.0 portcullis")
            #expect(!request.head.has("transfer-encoding"))
        }

        @Test(arguments: [false, true])
        func `a listener that takes HTTP/2 takes HTTP/1.1 too`(isSecure: Bool) throws {
            let bench = try Bench(isSecure: isSecure, http2: true)
            defer { bench.stop() }
            let client = try bench.connect()
            for _ in 0..<2 {
                try client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                try expectEqual(client.readResponse().status, 200)
            }
        }

        @Test func `a listener that was not told to takes no HTTP/2`() throws {
            let bench = try Bench()
            defer { bench.stop() }
            let client = try bench.connect()
            try client.send(HTTP2Client.preface)
            try expectEqual(client.readResponse().status, 400)
        }

        @Test func `the preface may come byte by byte`() throws {
            let bench = try Bench(http2: true)
            defer { bench.stop() }
            let client = try bench.connect()
            for byte in HTTP2Client.preface.prefix(20) {
                try client.send([byte])
                try client.awaitTaken()
            }
            try client.send(
                HTTP2Client.preface.dropFirst(20) + HTTP2Client.frame(.settings, 0, 0)
            )
            let head = try client.take(9)
            expectEqual(head[3], HTTP2Client.FrameType.settings.rawValue)
        }

        @Test func `requests are served at once, and none waits for a slow one`() throws {
            let gate = Gate()
            let bench = try Bench(http2: true, script: TestOrigin.slow(until: gate))
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            let slow = try client.open(HTTP2Client.get("/slow"))
            for _ in 0..<20 { try expectEqual(client.ask(HTTP2Client.get("/fast")).status, 200) }
            #expect(!client.soFar(slow).isComplete)
            gate.open()
            try expectEqual(client.answer(slow).status, 200)
        }

        @Test func `content goes both ways whole, whether its length is said or not`() throws {
            let bench = try Bench(http2: true) { connection in
                while let request = try connection.nextRequest() {
                    try connection.answer(
                        200,
                        body: String(decoding: request.body, as: UTF8.self),
                        to: request
                    )
                }
            }
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            let content = Array(String(repeating: "abcdefgh", count: 6000).utf8)
            let length = ("content-length", "\(content.count)")
            let stated = try client.ask(HTTP2Client.post("/", [length]), content)
            expectEqual(stated.status, 200)
            expectEqual(stated.content, content)
            let unstated = try client.ask(HTTP2Client.post(), content)
            expectEqual(unstated.content, content)
            let (first, second) = (bench.origin.requests[0].head, bench.origin.requests[1].head)
            expectEqual(first.value("content-length"), "\(content.count)")
            expectEqual(second.value("transfer-encoding"), "chunked")
        }

        @Test func `an upload goes on as far as the origin takes it, and whole`() throws {
            let gate = Gate()
            let content = Content(count: 8 << 20)
            let bench = try Bench(http2: true) { connection in
                guard let head = try connection.nextHead() else { return }
                try gate.pass()
                let request = try connection.finish(head)
                let digest = SHA256.digest(request.body.span)
                try connection.answer(200, body: "\(digest == content.digest)", to: request)
            }
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            let id = try client.open(HTTP2Client.post(), ends: false)
            // Without a window there is nothing to send into.
            var (window, wholeWindow, sent) = (65_535, 65_535, 0)
            let bytes = content.pieces.flatMap { $0 }
            while sent < content.count {
                let count = min(16_384, content.count - sent, window, wholeWindow)
                if count > 0 {
                    let isLast = sent + count == content.count
                    try client.send(Array(bytes[sent..<sent + count]), on: id, ends: isLast)
                    (sent, window, wholeWindow) = (
                        sent + count, window - count, wholeWindow - count
                    )
                    continue
                }
                // The origin reads nothing yet: the windows stay shut once all between is full.
                if sent > 1 << 20 { gate.open() }
                let frame = try client.readFrame()
                switch HTTP2Client.FrameType(rawValue: frame.type) {
                case .settings:
                    if frame.flags == 0 { window += Int(client.settings[4] ?? 65_535) - 65_535 }
                case .windowUpdate:
                    let step = Int(HTTP2Client.number(frame.payload))
                    if frame.id == 0 { wholeWindow += step } else { window += step }
                default: break
                }
                if sent <= 1 << 20, !client.wire.isReadable(within: 500),
                    window == 0 || wholeWindow == 0
                {
                    gate.open()
                }
            }
            try expectEqual(client.answer(id).text, "true")
        }

        @Test func `a download waits for the client's windows, and comes whole`() throws {
            let content = Content(count: 4 << 20)
            let bench = try Bench(http2: true) { connection in
                while let request = try connection.nextRequest() {
                    try connection.wire.send(
                        "HTTP/1.1 200 OK\r\nContent-Length: \(content.count)\r\n\r\n"
                    )
                    try connection.wire.send(content)
                    _ = request
                }
            }
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            client.opensWindows = false
            let id = try client.open(HTTP2Client.get())
            try client.readUntil { client.soFar(id).content.count == 65_535 }
            #expect(!client.wire.isReadable(within: 200))
            client.opensWindows = true
            try client.openWindow(0, by: 65_535)
            try client.openWindow(id, by: 65_535)
            let answer = try client.answer(id)
            expectEqual(SHA256.digest(answer.content.span), content.digest)
        }

        @Test func `interim responses, trailers and responses without content arrive`() throws {
            let bench = try Bench(http2: true) { connection in
                while let request = try connection.nextRequest() {
                    let text =
                        switch request.target {
                        case "/early":
                            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
                                + "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
                        case "/trailers":
                            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                                + "3\r\nabc\r\n0\r\nX-Sum: 9\r\n\r\n"
                        case "/none": "HTTP/1.1 204 No Content\r\n\r\n"
                        case "/same": "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n"
                        default: "HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n"
                        }
                    try connection.wire.send(text)
                }
            }
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            try expectEqual(client.ask(HTTP2Client.get("/early")).interim, [103])
            let withTrailers = try client.ask(HTTP2Client.get("/trailers", [("te", "trailers")]))
            expectEqual(withTrailers.text, "abc")
            expectEqual(withTrailers.trailers.map(\.name), ["x-sum"])
            #expect(try client.ask(HTTP2Client.get("/trailers")).trailers.isEmpty)
            try expectEqual(client.ask(HTTP2Client.get("/none")).status, 204)
            try expectEqual(client.ask(HTTP2Client.get("/same")).value("etag"), "\"a\"")
            let head = [(":method", "HEAD")] + HTTP2Client.get("/head").dropFirst()
            let answer = try client.ask(head)
            expectEqual(answer.value("content-length"), "77")
            #expect(answer.content.isEmpty)
        }

        @Test func `a client that waits is told to go on`() throws {
            let bench = try Bench(http2: true)
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            let fields = HTTP2Client.post(
                "/",
                [("expect", "100-continue"), ("content-length", "5")]
            )
            let id = try client.open(fields, ends: false)
            try client.readUntil { client.soFar(id).interim == [100] }
            try client.send(Array("hello".utf8), on: id)
            try expectEqual(client.answer(id).status, 200)
            expectEqual(bench.origin.requests.first?.body, Array("hello".utf8))
        }

        @Test
        func `a response that comes before the request's end resets the rest without an error`()
            throws
        {
            let bench = try Bench(http2: true) { connection in
                guard let request = try connection.nextHead() else { return }
                try connection.answer(413, body: "no", to: request)
                try connection.awaitEnd()
            }
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            let id = try client.open(HTTP2Client.post(), ends: false)
            try client.send(Array("some".utf8), on: id, ends: false)
            let answer = try client.answer(id)
            expectEqual(answer.status, 413)
            try client.readUntil { client.soFar(id).reset != nil }
            expectEqual(client.soFar(id).reset, 0)
            #expect(try client.ask(HTTP2Client.get()).status != 0)
        }

        @Test func `a response that breaks off is reset, and others on the connection go on`()
            throws
        {
            let bench = try Bench(http2: true) { connection in
                while let request = try connection.nextRequest() {
                    guard request.target == "/broken" else {
                        try connection.answer(200, body: "ok", to: request)
                        continue
                    }
                    try connection.wire.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
                    return connection.wire.close()
                }
            }
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            let broken = try client.ask(HTTP2Client.get("/broken"))
            expectEqual(broken.reset, 2)
            #expect(!broken.isComplete)
            try expectEqual(client.ask(HTTP2Client.get("/")).text, "ok")
        }

        @Test func `a request that its client gives up never looks complete to the origin`() throws
        {
            let bench = try Bench(http2: true)
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            let id = try client.open(HTTP2Client.post(), ends: false)
            try client.send(Array("half".utf8), on: id, ends: false)
            #expect(bench.origin.wait { $0.contains { $0.heads.count == 1 } })
            try client.send(.reset, on: id, HTTP2Client.bytes(8))
            #expect(bench.origin.wait { $0.contains { !$0.isOpen } })
            #expect(bench.origin.requests.isEmpty)
            try expectEqual(client.ask(HTTP2Client.get()).status, 200)
        }

        @Test func `cookies become one field, and host and authority are one`() throws {
            let bench = try Bench(http2: true)
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            let fields = [("cookie", "a=1"), ("host", "A.test"), ("cookie", "b=2")]
            try expectEqual(client.ask(HTTP2Client.get("/", fields)).status, 200)
            let request = try #require(bench.origin.requests.first)
            expectEqual(request.head.all("cookie"), ["a=1; b=2"])
            expectEqual(request.head.all("host"), ["a.test"])
        }

        @Test func `the gateway's end is said twice, and what is under way ends well`() throws {
            let gate = Gate()
            let bench = try Bench(http2: true, script: TestOrigin.slow(until: gate))
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            let slow = try client.open(HTTP2Client.get("/slow"))
            #expect(bench.origin.wait { $0.contains { $0.heads.count == 1 } })
            bench.gateway.beginStop()
            try client.readUntil { client.goAways.count == 1 }
            #expect(client.goAways[0] == (last: 0x7FFF_FFFF, code: 0))
            // On its way when the client was told.
            try expectEqual(client.ask(HTTP2Client.get("/late")).status, 200)
            try client.readUntil { client.goAways.count == 2 }
            #expect(client.goAways[1] == (last: slow + 2, code: 0))
            gate.open()
            try expectEqual(client.answer(slow).status, 200)
            try expectEqual(client.lastCode(), 0)
        }

        /// Both come while the event loop stands, the response first.
        @Test func `a response that comes with its client's end is sent`() throws {
            let (gate, answered) = (Gate(), Gate())
            let bench = try Bench(http2: true) { connection in
                guard let request = try connection.nextRequest() else { return }
                try gate.pass()
                try connection.answer(200, body: "ok", to: request)
                try connection.wire.awaitTaken()
                answered.open()
                try connection.awaitEnd()
            }
            defer { bench.stop() }
            let door = try LoopDoor(bench.gateway)
            let client = try bench.connectHTTP2()
            // It sends nothing after its end.
            try client.readUntil { !client.settings.isEmpty }
            client.opensWindows = false
            let id = try client.open(HTTP2Client.get())
            #expect(bench.origin.wait { $0.contains { $0.requests.count == 1 } })
            try door.shut()
            gate.open()
            try answered.pass()
            client.wire.finishSending()
            try client.wire.awaitTaken()
            door.open()
            try expectEqual(client.answer(id).text, "ok")
            door.remove()
        }

        @Test func `an idle connection is told before it is closed`() throws {
            let bench = try Bench(http2: true, more: "timeouts: { idle: 100ms }")
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            try expectEqual(client.ask(HTTP2Client.get()).status, 200)
            try expectEqual(client.lastCode(), 0)
        }

        @Test func `the log and the metrics say what a client speaks`() throws {
            let folder = try TemporaryFolder.make()
            defer { TemporaryFolder.remove(folder) }
            let origin = try TestOrigin()
            defer { origin.stop() }
            let gateway = try TestGateway(
                [("shop", [origin.address])],
                listen: "address: 127.0.0.1:0, http2: on",
                log: "{ access: \(folder)/access.log }"
            )
            let client = try HTTP2Client(try gateway.connect())
            try expectEqual(client.ask(HTTP2Client.get()).status, 200)
            _ = try gateway.ask("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            gateway.stop()
            _ = gateway.exitStatus()
            let lines = try String(contentsOfFile: folder + "/access.log", encoding: .utf8)
                .split(separator: "\n")
            #expect(lines.contains { $0.contains(#""protocol":"h2""#) })
            #expect(lines.contains { $0.contains(#""protocol":"http/1.1""#) })
        }
    }
}
