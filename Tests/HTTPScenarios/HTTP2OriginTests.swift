import EventLoops
import Expectations
import Foundation
import LoopbackKit
import Testing

extension Scenarios {
    /// Origins that are spoken to in HTTP/2.
    struct HTTP2OriginTests {
        typealias Server = HTTP2Server

        /// The gateway before an origin that speaks HTTP/2.
        final class Place {
            let origin: TestOrigin
            let gateway: TestGateway

            init(
                tls: TLSContext? = nil,
                options: String = "",
                more: String = "",
                fallback: String? = nil,
                log: String = "{ access: off, level: error }",
                script: @escaping TestOrigin.Script = Server.friendly
            ) throws {
                origin = try TestOrigin(tls: tls, script: script)
                gateway = try TestGateway(
                    [("shop", [origin.address])],
                    listen: "address: 127.0.0.1:0, http2: on",
                    fallback: fallback,
                    originOptions: ", http2: on" + options,
                    log: log,
                    more: more
                )
            }

            func connect() throws -> HTTP2Client { try HTTP2Client(try gateway.connect()) }

            func stop() {
                gateway.stop()
                origin.stop()
            }
        }

        private static let get = "GET /a?b=c HTTP/1.1\r\nHost: a.test\r\nX-Note: one\r\n\r\n"

        @Test
        func `a request of HTTP/1.1 reaches the origin over HTTP/2, and its answer comes back`()
            throws
        {
            let place = try Place { connection in
                let server = try Server(connection)
                while let (id, _) = try server.nextRequest() {
                    try server.answer(id, fields: [("x-from", "origin")], content: "hello")
                }
            }
            defer { place.stop() }
            let client = try place.gateway.connect()
            for _ in 0..<3 {
                try client.send(Self.get)
                let response = try client.readResponse()
                expectEqual(response.status, 200)
                expectEqual(response.text, "hello")
                expectEqual(response.head.value("x-from"), "origin")
                expectEqual(response.head.value("transfer-encoding"), "chunked")
            }
            let head = try #require(place.origin.requests.first).head
            expectEqual(head.value(":path"), "/a?b=c")
            expectEqual(head.value(":authority"), "a.test")
            expectEqual(head.value(":scheme"), "http")
            expectEqual(head.value("x-note"), "one")
            expectEqual(head.value("via"), "1.1 portcullis")
            #expect(!head.has("host"))
            #expect(!head.has("connection"))
            expectEqual(place.origin.connections.count, 1)
        }

        @Test func `content goes both ways whole, whether its length is said or not`() throws {
            let place = try Place { connection in
                let server = try Server(connection)
                while let (id, request) = try server.nextRequest() {
                    try server.answer(id, content: request.text)
                }
            }
            defer { place.stop() }
            let content = Array(String(repeating: "abcdefgh", count: 60_000).utf8)
            let client = try place.connect()
            let length = ("content-length", "\(content.count)")
            let stated = try client.ask(HTTP2Client.post("/", [length]), content)
            expectEqual(stated.content, content)
            try expectEqual(client.ask(HTTP2Client.post(), content).content, content)
            let old = try place.gateway.connect()
            try old.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
            try old.send("5\r\nhello\r\n0\r\nX-Trailer: no\r\n\r\n")
            try expectEqual(old.readResponse().text, "hello")
            let requests = place.origin.requests
            expectEqual(requests[0].head.value("content-length"), "\(content.count)")
            #expect(requests.allSatisfy { !$0.head.has("transfer-encoding") })
            #expect(requests.allSatisfy { $0.trailers.isEmpty })
        }

        @Test func `one connection carries many requests, and none waits for a slow one`() throws {
            let gate = Gate()
            let place = try Place { connection in
                let server = try Server(connection)
                var slow: UInt32 = 0
                while let (id, request) = try server.nextRequest() {
                    if request.path == "/slow" {
                        slow = id
                    } else if request.path == "/last" {
                        try server.answer(id, content: "ok")
                        try server.answer(slow, content: "late")
                    } else {
                        try server.answer(id, content: "ok")
                    }
                }
            }
            defer { place.stop() }
            gate.open()
            let client = try place.connect()
            let slow = try client.open(HTTP2Client.get("/slow"))
            for _ in 0..<20 { try expectEqual(client.ask(HTTP2Client.get("/fast")).text, "ok") }
            #expect(!client.soFar(slow).isComplete)
            _ = try client.ask(HTTP2Client.get("/last"))
            try expectEqual(client.answer(slow).text, "late")
            expectEqual(place.origin.connections.count, 1)
        }

