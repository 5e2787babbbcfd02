import Expectations
import HTTPWire
import TestSupport
import Testing

struct HeadWriterTests {
    private static func request(
        _ source: String,
        _ change: (inout HeadWriter.RequestOptions) -> Void = { _ in }
    ) throws -> String {
        let bytes = Array(source.utf8)
        let head = try RequestHead.reading(source)
        var options = HeadWriter.RequestOptions()
        options.framing = head.framing
        change(&options)
        var out: [UInt8] = []
        HeadWriter.beginRequest(head, bytes.span, options: options, into: &out)
        HeadWriter.endHead(into: &out)
        return String(decoding: out, as: UTF8.self)
    }

    private static func response(
        _ source: String,
        to method: HTTPWire.Method = .get,
        _ change: (inout HeadWriter.ResponseOptions) -> Void = { _ in }
    ) throws -> String {
        let bytes = Array(source.utf8)
        let head = try ResponseHead.reading(source, to: method, upgradeSent: true)
        var options = HeadWriter.ResponseOptions()
        options.framing = head.framing
        change(&options)
        var out: [UInt8] = []
        HeadWriter.beginResponse(head, bytes.span, options: options, into: &out)
        HeadWriter.endHead(into: &out)
        return String(decoding: out, as: UTF8.self)
    }

    @Test func `end-to-end fields keep their order and spelling, the others end here`() throws {
        let out = try Self.request(
            "POST /a%20b?c HTTP/1.1\r\nHost: a\r\nConnection: X-Hop, close\r\nX-Hop: 1\r\n"
                + "accept: x\r\nKeep-Alive: 5\r\nAccept:  y \r\nTE: trailers\r\nX_Y: 1\r\n"
                + "Proxy-Connection: z\r\nApp-Attest-Verdict: pass\r\nProxy: http://evil\r\n"
                + "App-Attest-Assertion: AAAA\r\nTransfer-Encoding: chunked\r\nX-Last:v\r\n\r\n"
        )
        expectEqual(
            out,
            """
            POST /a%20b?c HTTP/1.1\r\nHost: a\r\naccept: x\r\nAccept: y\r\n\
            App-Attest-Assertion: AAAA\r\nX-Last: v\r\nTransfer-Encoding: chunked\r\n\
            Via: 1.1 portcullis\r\n\r\n
            """
        )
    }

    @Test func `a length is written in canonical decimals`() throws {
        let out = try Self.request(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0010\r\n\r\n"
        )
        expectEqual(
            out,
            """
            POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\
            Via: 1.1 portcullis\r\n\r\n
            """
        )
    }

    @Test(arguments: [
        ("GET http://b.test:80/p?q HTTP/1.1", "GET /p?q HTTP/1.1"),
        ("GET http://b.test:80 HTTP/1.1", "GET / HTTP/1.1"),
        ("GET http://b.test:80?q HTTP/1.1", "GET /?q HTTP/1.1"),
        ("OPTIONS http://b.test:80 HTTP/1.1", "OPTIONS * HTTP/1.1"),
    ])
    func `an absolute-form target becomes origin-form, and Host stays as it was signed`(
        _ line: String,
        _ forwarded: String
    ) throws {
        let out = try Self.request("\(line)\r\nHost: B.test\r\nX: y\r\n\r\n")
        expectEqual(out, "\(forwarded)\r\nHost: B.test\r\nX: y\r\nVia: 1.1 portcullis\r\n\r\n")
    }

    @Test func `the version is our own, and Via tells the client's`() throws {
        try expectEqual(
            Self.request("GET / HTTP/1.0\r\nVia: 1.0 x\r\n\r\n"),
            "GET / HTTP/1.1\r\nVia: 1.0 x\r\nVia: 1.0 portcullis\r\n\r\n"
        )
        let star = try Self.request("OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: 3\r\n\r\n")
        #expect(star.hasPrefix("OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: 2\r\n"))
    }

    @Test func `kinds can be dropped, names of them kept`() throws {
        let source =
            "GET / HTTP/1.1\r\nHost: a\r\nX-One: 1\r\nX-HOST: b\r\nX_Host: c\r\nX.Host: d\r\n"
            + "X-Original-URL: /\r\nCookie: c\r\n\r\n"
        let out = try Self.request(source) {
            $0.named.keeping = FieldNameSet(["x-host", "Y"])
            $0.dropping.formUnion(FieldKindSet([.cookie, .host]))
        }
        expectEqual(out, "GET / HTTP/1.1\r\nX-One: 1\r\nX-HOST: b\r\nVia: 1.1 portcullis\r\n\r\n")
    }

    @Test func `what CGI can't tell from a guarded field ends here`() throws {
        let source =
            "GET / HTTP/1.1\r\nHost: a\r\nIdempotency-KEY: 1\r\nIdempotency.Key: 2\r\n"
            + "idempotency~key: 3\r\nIdempotency_Key: 4\r\nIdempotency-Keys: 5\r\n"
            + "X.Y: 6\r\nX-Y: 7\r\nX1Y: 8\r\n\r\n"
        let out = try Self.request(source) {
            $0.named.guarding = FieldNameSet(["idempotency-key", "x.y"])
        }
        expectEqual(
            out,
            """
            GET / HTTP/1.1\r\nHost: a\r\nIdempotency-KEY: 1\r\nIdempotency-Keys: 5\r\n\
            X.Y: 6\r\nX1Y: 8\r\nVia: 1.1 portcullis\r\n\r\n
            """
        )
    }

