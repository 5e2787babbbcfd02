import CNGHTTP2
import Expectations
import Testing

@testable import HTTPWire

/// The client's end of a connection against a scripted server: bytes in, news out.
struct ClientSessionTests {
    /// Frames as a server writes them (RFC 9113 §4.1). Heads are literals, so that they can hold
    /// what no honest encoder writes.
    enum Frame {
        static let (endsStream, endsHead): (UInt8, UInt8) = (0x1, 0x4)
        static let settings = make(4, 0, 0)

        static func make(
            _ type: UInt8,
            _ flags: UInt8,
            _ id: Int32,
            _ payload: [UInt8] = []
        ) -> [UInt8] {
            let count = payload.count
            let length = [UInt8(count >> 16), UInt8(count >> 8 & 255), UInt8(count & 255)]
            return length + [type, flags] + number(UInt32(id)) + payload
        }

        static func number(_ value: UInt32) -> [UInt8] {
            [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
        }

        static func block(_ fields: [(String, String)]) -> [UInt8] {
            var bytes: [UInt8] = []
            for (name, value) in fields {
                bytes.append(0)
                for text in [name, value] {
                    bytes.append(UInt8(text.utf8.count))
                    bytes += Array(text.utf8)
                }
            }
            return bytes
        }

        static func head(
            _ id: Int32,
            _ status: String,
            _ more: [(String, String)] = [],
            ends: Bool = false
        ) -> [UInt8] {
            make(1, endsHead | (ends ? endsStream : 0), id, block([(":status", status)] + more))
        }

        static func trailers(_ id: Int32, _ fields: [(String, String)]) -> [UInt8] {
            make(1, endsHead | endsStream, id, block(fields))
        }

        static func data(_ id: Int32, _ text: String, ends: Bool = false) -> [UInt8] {
            make(0, ends ? endsStream : 0, id, Array(text.utf8))
        }

        static func reset(_ id: Int32, _ code: UInt32) -> [UInt8] { make(3, 0, id, number(code)) }

        static func goAway(_ last: UInt32, _ code: UInt32 = 0) -> [UInt8] {
            make(7, 0, 0, number(last) + number(code))
        }
    }

    /// A session with a server that has greeted it.
    final class Line {
        let session: HTTP2ClientSession
        /// What the server got, preface aside.
        private(set) var sent: [UInt8] = []

        init(settings: [(UInt16, UInt32)] = [], limits: HTTP2Limits = HTTP2Limits()) throws {
            session = try HTTP2ClientSession(limits, isSecure: false)
            var payload: [UInt8] = []
            for (id, value) in settings {
                payload += [0, UInt8(id)] + Frame.number(value)
            }
            try take(Frame.make(4, 0, 0, payload))
            flush()
            sent = []
        }

        func take(_ bytes: [UInt8]) throws(HTTP2ClientSession.Fault) {
            try session.receive(bytes.span, now: 1_000)
        }

        func flush() {
            var bytes: [UInt8] = []
            try? session.send(into: &bytes, atMost: 1 << 20, now: 1_000)
            sent += bytes
        }

        func ask(
            _ head: String = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
            isHead: Bool = false,
            hasContent: Bool = false
        ) throws -> HTTP2ClientChannel {
            let bytes = Array(head.utf8)
            let begun = session.begin(bytes.span, isHead: isHead, hasContent: hasContent)
            let channel = try #require(begun)
            flush()
            return channel
        }

        /// The frames that the server got, as types and flags.
        var frames: [(type: UInt8, flags: UInt8, payload: [UInt8])] {
            var found: [(UInt8, UInt8, [UInt8])] = []
            var rest = sent[...]
            while rest.count >= 9 {
                let head = Array(rest.prefix(9))
                let count = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
                found.append((head[3], head[4], Array(rest.dropFirst(9).prefix(count))))
                rest = rest.dropFirst(9 + count)
            }
            return found
        }
    }

    private static func text(_ built: ResponseHeadBuilder.Built?) -> String {
        String(decoding: built?.bytes ?? [], as: UTF8.self)
    }

    @Test func `a session is open when the server's SETTINGS have come`() throws {
        let session = try HTTP2ClientSession(HTTP2Limits(), isSecure: false)
        expectEqual(session.standing, .greeting)
        #expect(!session.hasRoom)
        try session.receive(Frame.settings.span, now: 0)
        expectEqual(session.standing, .open)
        #expect(session.hasRoom)
    }