        @Test func `trailers go to clients that accept them`() throws {
            let place = try Place { connection in
                let server = try Server(connection)
                while let (id, _) = try server.nextRequest() {
                    let trailers = [("grpc-status", "0"), ("app-attest-verdict", "pass")]
                    try server.answer(id, content: "x", trailers: trailers)
                }
            }
            defer { place.stop() }
            let client = try place.connect()
            let answer = try client.ask(HTTP2Client.get("/", [("te", "trailers")]))
            expectEqual(answer.trailers.map(\.name), ["grpc-status"])
            #expect(try client.ask(HTTP2Client.get()).trailers.isEmpty)
            let old = try place.gateway.connect()
            try old.send("GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: TE\r\n\r\n")
            try expectEqual(old.readResponse().trailers.map(\.name), ["grpc-status"])
            expectEqual(place.origin.requests.first?.head.value("te"), "trailers")
        }

        @Test func `interim responses pass, HEAD and 304 have no content`() throws {
            let place = try Place { connection in
                let server = try Server(connection)
                while let (id, request) = try server.nextRequest() {
                    try server.sendHead(id, [(":status", "103"), ("link", "</a>")])
                    let isHead = request.value(":method") == "HEAD"
                    try server.answer(
                        id,
                        isHead ? 200 : 304,
                        fields: [("content-length", "5"), ("etag", "\"a\"")]
                    )
                }
            }
            defer { place.stop() }
            let client = try place.gateway.connect()
            try client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
            let head = try client.readFinalResponse(to: "HEAD")
            expectEqual(head.status, 200)
            expectEqual(head.head.value("content-length"), "5")
            try client.send(Self.get)
            try expectEqual(client.readFinalResponse(to: "GET").status, 304)
            let http2 = try place.connect()
            try expectEqual(http2.ask(HTTP2Client.get()).interim, [103])
        }

        @Test func `under TLS the origin is asked for h2`() throws {
            let made = try TestCertificate.made.get()
            let server = ServerCertificate(chain: made.certificate, key: made.key)
            let tls = try TLSContext(
                showing: [server],
                terms: TLSTerms(protocols: [TLSContext.http2])
            )
            let options = ", tls: { ca: \(made.certificate) }"
            let place = try Place(tls: tls, options: options)
            defer { place.stop() }
            let text = try place.gateway.ask(Self.get).text
            expectEqual(text, "ok", "\(text) \(place.origin.connections)")
            expectEqual(place.origin.requests.first?.head.value(":scheme"), "https")
        }

        @Test func `a server that does not speak HTTP/2 took no connection`() throws {
            let made = try TestCertificate.made.get()
            let server = ServerCertificate(chain: made.certificate, key: made.key)
            let tls = try TLSContext(showing: [server])
            let options = ", tls: { ca: \(made.certificate) }"
            for (context, more) in [(nil, ""), (tls, options)] {
                let place = try Place(tls: context, options: more, script: TestOrigin.friendly)
                defer { place.stop() }
                let response = try place.gateway.ask(Self.get)
                expectEqual(response.status, 502)
                #expect(response.text.contains("origin-not-http2"))
            }
        }

        /// With TLS 1.3 the handshake is over for the gateway when the origin refuses.
        @Test func `the log says that an origin refuses the gateway's certificate`() throws {
            let folder = try TemporaryFolder.make()
            defer { TemporaryFolder.remove(folder) }
            let made = try TestCertificate.made.get()
            let trusted = try TestCertificate("trusted", names: "DNS:x", in: folder)
            let context = try TLSContext(
                showing: [ServerCertificate(chain: made.certificate, key: made.key)],
                terms: TLSTerms(minimumVersion: .tls13, protocols: [TLSContext.http2]),
                clients: ClientTrust(authorities: trusted.certificate, demand: .required)
            )
            let file = folder + "/access.log"
            let place = try Place(
                tls: context,
                options: ", tls: { ca: \(made.certificate) }",
                log: "{ access: '\(file)', level: error }"
            )
            defer { place.stop() }
            #expect(try place.gateway.ask(Self.get).text.contains("origin-tls-failed"))
            try place.gateway.server.wait { _ in
                let line = (try? String(contentsOfFile: file, encoding: .utf8)) ?? ""
                guard line.hasSuffix("\n") else { return false }
                #expect(line.contains("\"origin_tls\":\"certificate-refused-by-peer\""), "\(line)")
                return true
            }
        }

