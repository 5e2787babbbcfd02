import Expectations
import LoopbackKit
import Synchronization
import Testing

extension Scenarios {
    /// WebSocket over HTTP/2, by extended CONNECT (RFC 8441), to an origin that speaks HTTP/1.1.
    struct HTTP2TunnelTests {
        private static func handshake(_ kind: String = "websocket") -> [(String, String)] {
            [
                (":method", "CONNECT"), (":protocol", kind), (":scheme", "http"),
                (":path", "/socket"), (":authority", "a.test"), ("sec-websocket-version", "13"),
                ("sec-websocket-protocol", "chat"), ("sec-websocket-key", "the client's"),
            ]
        }

        /// Agrees to a tunnel, then sends back what it gets until the end.
        private static let echo: TestOrigin.Script = { connection in
            guard try connection.nextRequest() != nil else { return }
            try connection.wire.send(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                    + "Sec-WebSocket-Accept: x\r\nSec-WebSocket-Protocol: chat\r\n\r\nfirst"
            )
            do {
                try connection.echo()
            } catch WireFault.ended {
                connection.wire.finishSending()
            }
        }

        @Test(arguments: [false, true])
        func `WebSocket passes both ways on a stream until both have ended`(
            isSecure: Bool
        ) throws {
            let bench = try Bench(isSecure: isSecure, http2: true, script: Self.echo)
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            try client.readUntil { client.settings[8] == 1 }
            let id = try client.open(Self.handshake(), ends: false)
            try client.readUntil { client.soFar(id).status != 0 }
            let answer = client.soFar(id)
            expectEqual(answer.status, 200)
            expectEqual(answer.value("sec-websocket-protocol"), "chat")
            expectEqual(answer.value("sec-websocket-accept"), nil)
            expectEqual(answer.value("upgrade"), nil)
            let request = try #require(bench.origin.requests.first)
            expectEqual(request.head.startLine, "GET /socket HTTP/1.1")
            expectEqual(request.head.all("upgrade"), ["websocket"])
            expectEqual(request.head.all("connection"), ["upgrade"])
            let keys = request.head.all("sec-websocket-key")
            #expect(keys.count == 1 && keys[0].utf8.count == 24)
            var expected = Array("first".utf8)
            for round in 0..<40 {
                let message = [UInt8](repeating: UInt8(round), count: 10_000)
                try client.send(message, on: id, ends: false)
                expected += message
                try client.readUntil { client.soFar(id).content.count == expected.count }
            }
            expectEqual(client.soFar(id).content, expected)
            // Another request is served beside it.
            try client.send(.data, flags: HTTP2Client.endsStream, on: id)
            #expect(try client.answer(id).isComplete)
            expectEqual(client.soFar(id).reset, nil)
        }

        @Test func `what comes with a client's end reaches an origin that ended first`() throws {
            let gate = Gate()
            let bench = try Bench(http2: true) { connection in
                guard try connection.nextRequest() != nil else { return }
                try connection.wire.send(
                    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                        + "Connection: Upgrade\r\n\r\n"
                )
                connection.wire.finishSending()
                connection.wire.inbox = []
                try connection.wire.receive()
                if connection.wire.inbox == Array("last".utf8) { gate.open() }
            }
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            try client.readUntil { client.settings[8] == 1 }
            let id = try client.open(Self.handshake(), ends: false)
            #expect(try client.answer(id).isComplete)
            try client.send(Array("last".utf8), on: id)
            try gate.pass()
        }

        @Test func `what a client sends before its end waits for an origin that reads late`()
            throws
        {
            let (read, done) = (Gate(), Gate())
            let received = Mutex(0)
            let bench = try Bench(http2: true) { connection in
                guard try connection.agreeToTunnel() else { return }
                connection.wire.finishSending()
                try read.pass()
                var count = 0
                do {
                    while true {
                        count += connection.wire.inbox.count
                        connection.wire.inbox = []
                        try connection.wire.receive()
                    }
                } catch WireFault.ended {
                    received.withLock { $0 = count }
                } catch {}
                done.open()
            }
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            try client.readUntil { client.settings[8] == 1 }
            let id = try client.open(Self.handshake(), ends: false)
            #expect(try client.answer(id).isComplete)
            let content = [UInt8](repeating: 7, count: 64 << 20)
            let count = try client.sendUntilStalled(content, on: id, milliseconds: 300)
            #expect(count < content.count)
            try client.send(.data, flags: HTTP2Client.endsStream, on: id)
            // The gateway has read the end when it answers.
            try client.send(.ping, [UInt8](repeating: 0, count: 8))
            try client.readUntil { client.pongs == 1 }
            read.open()
            try done.pass()
            expectEqual(received.withLock { $0 }, count)
        }

        @Test func `an origin that does not switch is no tunnel`() throws {
            let bench = try Bench(http2: true)
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            try client.readUntil { client.settings[8] == 1 }
            let id = try client.open(Self.handshake(), ends: false)
            // A 2xx would say that a tunnel stands.
            try expectEqual(client.answer(id).status, 502)
            try expectEqual(client.ask(HTTP2Client.get()).status, 200)
        }

        @Test func `CONNECT to another protocol reaches no origin`() throws {
            let bench = try Bench(http2: true)
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            try client.readUntil { client.settings[8] == 1 }
            let id = try client.open(Self.handshake("connect-udp"), ends: false)
            try expectEqual(client.answer(id).status, 501)
            #expect(bench.origin.requests.isEmpty)
        }

        @Test func `a client that resets its tunnel ends the origin's side`() throws {
            let gate = Gate()
            let bench = try Bench(http2: true) { connection in
                do {
                    try Self.echo(connection)
                } catch {}
                gate.open()
            }
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            try client.readUntil { client.settings[8] == 1 }
            let id = try client.open(Self.handshake(), ends: false)
            try client.readUntil { client.soFar(id).text == "first" }
            try client.send(.reset, on: id, HTTP2Client.bytes(8))
            try gate.pass()
        }

        @Test func `a tunnel in which nothing passes is closed, and its connection serves on`()
            throws
        {
            let bench = try Bench(
                http2: true,
                more: "timeouts: { tunnel_idle: 200ms }",
                script: { connection in
                    guard let request = try connection.nextRequest() else { return }
                    if request.target == "/socket" {
                        connection.wire.inbox = []
                        try connection.wire.send(
                            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                                + "Connection: Upgrade\r\n\r\n"
                        )
                        try connection.wire.receive()
                    } else {
                        try connection.answer(200, body: "ok", to: request)
                    }
                }
            )
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            try client.readUntil { client.settings[8] == 1 }
            let id = try client.open(Self.handshake(), ends: false)
            try expectEqual(client.answer(id).reset, 8)
            try expectEqual(client.ask(HTTP2Client.get()).status, 200)
        }
    }
}