    @Test func `bytes of HTTP/1.1 are a violation`() throws {
        let session = try HTTP2ClientSession(HTTP2Limits(), isSecure: false)
        try session.receive(Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8).span, now: 0)
        var bytes: [UInt8] = []
        try session.send(into: &bytes, atMost: 1 << 20, now: 0)
        expectEqual(session.standing, .violated)
        #expect(session.isOver)
    }

    @Test func `a head as long as may be configured goes out`() throws {
        let line = try Line()
        let field = "X-Long: " + String(repeating: "x", count: 40_000) + "\r\n"
        let fields = String(repeating: field, count: 25)
        let channel = try line.ask("GET / HTTP/1.1\r\nHost: a.test\r\n\(fields)\r\n")
        #expect(channel.isHeadSent)
        expectEqual(channel.end, nil)
    }

    @Test func `a response becomes a head of HTTP/1.1, content and trailers`() throws {
        let line = try Line()
        let channel = try line.ask()
        try line.take(
            Frame.head(1, "103", [("link", "</a>")]) + Frame.head(1, "200", [("x-a", "b")])
                + Frame.data(1, "hello") + Frame.trailers(1, [("grpc-status", "0")])
        )
        #expect(line.session.nextNews() === channel)
        let interim = channel.takeHead()
        expectEqual(interim?.isInterim, true)
        expectEqual(Self.text(interim), "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n")
        expectEqual(
            Self.text(channel.takeHead()),
            "HTTP/1.1 200 OK\r\nx-a: b\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        expectEqual(line.session.takeContent(of: channel, atMost: 99), Array("hello".utf8))
        #expect(channel.isInputEnded)
        expectEqual(Self.text(channel.trailers), "grpc-status: 0\r\n\r\n")
        expectEqual(channel.end, .inOrder)
        expectEqual(line.session.openCount, 0)
    }

    @Test(arguments: [
        ("200", false, "content-length: 0\r\n"), ("200", true, ""), ("204", false, ""),
        ("304", false, ""),
    ])
    func `a response that ends with its head has the length that its kind has`(
        status: String,
        isHead: Bool,
        field: String
    ) throws {
        let line = try Line()
        let channel = try line.ask(isHead: isHead)
        try line.take(Frame.head(1, status, ends: true))
        #expect(Self.text(channel.takeHead()).hasSuffix("\r\n" + field + "\r\n"))
        #expect(channel.isInputEnded)
    }

    @Test func `a request has no field of one connection, and TE says trailers only`() throws {
        let head = """
            POST /s/M?a=b HTTP/1.1\r\nX-One: 1 \r\nConnection: close, TE\r\nTE: trailers\r\n\
            Transfer-Encoding: chunked\r\nUpgrade: websocket\r\nHost: a.test\r\n\r\n
            """
        let client = try HTTP2ClientSession(HTTP2Limits(), isSecure: true)
        let server = try HTTP2Session(HTTP2Limits(), nonce: 1, memory: HeadMemory())
        try client.receive(Frame.settings.span, now: 0)
        let bytes = Array(head.utf8)
        _ = client.begin(bytes.span, isHead: false, hasContent: true)
        var sent: [UInt8] = []
        try client.send(into: &sent, atMost: 1 << 20, now: 0)
        try server.receive(sent.span, now: 0)
        let channel = try #require(server.nextNews())
        #expect(channel.isHTTPS)
        let built = try #require(server.takeHead(of: channel))
        expectEqual(built.fault, nil)
        expectEqual(
            String(decoding: server.heads[built.range], as: UTF8.self),
            """
            POST /s/M?a=b HTTP/1.1\r\nhost: a.test\r\nx-one: 1\r\nte: trailers\r\n\
            transfer-encoding: chunked\r\n\r\n
            """
        )
    }

    @Test func `a field that is another one in each request takes no place in the table`() throws {
        let line = try Line()
        func tableBytes(after id: String) throws -> Int {
            let unique = "X-Request-Id: \(id)\r\ntraceparent: \(id)\r\nGrpc-Timeout: \(id)m\r\n"
            _ = try line.ask("GET / HTTP/1.1\r\nHost: a.test\r\nX-Note: one\r\n\(unique)\r\n")
            return nghttp2_session_get_hd_deflate_dynamic_table_size(line.session.pointer)
        }
        let bytes = try tableBytes(after: "1")
        #expect(bytes > 0)
        try expectEqual(tableBytes(after: "2"), bytes)
    }

    @Test func `content waits for the window, and its end comes only when it is said`() throws {
        let line = try Line(settings: [(4, 5)])
        let channel = try line.ask("POST / HTTP/1.1\r\nHost: a\r\n\r\n", hasContent: true)
        line.session.append(Array("hello world".utf8).span, to: channel)
        line.flush()
        expectEqual(line.frames.map(\.type), [1, 0])
        expectEqual(line.frames[1].payload, Array("hello".utf8))
        #expect(!channel.isClear)
        channel.isStalled = true
        try line.take(Frame.make(8, 0, 1, Frame.number(100)))
        line.flush()
        #expect(line.session.nextNews() === channel)
        #expect(channel.takeDrained())
        #expect(line.frames.allSatisfy { $0.flags & Frame.endsStream == 0 })
        line.session.complete(channel)
        line.flush()
        expectEqual(line.frames.last?.flags, Frame.endsStream)
        #expect(channel.isOutputSent)
    }

    @Test func `content that stands after the head goes with it, and the windows tell if it fits`()
        throws
    {
        let line = try Line(settings: [(4, 8)])
        let head = "POST / HTTP/1.1\r\nX: \u{E9}\r\nHost: a\r\n\r\n"
        let bytes = Array((head + "a: b\r\n\r\n").utf8)
        let begun = line.session.begin(bytes.span, isHead: false, hasContent: true)
        let channel = try #require(begun)
        expectEqual(channel.outgoingCount, 8)
        #expect(line.session.isOpen(for: channel))
        line.session.append(Array("c".utf8).span, to: channel)
        #expect(!line.session.isOpen(for: channel))
        line.flush()
        expectEqual(line.frames.map(\.type), [1, 0])
        expectEqual(line.frames[1].payload, Array("a: b\r\n\r\n".utf8))
        #expect(!line.session.isOpen(for: channel))
        try line.take(Frame.make(8, 0, 1, Frame.number(1)))
        #expect(line.session.isOpen(for: channel))
    }

    @Test func `a reset request never looks complete`() throws {
        let line = try Line()
        let channel = try line.ask("POST / HTTP/1.1\r\nHost: a\r\n\r\n", hasContent: true)
        line.session.append(Array("half".utf8).span, to: channel)
        line.session.reset(channel, .cancel)
        line.flush()
        expectEqual(line.frames.last?.type, 3)
        #expect(line.frames.allSatisfy { $0.type != 0 || $0.flags & Frame.endsStream == 0 })
        expectEqual(line.session.openCount, 0)
    }

    @Test func `the smaller limit of streams holds, and changes with the server's`() throws {
        let line = try Line(settings: [(3, 2)])
        _ = try line.ask()
        #expect(line.session.hasRoom)
        _ = try line.ask()
        #expect(!line.session.hasRoom)
        try line.take(Frame.make(4, 0, 0, [0, 3] + Frame.number(1_000)))
        expectEqual(line.session.streamsMax, HTTP2Limits().streamsMax)
        #expect(line.session.hasRoom)
    }

    @Test func `streams above the last of GOAWAY were refused, and those below go on`() throws {
        let line = try Line()
        let (first, second) = (try line.ask(), try line.ask())
        try line.take(Frame.goAway(1))
        expectEqual(line.session.standing, .leaving)
        #expect(!line.session.mayContinue)
        expectEqual(second.end, .refused)
        expectEqual(first.end, nil)
        try line.take(Frame.head(1, "200", ends: true))
        expectEqual(first.end, .inOrder)
    }

    @Test func `the last number of a stream is the last request, which goes on`() throws {
        let line = try Line()
        expectEqual(nghttp2_session_set_next_stream_id(line.session.pointer, Int32.max), 0)
        let last = try line.ask()
        expectEqual(last.id, Int32.max)
        expectEqual(line.session.standing, .leaving)
        #expect(!line.session.mayContinue)
        try line.take(Frame.head(Int32.max, "200", ends: true))
        expectEqual(last.end, .inOrder)
    }

    @Test func `a refused stream is told from one that was reset`() throws {
        let line = try Line()
        let (first, second) = (try line.ask(), try line.ask())
        try line.take(Frame.reset(1, 7) + Frame.reset(3, 2))
        expectEqual(first.end, .refused)
        expectEqual(second.end, .reset(2))
    }

    @Test func `a lost connection ends its streams, and those it never had were refused`() throws {
        let line = try Line()
        let first = try line.ask()
        let bytes = Array("GET / HTTP/1.1\r\nHost: a\r\n\r\n".utf8)
        let unsent = line.session.begin(bytes.span, isHead: false, hasContent: false)
        line.session.abandon()
        expectEqual(first.end, .lost)
        expectEqual(unsent?.end, .refused)
    }

    /// As a server ends an idle connection just when it is used.
    @Test func `where the last bytes did not go out, the server never had their requests`() throws {
        let line = try Line()
        let (first, second) = (try line.ask(), try line.ask())
        #expect(!line.session.handedOverLast(first))
        #expect(line.session.handedOverLast(second))
        line.session.abandon(isUnsent: true)
        expectEqual(first.end, .lost)
        expectEqual(second.end, .refused)
    }

    /// What a server may not send on a stream; it ends that stream and no other.
    private static let wrong: [(note: String, frames: [UInt8])] = [
        ("no status", Frame.make(1, 5, 1, Frame.block([("x", "y")]))),
        ("status of two digits", Frame.head(1, "20", ends: true)),
        ("101", Frame.head(1, "101", ends: true)),
        ("upper case", Frame.head(1, "200", [("X-A", "b")], ends: true)),
        ("a field of one connection", Frame.head(1, "200", [("connection", "x")], ends: true)),
        ("a coding", Frame.head(1, "200", [("transfer-encoding", "chunked")])),
        ("two lengths", Frame.head(1, "200", [("content-length", "1"), ("content-length", "1")])),
        ("a length that is none", Frame.head(1, "200", [("content-length", "+3")])),
        ("a line end in a value", Frame.head(1, "200", [("a", "b\r\nc: d")], ends: true)),
        ("too long", Frame.head(1, "200", [("content-length", "3")]) + Frame.data(1, "abcd")),
        (
            "too short",
            Frame.head(1, "200", [("content-length", "3")]) + Frame.data(1, "ab", ends: true)
        ),
        ("an interim head that is the last", Frame.head(1, "103", ends: true)),
        (
            "a pseudo-field in trailers",
            Frame.head(1, "200") + Frame.trailers(1, [(":status", "200")])
        ),
        (
            "trailers that are not the end",
            Frame.head(1, "200") + Frame.make(1, 4, 1, Frame.block([("a", "b")]))
        ),
    ]

    @Test(arguments: wrong)
    func `a stream on which the server is wrong ends, and no other`(
        note: String,
        frames: [UInt8]
    ) throws {
        let line = try Line()
        let (first, second) = (try line.ask(), try line.ask())
        try line.take(frames)
        line.flush()
        expectEqual(first.end, .invalid, "\(note)")
        #expect(!first.isInputEnded, "\(note)")
        try line.take(Frame.head(3, "200", ends: true))
        expectEqual(second.end, .inOrder, "\(note)")
        expectEqual(line.session.standing, .open)
    }

    /// What ends the connection.
    private static let fatal: [(note: String, frames: [UInt8])] = [
        ("a stream that was not asked for", Frame.head(2, "200")),
        ("content before a head", Frame.data(1, "x")),
        ("a head in a head", Frame.make(1, 0, 1, []) + Frame.data(1, "x")),
        ("a continuation of nothing", Frame.make(9, 4, 1, [])),
        ("a window beyond all bounds", Frame.make(8, 0, 0, Frame.number(0x7FFF_FFFF))),
        ("no HPACK", Frame.make(1, 5, 1, [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF])),
    ]

    @Test(arguments: fatal)
    func `a server that breaks the connection's rules loses it`(
        note: String,
        frames: [UInt8]
    ) throws {
        let line = try Line()
        let channel = try line.ask()
        try line.take(frames)
        line.flush()
        expectEqual(line.session.standing, .violated, "\(note)")
        #expect(line.session.isOver, "\(note)")
        line.session.abandon()
        expectEqual(channel.end, .lost)
    }

    private static func flood(_ frame: [UInt8], _ count: Int) -> HTTP2ClientSession.Fault? {
        guard let line = try? Line(), (try? line.ask()) != nil else { return nil }
        for _ in 0..<count {
            do throws(HTTP2ClientSession.Fault) { try line.take(frame) } catch { return error }
            line.flush()
        }
        return nil
    }

    @Test func `floods end the connection`() {
        let ping = Frame.make(6, 0, 0, Array(repeating: 0, count: 8))
        expectEqual(Self.flood(ping, 2_000), .excess(.pings))
        expectEqual(Self.flood(Frame.settings, 100), .excess(.settings))
        expectEqual(Self.flood(Frame.reset(1, 8), 2_000), .excess(.resets))
        expectEqual(Self.flood(Frame.make(0xEE, 0, 0, [1]), 2_000), .excess(.otherFrames))
        let opening = Frame.make(8, 0, 1, Frame.number(1))
        expectEqual(Self.flood(opening, 3_000), .excess(.windowUpdates))
        // A server that was told not to push.
        let push = Frame.make(5, 4, 1, Frame.number(2) + Frame.block([(":method", "GET")]))
        expectEqual(Self.flood(push, 1), .excess(.otherFrames))
        let interim = Frame.head(1, "103")
        expectEqual(Self.flood(interim, 31), nil)
    }

    @Test func `a head in too many pieces, or too long, ends the connection`() throws {
        let line = try Line()
        _ = try line.ask()
        let piece = Frame.make(9, 0, 1, Frame.block([("a", "b")]))
        let many = Frame.make(1, 0, 1, []) + Array(repeating: piece, count: 20).flatMap(\.self)
        #expect(throws: HTTP2ClientSession.Fault.excess(.continuations)) { try line.take(many) }
    }

    @Test func `a head beyond its bound is malformed, and the connection goes on`() throws {
        var limits = HTTP2Limits()
        limits.head.headBytesMax = 200
        let line = try Line(limits: limits)
        let channel = try line.ask()
        let long = String(repeating: "x", count: 120)
        try line.take(Frame.head(1, "200", [("a", long), ("b", long)], ends: true))
        expectEqual(channel.takeHead()?.fault, .headTooLong)
        #expect(line.session.hasRoom)
    }

    @Test func `interim heads that nobody reads are bounded`() throws {
        let line = try Line()
        let channel = try line.ask()
        try line.take(Array(repeating: Frame.head(1, "103"), count: 100).flatMap(\.self))
        expectEqual(channel.takeHead()?.fault, .headTooLong)
        expectEqual(channel.takeHead(), nil)
    }

    @Test func `a server may reset and ping as often as it gets requests`() throws {
        let line = try Line()
        for id in stride(from: Int32(1), to: 10_000, by: 2) {
            _ = try line.ask()
            try line.take(
                Frame.head(id, "200", ends: true) + Frame.reset(id, 0)
                    + Frame.make(6, 0, 0, Array(repeating: 0, count: 8))
            )
            line.flush()
        }
        expectEqual(line.session.standing, .open)
    }

    @Test func `a ping waits for its answer`() throws {
        let line = try Line()
        line.session.ping()
        line.flush()
        #expect(line.session.awaitsPong)
        try line.take(Frame.make(6, 1, 0, Array(repeating: 0, count: 8)))
        #expect(!line.session.awaitsPong)
    }

    @Test func `a stream's window opens when its content is taken, the connection's at once`()
        throws
    {
        var limits = HTTP2Limits()
        limits.streamWindow = 65_535
        let line = try Line(limits: limits)
        let channel = try line.ask()
        try line.take(Frame.head(1, "200"))
        let piece = String(repeating: "x", count: 16_000)
        for _ in 0..<4 { try line.take(Frame.data(1, piece)) }
        line.flush()
        #expect(!line.frames.contains { $0.type == 8 && $0.payload == [] })
        let before = line.frames.count { $0.type == 8 }
        _ = line.session.takeContent(of: channel, atMost: 1 << 20)
        line.flush()
        expectEqual(line.frames.count { $0.type == 8 }, before + 1)
    }

    @Test func `what is taken at once is bounded, however far the windows are open`() throws {
        let line = try Line(settings: [(4, 1 << 20)])
        try line.take(Frame.make(8, 0, 0, Frame.number(1 << 20)))
        let head = "POST / HTTP/1.1\r\nHost: a.test\r\n\r\n"
        let content = [UInt8](repeating: 7, count: 200_000)
        let channels = try (0..<4).map { _ in try line.ask(head, hasContent: true) }
        for channel in channels { line.session.append(content.span, to: channel) }
        var out: [UInt8] = []
        var sent = 0
        // The last frame may begin just below the bound.
        let most = (64 << 10) + 16_384 + 9
        repeat {
            out = []
            try line.session.send(into: &out, atMost: 64 << 10, now: 1_000)
            sent += out.count
            #expect(out.count < most)
        } while !out.isEmpty
        #expect(sent > 800_000)
    }
}