    @Test func `an upgrade is written anew when asked for`() throws {
        let source =
            "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
        #expect(try !Self.request(source).contains("pgrade"))
        let out = try Self.request(source) { $0.forwardsUpgrade = true }
        #expect(out.contains("Upgrade: websocket\r\nConnection: upgrade\r\n"))
        let both = try Self.request(source) {
            $0.forwardsUpgrade = true
            $0.acceptsTrailers = true
        }
        #expect(both.contains("Connection: upgrade, TE\r\nTE: trailers\r\n"))
    }

    @Test func `a response gets our version, its space, a date and our framing`() throws {
        let out = try Self.response(
            "HTTP/1.0 200\r\nConnection: X-Hop\r\nX-Hop: 1\r\nX : y\r\nX_Z: 1\r\n"
                + "App-Attest-Verdict: ok\r\n\r\n"
        ) {
            $0.framing = .chunked
            $0.date = HTTPDate.bytes(unixSeconds: 784_111_777)
            $0.connection = .close
        }
        expectEqual(
            out,
            """
            HTTP/1.1 200 \r\nX: y\r\nX_Z: 1\r\nTransfer-Encoding: chunked\r\n\
            Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nConnection: close\r\n\r\n
            """
        )
    }

    @Test func `a length without content is passed on where it may stand`() throws {
        let head = "Content-Length: 5\r\nDate: x\r\n\r\n"
        let kept = try Self.response("HTTP/1.1 200 OK\r\n\(head)", to: .head)
        expectEqual(kept, "HTTP/1.1 200 OK\r\nDate: x\r\nContent-Length: 5\r\n\r\n")
        #expect(try Self.response("HTTP/1.1 304 X\r\n\(head)").contains("Content-Length: 5\r\n"))
        #expect(try !Self.response("HTTP/1.1 204 X\r\n\(head)").contains("Content-Length"))
        let interim = try Self.response("HTTP/1.1 103 X\r\nLink: y\r\n\r\n")
        expectEqual(interim, "HTTP/1.1 103 X\r\nLink: y\r\n\r\n")
        let upgrade = try Self.response(
            "HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
        ) { $0.connection = .upgrade }
        expectEqual(upgrade, "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n")
    }

    @Test func `a local answer has its phrase, date and framing`() {
        var out: [UInt8] = []
        HeadWriter.beginLocalResponse(
            status: 401,
            date: HTTPDate.bytes(unixSeconds: 951_782_400),
            framing: .length(12),
            connection: .keepAlive,
            into: &out
        )
        HeadWriter.field("WWW-Authenticate", "AppAttest", into: &out)
        HeadWriter.field(text: Array("X-\r\nA".utf8), Array("b\r\nc: \u{0}".utf8), into: &out)
        HeadWriter.endHead(into: &out)
        expectEqual(
            String(decoding: out, as: UTF8.self),
            """
            HTTP/1.1 401 Unauthorized\r\nDate: Tue, 29 Feb 2000 00:00:00 GMT\r\n\
            Content-Length: 12\r\nConnection: keep-alive\r\nWWW-Authenticate: AppAttest\r\n\
            X-A: b  c:  \r\n\r\n
            """
        )
    }

    @Test func `chunks and trailers are written as they are read`() throws {
        var limits = HeadLimits()
        limits.trailerBytesMax = 100
        var reader = BodyReader(.chunked, limits: limits)
        let source = Array("0\r\nX-T:  v \r\nHost: b\r\nX_T: c\r\n\r\n".utf8)
        var position = 0
        let step = try reader.read(source.span, from: &position)
        expectEqual(step, .finished)
        var out: [UInt8] = []
        ChunkWriter.beginChunk(4096, into: &out)
        ChunkWriter.endChunk(into: &out)
        ChunkWriter.end(with: reader.trailers, into: &out)
        ChunkWriter.end(into: &out)
        expectEqual(
            String(decoding: out, as: UTF8.self),
            "1000\r\n\r\n0\r\nX-T: v\r\n\r\n0\r\n\r\n"
        )
    }

    @Test func `what is written for a request reads as the same request`() throws {
        for one in HTTPCase.given
        where one.direction == "request" && one.expect.action != "reject" {
            let bytes = one.bytes
            var scanner = HeadScanner(.request(isSecure: false))
            let limits = HeadLimits()
            guard case .complete(let range) = try? scanner.scan(bytes.span, limits: limits) else {
                continue
            }
            let source = bytes.span.extracting(range)
            var head = RequestHead()
            guard (try? head.read(source, isSecure: false, limits: limits)) != nil else { continue }
            var out: [UInt8] = []
            var options = HeadWriter.RequestOptions()
            options.framing = head.framing
            HeadWriter.beginRequest(head, source, options: options, into: &out)
            HeadWriter.endHead(into: &out)
            if !head.fields.contains(.host) {
                // An HTTP/1.0 request without Host; the proxy names the origin.
                continue
            }
            var again = RequestHead()
            try again.read(out.span, isSecure: false, limits: limits)
            #expect(again.method == head.method && again.framing == head.framing, "\(one.id)")
            #expect(
                again.fields.kinds.isDisjoint(
                    with: FieldKindSet.neverToOrigin.subtracting(
                        FieldKindSet([.contentLength, .transferEncoding])
                    )
                ),
                "\(one.id)"
            )
        }
    }
}