        @Test func `the server's limit of streams holds, and further requests wait or use another`()
            throws
        {
            let place = try Place(options: ", http2_connections: 2") { connection in
                let server = try Server(connection, settings: [(3, 1)])
                while let (id, request) = try server.nextRequest() {
                    try server.answer(id, content: request.path)
                }
            }
            defer { place.stop() }
            let client = try place.connect()
            let streams = try (0..<20).map { try client.open(HTTP2Client.get("/\($0)")) }
            for (number, id) in streams.enumerated() {
                try expectEqual(client.answer(id).text, "/\(number)")
            }
            #expect(place.origin.connections.count <= 2)
        }

        @Test func `a refused request is sent once more, whatever its method`() throws {
            let place = try Place { connection in
                let server = try Server(connection)
                var isFirst = connection.number == 0
                while let (id, _) = try server.nextRequest() {
                    if isFirst {
                        isFirst = false
                        try server.reset(id, 7)
                    } else {
                        try server.answer(id, content: "again")
                    }
                }
            }
            defer { place.stop() }
            // Content that streams is gone with the first attempt.
            let client = try place.connect()
            let answer = try client.ask(HTTP2Client.post("/", [("content-length", "0")]))
            expectEqual(answer.text, "again")
        }

        @Test func `a request that is always refused is answered 503`() throws {
            let place = try Place { connection in
                let server = try Server(connection)
                while let (id, _) = try server.nextHead() { try server.reset(id, 7) }
            }
            defer { place.stop() }
            let response = try place.gateway.ask(Self.get)
            expectEqual(response.status, 503)
            #expect(response.text.contains("origin-refused"))
        }

        @Test func `after GOAWAY older requests end, newer ones go to another connection`() throws {
            let place = try Place { connection in
                let server = try Server(connection)
                while let (id, _) = try server.nextHead() {
                    guard connection.number == 0 else {
                        try server.answer(id, content: "second")
                        continue
                    }
                    guard let (other, _) = try server.nextHead() else { return }
                    try server.goAway(id)
                    try server.answer(id, content: "first")
                    _ = other
                    try connection.awaitEnd()
                }
            }
            defer { place.stop() }
            let client = try place.connect()
            let older = try client.open(HTTP2Client.get("/1"))
            let newer = try client.open(HTTP2Client.get("/2"))
            try expectEqual(client.answer(older).text, "first")
            try expectEqual(client.answer(newer).text, "second")
        }

        /// The first request is refused once, the second is reset twice, since GET is sent again,
        /// and the third ends its connection.
        @Test func `connections, streams, resets and GOAWAY are counted`() throws {
            let place = try Place(more: "admin: { address: 127.0.0.1:0 }") { connection in
                let server = try Server(connection)
                var count = 0
                while let (id, request) = try server.nextHead() {
                    count += 1
                    if count == 1, connection.number == 0 {
                        try server.reset(id, 7)
                    } else if request.path == "/reset" {
                        try server.reset(id, 2)
                    } else {
                        if request.path == "/last" { try server.goAway(id) }
                        try server.answer(id, content: "ok")
                    }
                }
            }
            defer { place.stop() }
            let client = try place.connect()
            try expectEqual(client.ask(HTTP2Client.get("/")).text, "ok")
            try expectEqual(client.ask(HTTP2Client.get("/reset")).status, 502)
            try expectEqual(client.ask(HTTP2Client.get("/last")).text, "ok")
            try expectEqual(client.ask(HTTP2Client.get("/")).text, "ok")
            let page = try place.gateway.askOperators("/metrics").text
            for (name, value) in [
                ("connections_total", 2), ("connections_ended_total", 1), ("streams_total", 6),
                ("resets_received_total", 3), ("resets_sent_total", 0), ("goaways_total", 1),
            ] {
                #expect(page.contains("\nportcullis_origin_http2_\(name) \(value)\n"), "\(name)")
            }
        }

        @Test func `a POST that the server may have taken is not sent again`() throws {
            let place = try Place { connection in
                let server = try Server(connection)
                guard let (id, _) = try server.nextRequest() else { return }
                if connection.number == 0 { return }
                try server.answer(id, content: "twice")
            }
            defer { place.stop() }
            let client = try place.connect()
            let length = [("content-length", "1")]
            let answer = try client.ask(HTTP2Client.post("/", length), [1])
            expectEqual(answer.status, 502)
            #expect(answer.text.contains("origin-closed"))
        }

