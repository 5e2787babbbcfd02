import Expectations
import Foundation
import LoopbackKit
import Testing

extension Scenarios {
    /// A client of HTTP/2 that means harm. Each flood ends its own connection; a good client is
    /// served on another meanwhile.
    struct HTTP2HostileTests {
        private static let calm: UInt32 = 0xB

        /// Sends and reads until the connection ends, by a GOAWAY with the code; the metrics then
        /// count it.
        private func flood(
            limits: String = "",
            expecting code: UInt32 = calm,
            _ attack: (HTTP2Client) throws -> Void
        ) throws -> Bench {
            let bench = try Bench(
                http2: true,
                more: "limits: { http2: { \(limits) } }\nadmin: { address: 127.0.0.1:0 }"
            )
            let good = try bench.connectHTTP2()
            try expectEqual(good.ask(HTTP2Client.get()).status, 200)
            let client = try bench.connectHTTP2()
            // The answer to the gateway's SETTINGS must not come in the middle of a head.
            try client.readUntil { !client.settings.isEmpty }
            // The gateway may end the connection before all is sent.
            do { try attack(client) } catch WireFault.reset {} catch WireFault.ended {}
            try expectEqual(client.lastCode(), code)
            try expectEqual(good.ask(HTTP2Client.get()).status, 200)
            return bench
        }

        @Test func `streams that are opened and reset at once are bounded`() throws {
            let bench = try flood(limits: "resets: 50/m") { client in
                var bytes: [UInt8] = []
                let block = HTTP2Client.block(HTTP2Client.get())
                for _ in 0..<100 {
                    let id = client.nextStream()
                    bytes += HTTP2Client.frame(.headers, 5, id, block)
                    bytes += HTTP2Client.frame(.reset, 0, id, HTTP2Client.bytes(8))
                }
                try client.wire.send(bytes)
            }
            defer { bench.stop() }
            // What was given up in the same moment was not even begun.
            #expect(bench.origin.requests.count <= 2 + 50)
        }

        @Test func `streams whose resets the client provokes are bounded`() throws {
            let bench = try flood(limits: "provoked_resets: 50/m") { client in
                for _ in 0..<100 {
                    let id = try client.open(HTTP2Client.post(), ends: false)
                    // A window beyond 2^31 - 1 is an error of the stream (RFC 9113 §6.9.1).
                    try client.openWindow(id, by: 0x7FFF_FFFF)
                }
            }
            bench.stop()
        }

        @Test func `heads that are too long are bounded`() throws {
            let bench = try flood(limits: "provoked_resets: 20/m") { client in
                let long = String(repeating: "a", count: 17_000)
                for _ in 0..<100 {
                    let id = try client.open(HTTP2Client.get("/", [("x", long)]))
                    try client.readUntil { client.soFar(id).isComplete || client.goAways.count > 0 }
                    if !client.goAways.isEmpty { break }
                    expectEqual(client.soFar(id).status, 431)
                }
            }
            bench.stop()
        }

        @Test func `streams that are refused all at once end their connection at the limit`() throws
        {
            let bench = try Bench(
                http2: true,
                more: "limits: { http2: { streams: 4, provoked_resets: 20/m } }"
            )
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            let block = HTTP2Client.block(HTTP2Client.get())
            // It has not seen the limit yet, and all comes with few reads.
            let ids = (0..<1000).map { _ in client.nextStream() }
            try client.wire.send(ids.flatMap { HTTP2Client.frame(.headers, 5, $0, block) })
            try expectEqual(client.lastCode(), Self.calm)
            #expect(ids.count { client.soFar($0).reset == 7 } <= 21)
        }

