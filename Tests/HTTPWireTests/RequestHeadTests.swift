import Expectations
import HTTPWire
import Testing

struct RequestHeadTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let fields: String
        let reason: Malformed.Reason?
        let note: String

        init(_ fields: String, _ reason: Malformed.Reason?, _ note: String) {
            self.fields = fields
            self.reason = reason
            self.note = note
        }

        var testDescription: String { note }
    }

    /// Fields of a POST in HTTP/1.1 with Host. The classes are those of Go's transfer_test.go and
    /// more.
    static let framingRows: [Row] = [
        Row("Content-Length: 5", nil, "a length"),
        Row("Content-Length: 0005", nil, "leading zeros"),
        Row("content-LENGTH:\t5 ", nil, "white space around the value"),
        Row("Content-Length: +3", .contentLengthSyntax, "a sign"),
        Row("Content-Length:", .contentLengthSyntax, "no value"),
        Row("Content-Length: 5, 5", .contentLengthSyntax, "a list"),
        Row("Content-Length: 5\r\nContent-Length: 5", .contentLengthRepeated, "two lines"),
        Row("Content-Length: 9223372036854775807", nil, "the greatest"),
        Row("Content-Length: 9223372036854775808", .contentLengthOverflow, "one too many"),
        Row("Content-Length: 18446744073709551616", .contentLengthOverflow, "2⁶⁴"),
        Row("Transfer-Encoding: cHunKed", nil, "chunked in any case"),
        Row("Transfer-Encoding: chunked, chunked", .transferEncodingSyntax, "chunked twice"),
        Row("Transfer-Encoding: \u{B}chunked", .controlByte, "a vertical tab before chunked"),
        Row("Transfer-Encoding: gzip", .transferEncodingUnknown, "a coding we don't know"),
        Row("Transfer-Encoding:", .transferEncodingSyntax, "no coding"),
        Row(
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            .transferEncodingRepeated,
            "two lines of chunked"
        ),
        Row("Transfer-Encoding: chunked\r\nContent-Length: 0", .twoFramings, "both framings"),
        Row("Transfer_Encoding: chunked", .underscoreTwin, "an underscore twin of a framing field"),
        Row("CONTENT_LENGTH: 5", .underscoreTwin, "a twin in upper case"),
        Row("Host: other.test", .hostInvalid, "two hosts"),
        Row("Expect: 200-ok", .expectation, "an expectation we don't know"),
        Row("Expect: 100-continue\r\nExpect: 100-continue", .fieldRepeated, "two expectations"),
        Row("Authorization: a\r\nauthorization: b", .fieldRepeated, "two credentials"),
        Row("Connection: a b", .connectionOption, "an option that is no token"),
        Row("Connection: ,, close ,", nil, "empty members of a list"),
        Row("X: a\r\n b", .obsoleteFold, "a folded line"),
        Row("X : a", .fieldNameSyntax, "a space before the colon"),
        Row("X", .colonMissing, "no colon"),
        Row(": v", .fieldNameSyntax, "no name"),
        Row("X: \u{7F}", .controlByte, "DEL in a value"),
        Row("X:", nil, "an empty value"),
        Row("X: caf\u{E9}\t x", nil, "obs-text and a tab in a value"),
    ]

    @Test(arguments: framingRows)
    func `a field section is read strictly`(_ row: Row) {
        let text = "POST / HTTP/1.1\r\nHost: a.test\r\n\(row.fields)\r\n\r\n"
        expectEqual(RequestHead.fault(text), row.reason)
    }

    @Test(
        arguments: [
            ("GET / HTTP/1.1", nil), ("GET  / HTTP/1.1", .requestLineSyntax),
            ("GET / HTTP/1.1 ", .versionSyntax), ("GET /", .requestLineSyntax),
            ("G@T / HTTP/1.1", .methodSyntax), ("GET /a#b HTTP/1.1", .targetFragment),
            ("GET /\u{E9} HTTP/1.1", .targetByte), ("GET * HTTP/1.1", .targetForm),
            ("OPTIONS * HTTP/1.1", nil), ("OPTIONS *x HTTP/1.1", .targetForm),
            ("CONNECT a.test:443 HTTP/1.1", .methodRefused), ("TRACE / HTTP/1.1", .methodRefused),
            ("GET a.test:80 HTTP/1.1", .targetForm), ("GET http://a.test/ HTTP/1.1", nil),
            ("GET HTTP://A.TEST:80 HTTP/1.1", nil), ("GET http://b.test/ HTTP/1.1", .hostDiffers),
            ("GET http://a.test:81/ HTTP/1.1", .hostDiffers),
            ("GET http://u@a.test/ HTTP/1.1", .targetUserinfo),
            ("GET http:///x HTTP/1.1", .targetAuthority),
            ("GET https://a.test/ HTTP/1.1", .targetScheme),
            ("GET / HTTP/1.2", .versionUnsupported), ("GET / HTTP/2.0", .versionUnsupported),
            ("GET / HTTP/11", .versionSyntax), ("PRI * HTTP/2.0", .targetForm),
        ] as [(String, Malformed.Reason?)]
    )
    func `a request line is read strictly`(_ line: String, _ reason: Malformed.Reason?) {
        expectEqual(RequestHead.fault("\(line)\r\nHost: a.test\r\n\r\n"), reason)
    }

    @Test(arguments: [
        ("a.test", true), ("a.test:8080", true), ("a.test:", true), ("[::1]", true),
        ("[2001:db8::1]:443", true), ("127.0.0.1", true), ("a_b.test", true), ("", false),
        (":80", false), ("a.test:65536", false), ("a.test:80:81", false), ("[::1", false),
        ("[fe80::1%25eth0]", false), ("u@a.test", false), ("a.test/", false), ("a,b", false),
        ("[::1]a", false), ("a%2etest", false), ("[]", false), ("[1.2.3.4]", false),
    ])
    func `Host is a host and a port`(_ host: String, _ isValid: Bool) {
        let reason = RequestHead.fault("GET / HTTP/1.1\r\nHost: \(host)\r\n\r\n")
        expectEqual(reason, isValid ? nil : .hostInvalid)
    }

    @Test func `bounds hold at their exact value`() throws {
        var limits = HeadLimits()
        limits.targetBytesMax = 10
        limits.methodBytesMax = 4
        limits.fieldsMax = 2
        limits.fieldNameBytesMax = 5
        let fine = "POST /23456789 HTTP/1.1\r\nHost: a\r\nABCDE: 1\r\n\r\n"
        expectEqual(RequestHead.fault(fine, limits: limits), nil)
        let longTarget = "POST /2345678901 HTTP/1.1\r\nHost: a\r\n\r\n"
        expectEqual(RequestHead.fault(longTarget, limits: limits), .targetTooLong)
        let longMethod = "PATCH / HTTP/1.1\r\nHost: a\r\n\r\n"
        expectEqual(RequestHead.fault(longMethod, limits: limits), .methodTooLong)
        let longName = "POST / HTTP/1.1\r\nHost: a\r\nABCDEF: 1\r\n\r\n"
        expectEqual(RequestHead.fault(longName, limits: limits), .fieldNameTooLong)
        let manyFields = "POST / HTTP/1.1\r\nHost: a\r\nB: 1\r\nC: 1\r\n\r\n"
        expectEqual(RequestHead.fault(manyFields, limits: limits), .fieldsTooMany)
        limits.headBytesMax = fine.utf8.count
        expectEqual(RequestHead.fault(fine, limits: limits), nil)
        limits.headBytesMax -= 1
        expectEqual(RequestHead.fault(fine, limits: limits), .headTooLong)
    }

    @Test func `nothing but the head may be read as the head`() {
        let head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
        expectEqual(RequestHead.fault(head + "x"), .fieldNameSyntax)
        #expect(RequestHead.fault(String(head.dropLast())) != nil)
        #expect(RequestHead.fault("") != nil)
    }

    @Test func `a head is told as ranges into its bytes`() throws {
        let source = "GET http://A.test:80/p?q=/x HTTP/1.1\r\nhost: a.test\r\nX-A:  v \r\n\r\n"
        let head = try RequestHead.reading(source)
        let bytes = Array(source.utf8)
        let host = head.host(bytes.span)
        expectEqual(text(bytes, head.methodRange), "GET")
        expectEqual(text(bytes, head.target), "http://A.test:80/p?q=/x")
        expectEqual(text(bytes, head.path), "/p")
        expectEqual(text(bytes, head.query), "?q=/x")
        expectEqual(text(bytes, head.authority), "A.test:80")
        expectEqual(text(bytes, host), "A.test")
        expectEqual(text(bytes, head.fields.fields[1].name), "X-A")
        expectEqual(text(bytes, head.fields.fields[1].value), "v")
        expectEqual(head.count, bytes.count)
    }

    @Test(arguments: [
        ("1.1", "", true), ("1.1", "Connection: close\r\n", false),
        ("1.1", "Connection: foo, CLOSE\r\n", false), ("1.0", "", false),
        ("1.0", "Connection: keep-alive\r\n", true),
        ("1.0", "Connection: keep-alive\r\nConnection: close\r\n", false),
    ])
    func `a connection persists as RFC 9112 §9.3 says`(
        _ version: String,
        _ fields: String,
        _ persists: Bool
    ) throws {
        let head = try RequestHead.reading("GET / HTTP/\(version)\r\nHost: a\r\n\(fields)\r\n")
        expectEqual(head.isPersistent, persists)
    }

    @Test func `an expectation counts only with content and in HTTP 1.1`() throws {
        let lines = "Host: a\r\nExpect: 100-Continue\r\n"
        let length = "Content-Length: 5\r\n\r\n"
        #expect(try RequestHead.reading("PUT / HTTP/1.1\r\n\(lines)\(length)").expectsContinue)
        #expect(try !RequestHead.reading("PUT / HTTP/1.0\r\n\(lines)\(length)").expectsContinue)
        #expect(try !RequestHead.reading("GET / HTTP/1.1\r\n\(lines)\r\n").expectsContinue)
    }

    @Test func `an upgrade counts only with its Connection option and in HTTP 1.1`() throws {
        func upgrade(_ version: String, _ fields: String) throws -> Bool {
            let source = "GET / HTTP/\(version)\r\nHost: a\r\nUpgrade: WebSocket\r\n\(fields)\r\n"
            let bytes = Array(source.utf8)
            return try RequestHead.reading(source).asksForWebSocket(bytes.span)
        }
        #expect(try upgrade("1.1", "Connection: keep-alive, Upgrade\r\n"))
        #expect(try !upgrade("1.1", ""))
        #expect(try !upgrade("1.0", "Connection: upgrade\r\n"))
        #expect(try !upgrade("1.1", "Connection: upgrade\r\nUpgrade: h2c\r\n"))
    }

    @Test func `Max-Forwards is read for OPTIONS only, and when it is a number`() throws {
        func hops(_ method: String, _ value: String) throws -> UInt64? {
            let source = "\(method) / HTTP/1.1\r\nHost: a\r\nMax-Forwards: \(value)\r\n\r\n"
            let bytes = Array(source.utf8)
            return try RequestHead.reading(source).maxForwards(bytes.span)
        }
        try expectEqual(hops("OPTIONS", "5"), 5)
        try expectEqual(hops("OPTIONS", "0"), 0)
        try expectEqual(hops("OPTIONS", "-1"), nil)
        try expectEqual(hops("GET", "5"), nil)
    }

    @Test func `an option that names a field of one hop marks it`() throws {
        let head = try RequestHead.reading(
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: Trailer, X-Drop, Keep-Alive\r\n"
                + "Trailer: x\r\nx-drop: 1\r\nx-keep: 1\r\n\r\n"
        )
        expectEqual(head.fields.fields.map(\.isNominated), [false, false, false, true, false])
    }

    @Test(arguments: [
        "Host", "content-length", "Transfer-Encoding", "Content-Digest", "Content-Type", "Cookie",
        "Content-Encoding", "Authorization", "Date", "Via", "Max-Forwards", "Forwarded",
        "X-Forwarded-For", "X-Forwarded-Anything", "X-Real-IP", "X-Azure-ClientIP",
        "App-Attest-Assertion", "App-Attest-Challenge", "App-Attest-Key-Id",
        "App-Attest-Unsupported", "App-Attest-Verdict", "App-Attest-Anything", "close, HOST",
    ])
    func `an option that names a field which is not of one hop rejects the request`(
        _ option: String
    ) throws {
        let request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: \(option)\r\n\r\n"
        expectEqual(RequestHead.fault(request), .connectionNomination)
        // In a response it has no effect.
        let response = try ResponseHead.reading(
            "HTTP/1.1 204 x\r\nConnection: \(option)\r\nDate: x\r\n\r\n"
        )
        #expect(response.fields.fields.allSatisfy { !$0.isNominated })
    }

    @Test func `a head that is rejected shows nothing of the one before`() throws {
        var head = RequestHead()
        let good = Array(
            ("POST http://a/x?y HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
                + "Expect: 100-continue\r\n\r\n").utf8
        )
        try head.read(good.span, isSecure: false, limits: HeadLimits())
        expectEqual(head.framing, .length(5))
        let bad = Array("GET\r\n\r\n".utf8)
        #expect(throws: Malformed.self) {
            try head.read(bad.span, isSecure: false, limits: HeadLimits())
        }
        expectEqual(head.framing, .none)
        #expect(head.authority.isEmpty && head.path.isEmpty && head.methodRange.isEmpty)
        #expect(!head.expectsContinue && head.fields.fields.isEmpty)
    }

    @Test func `a request that passed here before is known by its Via`() throws {
        func passed(_ via: String) throws -> Bool {
            let source = "GET / HTTP/1.1\r\nHost: a\r\nVia: \(via)\r\n\r\n"
            let bytes = Array(source.utf8)
            return try RequestHead.reading(source).hasPassedHere(bytes.span)
        }
        #expect(try passed("1.1 Portcullis"))
        #expect(try passed("1.0 other, 1.1  portcullis (x)"))
        #expect(try !passed("1.1 portcullis-two"))
        #expect(try !passed("1.1 other (portcullis)"))
    }
}