        @Test func `a slow client stops its own download and no other`() throws {
            let place = try Place { connection in
                let server = try Server(connection)
                while let (id, request) = try server.nextRequest() {
                    guard request.path == "/large" else {
                        try server.answer(id, content: "ok")
                        continue
                    }
                    try server.sendHead(id, [(":status", "200")])
                    // More than the stream's window: the rest would wait for the client.
                    for _ in 0..<8 {
                        try server.send(.data, on: id, Array(repeating: 7, count: 16_384))
                    }
                }
            }
            defer { place.stop() }
            let slow = try HTTP2Client(try place.gateway.connect(), settings: [(4, 10)])
            slow.opensWindows = false
            _ = try slow.open(HTTP2Client.get("/large"))
            try slow.readUntil { slow.soFar(1).content.count == 10 }
            let other = try place.connect()
            for _ in 0..<5 { try expectEqual(other.ask(HTTP2Client.get()).text, "ok") }
            expectEqual(place.origin.connections.count, 1)
        }

        @Test func `a slow origin stops the upload, which then goes on whole`() throws {
            let gate = Gate()
            let place = try Place { connection in
                let server = try Server(connection)
                server.opensWindows = false
                guard let (id, _) = try server.nextHead() else { return }
                _ = try server.read(id) { $0.content.count >= 65_535 }
                try gate.pass()
                try server.openWindow(0, by: 1 << 28)
                try server.openWindow(id, by: 1 << 28)
                let request = try server.read(id) { $0.isComplete }
                try server.answer(id, content: "\(request.content.count)")
            }
            defer { place.stop() }
            let content = Array(repeating: UInt8(1), count: 1 << 20)
            let client = try place.connect()
            let id = try client.open(HTTP2Client.post(), ends: false)
            gate.open()
            try client.sendInTime(content, on: id)
            try expectEqual(client.answer(id).text, "\(content.count)")
        }

        /// What a malicious or broken origin sends on a stream, and how its client learns of it.
        private static let wrong: [(String, @Sendable (Server, UInt32) throws -> Void)] = [
            ("101", { try $0.sendHead($1, [(":status", "101")]) }),
            (
                "a field of one connection",
                {
                    try $0.sendHead($1, [(":status", "200"), ("connection", "close")], ends: true)
                }
            ),
            (
                "a line end in a value",
                {
                    try $0.sendHead($1, [(":status", "200"), ("x", "a\r\nb: c")], ends: true)
                }
            ),
            (
                "too long a head",
                {
                    let long = String(repeating: "x", count: 30_000)
                    try $0.sendHead($1, [(":status", "200"), ("x", long)], ends: true)
                }
            ),
            (
                "interim heads without end",
                {
                    for _ in 0..<100 { try $0.sendHead($1, [(":status", "103")]) }
                }
            ),
            (
                "two lengths",
                {
                    let length = ("content-length", "1")
                    try $0.sendHead($1, [(":status", "200"), length, length])
                }
            ),
            (
                "a pseudo-field that is none",
                {
                    try $0.sendHead($1, [(":status", "200"), (":x", "y")], ends: true)
                }
            ),
        ]

        @Test(arguments: wrong.indices)
        func `a response that is wrong costs its request and no other`(_ index: Int) throws {
            let (note, act) = Self.wrong[index]
            let place = try Place(options: ", eject: { failures: 0 }") { connection in
                let server = try Server(connection)
                while let (id, request) = try server.nextRequest() {
                    if request.path == "/wrong" {
                        try act(server, id)
                    } else {
                        try server.answer(id, content: "ok")
                    }
                }
            }
            defer { place.stop() }
            let client = try place.connect()
            try expectEqual(client.ask(HTTP2Client.get("/")).text, "ok")
            try expectEqual(client.ask(HTTP2Client.get("/wrong")).status, 502, "\(note)")
            try expectEqual(client.ask(HTTP2Client.get("/")).text, "ok", "\(note)")
            expectEqual(place.origin.connections.count, 1, "\(note)")
        }