        @Test(arguments: [
            ("pings: 20/m", HTTP2Client.FrameType.ping, 8), ("settings: 10/m", .settings, 0),
            ("other_frames: 20/m", .unknown, 5),
        ])
        func `frames of no use are bounded`(
            _ limit: String,
            _ type: HTTP2Client.FrameType,
            _ count: Int
        ) throws {
            let bench = try flood(limits: limit) { client in
                for _ in 0..<100 { try client.send(type, [UInt8](repeating: 0, count: count)) }
            }
            bench.stop()
        }

        @Test func `frames that carry nothing are bounded`() throws {
            let bench = try flood(limits: "empty_frames: 20/m") { client in
                let id = try client.open(HTTP2Client.post(), ends: false)
                for _ in 0..<100 { try client.send(.data, on: id) }
            }
            bench.stop()
        }

        @Test func `a head in too many frames is refused with its connection`() throws {
            let bench = try flood { client in
                let id = client.nextStream()
                let block = HTTP2Client.block(HTTP2Client.get())
                try client.send(.headers, flags: 1, on: id, block)
                for number in 0..<100 {
                    let field = HTTP2Client.block([("x\(number)", "y")])
                    try client.send(.continuation, on: id, field)
                }
            }
            bench.stop()
        }

        /// nghttp2 has limits of its own: 1,000 resets at once, and 8 frames.
        @Test func `limits that are raised or off are those of the configuration`() throws {
            let bench = try Bench(
                http2: true,
                more: "limits: { http2: { resets: off, continuations: 20 } }"
            )
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            try client.readUntil { !client.settings.isEmpty }
            let block = HTTP2Client.block(HTTP2Client.get())
            var bytes: [UInt8] = []
            for _ in 0..<1_500 {
                let id = client.nextStream()
                bytes += HTTP2Client.frame(.headers, 5, id, block)
                bytes += HTTP2Client.frame(.reset, 0, id, HTTP2Client.bytes(8))
            }
            try client.wire.send(bytes)
            let id = client.nextStream()
            try client.send(.headers, flags: 1, on: id, Array(block.dropLast(12)))
            for place in 0..<12 {
                let flags = place == 11 ? HTTP2Client.endsHead : 0
                let start = block.count - 12 + place
                try client.send(.continuation, flags: flags, on: id, [block[start]])
            }
            try expectEqual(client.answer(id).status, 200)
        }

        @Test func `a head that swells when it is unpacked is refused with its connection`() throws
        {
            let bench = try flood { client in
                let id = client.nextStream()
                // One entry of the dynamic table, and then a byte for each time it is named.
                let value = [UInt8](repeating: 0x61, count: 3000)
                var block = HTTP2Client.block(HTTP2Client.get())
                block += [0x40] + HTTP2Client.field(Array("x".utf8), value).dropFirst()
                block += [UInt8](repeating: 0xBE, count: 8000)
                try client.send(.headers, flags: 5, on: id, block)
            }
            bench.stop()
        }

        @Test func `windows that open in tiny steps are bounded`() throws {
            let bench = try flood { client in
                for _ in 0..<5000 { try client.openWindow(0, by: 1) }
            }
            bench.stop()
        }

        @Test func `a head that does not end is not waited for`() throws {
            let bench = try Bench(http2: true, more: "timeouts: { head: 100ms }")
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            try client.readUntil { !client.settings.isEmpty }
            let block = HTTP2Client.block(HTTP2Client.get())
            try client.send(.headers, flags: 1, on: client.nextStream(), block)
            try expectEqual(client.lastCode(), Self.calm)
        }

        @Test func `more streams than are allowed are refused, and the others served`() throws {
            let gate = Gate()
            let bench = try Bench(
                http2: true,
                more: "limits: { http2: { streams: 4 } }",
                script: TestOrigin.slow(until: gate)
            )
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            // It has not seen the limit yet.
            let ids = try (0..<6).map { _ in try client.open(HTTP2Client.get("/slow")) }
            try expectEqual(client.answer(ids[4]).reset, 7)
            try expectEqual(client.answer(ids[5]).reset, 7)
            for _ in ids { gate.open() }
            for id in ids[..<4] { try expectEqual(client.answer(id).status, 200) }
        }

