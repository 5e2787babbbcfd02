import Expectations
import HTTPWire
import Testing

struct ResponseHeadTests {
    @Test(
        arguments: [
            ("HTTP/1.1 200 OK", nil), ("HTTP/1.1 200 ", nil), ("HTTP/1.1 200", nil),
            ("HTTP/1.0 404 Not Found", nil), ("HTTP/1.1 20 OK", .statusLineSyntax),
            ("HTTP/1.1 2000 OK", .statusLineSyntax), ("HTTP/1.1 099 X", .statusUnknown),
            ("HTTP/1.1 600 X", .statusUnknown), ("HTTP/2.0 200 OK", .statusLineSyntax),
            ("HTTP/1.1  200 OK", .statusLineSyntax), ("http/1.1 200 OK", .statusLineSyntax),
            ("HTTP/1.1 2x0 OK", .statusLineSyntax), ("HTTP/1.1 101 X", .upgradeUnasked),
        ] as [(String, Malformed.Reason?)]
    )
    func `a status line is read strictly`(_ line: String, _ reason: Malformed.Reason?) {
        expectEqual(ResponseHead.fault("\(line)\r\n\r\n"), reason)
    }

    /// Rows of RFC 9112 §6.3: status, fields, method, framing.
    @Test(
        arguments: [
            (200, "", .get, .untilClose), (200, "Content-Length: 5\r\n", .get, .length(5)),
            (200, "Transfer-Encoding: chunked\r\n", .get, .chunked),
            (200, "Content-Length: 5\r\n", .head, .none),
            (200, "Transfer-Encoding: chunked\r\n", .head, .none),
            (204, "Content-Length: 5\r\n", .get, .none),
            (304, "Content-Length: 5\r\n", .get, .none),
            (103, "", .get, .none), (404, "Content-Length: 0\r\n", .get, .length(0)),
        ] as [(Int, String, HTTPWire.Method, BodyFraming)]
    )
    func `the framing of a response follows RFC 9112 §6.3`(
        _ status: Int,
        _ fields: String,
        _ method: HTTPWire.Method,
        _ framing: BodyFraming
    ) throws {
        let head = try ResponseHead.reading("HTTP/1.1 \(status) X\r\n\(fields)\r\n", to: method)
        expectEqual(head.framing, framing)
    }

    @Test(
        arguments: [
            ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", .twoFramings),
            ("Content-Length: 5\r\nContent-Length: 5\r\n", .contentLengthRepeated),
            ("Content-Length: -5\r\n", .contentLengthSyntax),
            ("Transfer-Encoding: foo\r\n", .transferEncodingUnknown),
            ("X-A: a\r\n b\r\n", .obsoleteFold), ("X-A : b\r\n", nil),
            ("Content-Length : 5\r\n", .fieldNameSyntax), ("X_A: b\r\n", nil),
            ("Content_Length: 5\r\n", .underscoreTwin), ("X-A: \u{0}\r\n", .controlByte),
        ] as [(String, Malformed.Reason?)]
    )
    func `an ambiguous response is rejected`(_ fields: String, _ reason: Malformed.Reason?) {
        expectEqual(ResponseHead.fault("HTTP/1.1 200 OK\r\n\(fields)\r\n"), reason)
        if reason != .fieldNameSyntax, reason != .obsoleteFold {
            expectEqual(ResponseHead.fault("HTTP/1.1 200 OK\r\n\(fields)\r\n", to: .head), reason)
        }
    }

    @Test func `transfer codings in HTTP 1.0 are rejected`() {
        let fault = ResponseHead.fault("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        expectEqual(fault, .transferEncodingVersion)
    }

    @Test(arguments: [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", true), ("HTTP/1.1 200 OK\r\n", false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n", false),
        ("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n", false),
        ("HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: Keep-Alive\r\n", true),
        ("HTTP/1.1 204 X\r\n", true), ("HTTP/1.1 204 X\r\nContent-Length: 5\r\n", false),
        ("HTTP/1.1 304 X\r\nContent-Length: 5\r\n", false), ("HTTP/1.1 304 X\r\n", true),
        ("HTTP/1.1 304 X\r\nTransfer-Encoding: chunked\r\n", false),
    ])
    func `an origin connection is reusable as RFC 9112 §9.3 says`(_ head: String, _ is: Bool) throws
    {
        try expectEqual(ResponseHead.reading(head + "\r\n").isPersistent, `is`)
    }

    @Test func `an upgrade that was asked for is no interim response`() throws {
        let source = "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"
        let head = try ResponseHead.reading(source, upgradeSent: true)
        #expect(!head.isInterim && !head.isPersistent && head.framing == .none)
        #expect(try ResponseHead.reading("HTTP/1.1 100 Continue\r\n\r\n").isInterim)
        #expect(throws: Malformed(.upgradeUnasked, at: 0)) {
            let other = source.replacing("websocket", with: "h2c")
            _ = try ResponseHead.reading(other, upgradeSent: true)
        }
    }
}