        @Test func `content that is not as long as was said never looks whole`() throws {
            let place = try Place(options: ", eject: { failures: 0 }") { connection in
                let server = try Server(connection)
                while let (id, request) = try server.nextRequest() {
                    let length = ("content-length", "5")
                    try server.sendHead(id, [(":status", "200"), length])
                    let bytes = request.path == "/short" ? "abc" : "abcdefg"
                    try server.send(.data, flags: 1, on: id, Array(bytes.utf8))
                }
            }
            defer { place.stop() }
            let client = try place.connect()
            for path in ["/short", "/long"] {
                let answer = try client.ask(HTTP2Client.get(path))
                #expect(!answer.isComplete)
                #expect(answer.reset != nil)
            }
            let old = try place.gateway.connect()
            try old.send("GET /short HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(throws: (any Error).self) { try old.readResponse() }
        }

        /// Floods that end the connection.
        private static let floods: [(String, @Sendable (Server) throws -> Void)] = [
            ("pings", { try $0.send(.ping, Array(repeating: 0, count: 8)) }),
            ("settings", { try $0.send(.settings) }),
            ("resets", { try $0.reset(1, 8) }),
            ("frames of no type", { try $0.send(.unknown, [1]) }),
            ("windows", { try $0.openWindow(0, by: 1) }),
            ("priorities", { try $0.send(.priority, on: 1, [0, 0, 0, 0, 1]) }),
        ]

        @Test(arguments: floods.indices)
        func `a flood ends its connection, and the next request has another`(_ index: Int) throws {
            let (note, act) = Self.floods[index]
            let place = try Place(options: ", eject: { failures: 0 }") { connection in
                let server = try Server(connection)
                while let (id, request) = try server.nextRequest() {
                    guard request.path == "/flood" else {
                        try server.answer(id, content: "ok")
                        continue
                    }
                    do {
                        for _ in 0..<100_000 { try act(server) }
                    } catch {}
                    return
                }
            }
            defer { place.stop() }
            let client = try place.connect()
            try expectEqual(client.ask(HTTP2Client.get("/flood")).status, 502, "\(note)")
            try expectEqual(client.ask(HTTP2Client.get("/")).text, "ok", "\(note)")
            expectEqual(place.origin.connections.count, 2, "\(note)")
        }

        @Test func `an origin that goes silent is pinged, and its connection given up`() throws {
            let place = try Place(options: ", first_byte_timeout: 200ms") { connection in
                let server = try Server(connection)
                guard connection.number == 0 else {
                    while let (id, _) = try server.nextRequest() {
                        try server.answer(id, content: "ok")
                    }
                    return
                }
                server.answersPings = false
                _ = try server.nextRequest()
                try connection.awaitEnd()
            }
            defer { place.stop() }
            let client = try place.connect()
            try expectEqual(client.ask(HTTP2Client.get()).status, 504)
            try expectEqual(client.ask(HTTP2Client.get()).text, "ok")
            expectEqual(place.origin.connections.count, 2)
        }

        @Test func `an idle connection is kept for pool_idle, and then ends in order`() throws {
            let place = try Place(more: "timeouts: { pool_idle: 100ms }")
            defer { place.stop() }
            try expectEqual(place.gateway.ask(Self.get).text, "ok")
            #expect(place.origin.wait { $0.first?.isOpen == false })
            try expectEqual(place.gateway.ask(Self.get).text, "ok")
            expectEqual(place.origin.connections.count, 2)
        }

        @Test func `max_connections bounds the requests at once`() throws {
            let gate = Gate()
            let origin = try TestOrigin { connection in
                let server = try Server(connection)
                guard let (first, _) = try server.nextRequest() else { return }
                try gate.pass()
                try server.answer(first, content: "1")
                guard let (second, _) = try server.nextRequest() else { return }
                try server.answer(second, content: "2")
                try connection.awaitEnd()
            }
            let server = "{ address: \"\(origin.address)\", max_connections: 1 }"
            let gateway = try TestGateway(
                [("shop", [server])],
                listen: "address: 127.0.0.1:0, http2: on",
                originOptions: ", http2: on"
            )
            defer {
                gateway.stop()
                origin.stop()
            }
            let client = try HTTP2Client(try gateway.connect())
            let (one, two) = (
                try client.open(HTTP2Client.get()), try client.open(HTTP2Client.get())
            )
            gate.open()
            try expectEqual(client.answer(one).text, "1")
            try expectEqual(client.answer(two).text, "2")
            expectEqual(origin.connections.count, 1)
        }

        @Test func `an upgrade is a plain request there`() throws {
            let place = try Place()
            defer { place.stop() }
            let response = try place.gateway.ask(
                """
                GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
                Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n
                """
            )
            expectEqual(response.status, 200)
            expectEqual(place.origin.requests.first?.head.has("upgrade"), false)
        }
    }
}