        @Test func `a client that knows the limit of streams and exceeds it is not served`() throws
        {
            let gate = Gate()
            let bench = try Bench(
                http2: true,
                more: "limits: { http2: { streams: 4 } }",
                script: TestOrigin.slow(until: gate)
            )
            defer { bench.stop() }
            defer { for _ in 0..<6 { gate.open() } }
            let client = try bench.connectHTTP2()
            try client.readUntil { client.settings[3] == 4 }
            for _ in 0..<6 { try client.open(HTTP2Client.get("/slow")) }
            // PROTOCOL_ERROR (RFC 9113 §5.1.2).
            try expectEqual(client.lastCode(), 1)
        }

        @Test func `heads for streams that are over are bounded`() throws {
            let bench = try flood(limits: "other_frames: 20/m") { client in
                let id = try client.open(HTTP2Client.get())
                try expectEqual(client.answer(id).status, 200)
                let block = HTTP2Client.block(HTTP2Client.get())
                for _ in 0..<100 { try client.send(.headers, flags: 5, on: id, block) }
            }
            bench.stop()
        }

        @Test func `a client that never opens its windows loses its streams, and no more`() throws {
            let bench = try Bench(http2: true, more: "timeouts: { response_idle: 200ms }")
            defer { bench.stop() }
            let client = try bench.connectHTTP2(settings: [(4, 0)])
            let id = try client.open(HTTP2Client.get())
            try expectEqual(client.answer(id).reset, 8)
            try client.send(.settings, [0, 4] + HTTP2Client.bytes(65_535))
            try expectEqual(client.ask(HTTP2Client.get()).status, 200)
        }

        @Test func `responses that wait for windows take bounded memory`() throws {
            let bench = try Bench(
                http2: true,
                more: "limits: { http2: { unsent: 256KiB } }"
            ) { connection in
                while let request = try connection.nextRequest() {
                    let body = String(repeating: "x", count: 60_000)
                    try connection.answer(200, body: body, to: request)
                }
            }
            defer { bench.stop() }
            let client = try bench.connectHTTP2(settings: [(4, 0)])
            // A busy gateway may read only 4 KiB of each.
            let ids = try (0..<80).map { _ in try client.open(HTTP2Client.get()) }
            try client.readUntil { ids.contains { client.soFar($0).reset == Self.calm } }
            try client.send(.ping, [UInt8](repeating: 0, count: 8))
            try client.readUntil { client.pongs == 1 }
            #expect(ids.contains { client.soFar($0).reset == nil })
        }

        // MARK: Priorities

        /// RFC 9113 §6.3. The next connection is served.
        @Test func `PRIORITY of no stream ends its connection`() throws {
            let bench = try Bench(http2: true)
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            try expectEqual(client.ask(HTTP2Client.get()).status, 200)
            try client.send(.priority, [0, 0, 0, 0, 15])
            try expectEqual(client.lastCode(), 1)
            let next = try bench.connectHTTP2()
            try expectEqual(next.ask(HTTP2Client.get()).status, 200)
        }

        /// RFC 7540 §5.3.1.
        @Test func `PRIORITY of a stream that depends on itself ends this stream alone`() throws {
            let gate = Gate()
            let bench = try Bench(http2: true, script: TestOrigin.slow(until: gate))
            defer { bench.stop() }
            defer { for _ in 0..<2 { gate.open() } }
            let client = try bench.connectHTTP2()
            let (wrong, good) = try (
                client.open(HTTP2Client.get("/slow")), client.open(HTTP2Client.get("/slow"))
            )
            // The exclusive bit is no part of the stream's number.
            try client.send(.priority, on: wrong, HTTP2Client.bytes(1 << 31 | wrong) + [15])
            try expectEqual(client.answer(wrong).reset, 1)
            try client.send(.priority, on: good, HTTP2Client.bytes(wrong) + [15])
            for _ in 0..<2 { gate.open() }
            try expectEqual(client.answer(good).status, 200)
        }

        /// A stream that is not open can't be reset (RFC 9113 §6.4).
        @Test func `PRIORITY of an idle stream that depends on itself ends its connection`() throws
        {
            let bench = try Bench(http2: true)
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            try expectEqual(client.ask(HTTP2Client.get()).status, 200)
            try client.send(.priority, on: 9, HTTP2Client.bytes(9) + [15])
            try expectEqual(client.lastCode(), 1)
        }

        /// Some clients still send a tree of priorities, for streams in every state.
        @Test func `other PRIORITY frames change nothing`() throws {
            let bench = try Bench(http2: true)
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            try expectEqual(client.ask(HTTP2Client.get()).status, 200)
            for (id, dependency) in [(1, 0), (3, 1), (9, 3), (11, 1 << 31)] as [(UInt32, UInt32)] {
                try client.send(.priority, on: id, HTTP2Client.bytes(dependency) + [15])
            }
            try expectEqual(client.ask(HTTP2Client.get()).status, 200)
        }

        // MARK: Malformed requests

        /// What RFC 9113 §8 calls malformed, by what is done about it: 1 is RST_STREAM with
        /// PROTOCOL_ERROR, anything else the response's status.
        private static let malformed:
            [(note: String, fields: [(String, String)], outcome: UInt32)] = [
                ("no path", HTTP2Client.get().filter { $0.0 != ":path" }, 1),
                ("no method", HTTP2Client.get().filter { $0.0 != ":method" }, 1),
                ("no scheme", HTTP2Client.get().filter { $0.0 != ":scheme" }, 1),
                ("no host", HTTP2Client.get().filter { $0.0 != ":authority" }, 1),
                ("an empty path", HTTP2Client.get(""), 1),
                ("two paths", HTTP2Client.get() + [(":path", "/b")], 1),
                ("an unknown pseudo-field", HTTP2Client.get() + [(":other", "b")], 1),
                ("a response's pseudo-field", HTTP2Client.get() + [(":status", "200")], 1),
                ("a late pseudo-field", [("x", "y")] + HTTP2Client.get(), 1),
                ("an absolute path", HTTP2Client.get("http://b.test/"), 1),
                ("an authority for a path", HTTP2Client.get("b.test:80"), 1),
                ("an asterisk for GET", HTTP2Client.get("*"), 1),
                ("a space in the path", HTTP2Client.get("/a b"), 1),
                ("a line's end in the path", HTTP2Client.get("/ HTTP/1.1\r\nx: y"), 1),
                ("a fragment", HTTP2Client.get("/a#b"), 400),
                (
                    "a method with a space",
                    [(":method", "GET /b")] + HTTP2Client.get().dropFirst(), 1
                ),
                (
                    "a method in lower case", [(":method", "get")] + HTTP2Client.get().dropFirst(),
                    400
                ),
                ("CONNECT", [(":method", "CONNECT"), (":authority", "b.test:443")], 501),
                ("TRACE", [(":method", "TRACE")] + HTTP2Client.get().dropFirst(), 501),
                (
                    "another scheme",
                    [(":method", "GET"), (":scheme", "ftp"), (":path", "/"), (":authority", "a")],
                    400
                ),
                (
                    "https without TLS",
                    [
                        (":method", "GET"), (":scheme", "https"), (":path", "/"),
                        (":authority", "a"),
                    ], 400
                ),
                (
                    "userinfo",
                    [
                        (":method", "GET"), (":scheme", "http"), (":path", "/"),
                        (":authority", "u@a"),
                    ], 400
                ),
                ("an upper-case name", HTTP2Client.get("/", [("X-Note", "y")]), 1),
                ("an empty name", HTTP2Client.get("/", [("", "y")]), 1),
                ("a colon in a name", HTTP2Client.get("/", [("x:y", "z")]), 1),
                ("a line's end in a name", HTTP2Client.get("/", [("x\r\ny", "z")]), 1),
                ("CR LF in a value", HTTP2Client.get("/", [("x", "y\r\nz: a")]), 1),
                ("LF in a value", HTTP2Client.get("/", [("x", "y\nz")]), 1),
                ("NUL in a value", HTTP2Client.get("/", [("x", "y\0z")]), 1),
                ("white space around a value", HTTP2Client.get("/", [("x", " y")]), 1),
                ("another host", HTTP2Client.get("/", [("host", "b.test")]), 400),
                ("connection", HTTP2Client.get("/", [("connection", "x-note")]), 1),
                ("keep-alive", HTTP2Client.get("/", [("keep-alive", "1")]), 1),
                ("upgrade", HTTP2Client.get("/", [("upgrade", "websocket")]), 1),
                ("proxy-connection", HTTP2Client.get("/", [("proxy-connection", "x")]), 1),
                ("te", HTTP2Client.get("/", [("te", "gzip")]), 1),
                ("transfer-encoding", HTTP2Client.get("/", [("transfer-encoding", "chunked")]), 1),
                (
                    "two lengths",
                    HTTP2Client.get("/", [("content-length", "0"), ("content-length", "0")]), 1
                ),
                ("a length that is none", HTTP2Client.get("/", [("content-length", "+0")]), 1),
                ("a length without content", HTTP2Client.get("/", [("content-length", "5")]), 1),
                ("a twin of a length", HTTP2Client.get("/", [("content_length", "5")]), 400),
                (
                    "a head too long",
                    HTTP2Client.get("/", [("x", String(repeating: "y", count: 16_400))]), 431
                ),
            ]

        @Test func `what is malformed reaches no origin, and its connection serves the next`()
            throws
        {
            let bench = try Bench(http2: true)
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            for (note, fields, outcome) in Self.malformed {
                let answer = try client.ask(fields)
                let got = answer.status == 0 ? answer.reset : UInt32(answer.status)
                expectEqual(got, outcome, "\(note)")
            }
            #expect(bench.origin.requests.isEmpty)
            try expectEqual(client.ask(HTTP2Client.get()).status, 200)
            expectEqual(bench.origin.requests.count, 1)
        }

        @Test(arguments: [("5", "abc", true), ("5", "abcdefg", true), ("3", "abc", false)])
        func `content of another length than was said never looks complete`(
            _ length: String,
            _ content: String,
            _ isRefused: Bool
        ) throws {
            let bench = try Bench(http2: true)
            defer { bench.stop() }
            let client = try bench.connectHTTP2()
            let fields = HTTP2Client.post("/", [("content-length", length)])
            let answer = try client.ask(fields, Array(content.utf8))
            expectEqual(answer.reset, isRefused ? 1 : nil)
            #expect(bench.origin.settles())
            expectEqual(bench.origin.requests.count, isRefused ? 0 : 1)
        }

        @Test func `what can't be frames ends the connection`() throws {
            let bench = try Bench(http2: true)
            defer { bench.stop() }
            for bytes in [
                HTTP2Client.frame(.data, 0, 0, [1]), HTTP2Client.frame(.headers, 4, 2, []),
                HTTP2Client.frame(.settings, 0, 0, [1, 2, 3]),
                HTTP2Client.frame(.continuation, 4, 1, []),
                HTTP2Client.frame(.push, 4, 1, [0, 0, 0, 2]),
                [0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0, 1],
                HTTP2Client.frame(.headers, 5, 1, [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]),
            ] {
                let client = try bench.connectHTTP2()
                try client.wire.send(bytes)
                let code = try client.lastCode()
                #expect(code != nil && code != 0)
            }
            #expect(bench.origin.requests.isEmpty)
        }
    }
}
