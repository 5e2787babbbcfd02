import Encodings
import Expectations
import HTTPWire
import TestSupport
import Testing

/// The request that a message of Envoy's `ext_authz` over gRPC names.
@Suite struct CheckRequestTests {
    private let limits = HeadLimits()

    private func head(_ message: CheckMessage) throws -> CheckedHead? {
        try head(message.bytes)
    }

    private func head(_ bytes: [UInt8]) throws -> CheckedHead? {
        try CheckRequest(bytes.span, limits).head(bytes.span, limits)
    }

    private static func text(_ head: CheckedHead?) -> String? {
        head.map { String(decoding: $0.bytes, as: UTF8.self) }
    }

    @Test(arguments: [true, false])
    func `the head is that of the request`(isRaw: Bool) throws {
        var message = CheckMessage(
            "POST",
            "/pay?a=b",
            [
                ("x-a", "1"), ("connection", "x-a"), ("te", "trailers"), ("upgrade", "websocket"),
                ("transfer-encoding", "chunked"), ("cookie", "a=b"), ("expect", "100-continue"),
                ("content-length", "2"),
            ]
        )
        message.isRaw = isRaw
        message.content = Array("hi".utf8)
        message.partial = "false"
        message.source = "192.0.2.7"
        message.unknown = true
        let bytes = message.bytes
        let request = try CheckRequest(bytes.span, limits)
        let named = request.head(bytes.span, limits)
        let head = try #require(named)
        let source = request.source(bytes.span)
        expectEqual(
            Self.text(head),
            """
            POST /pay?a=b HTTP/1.1\r
            host: a.example\r
            x-a: 1\r
            upgrade: websocket\r
            cookie: a=b\r
            x-envoy-auth-partial-body: false\r
            content-length: 2\r
            \r\n
            """
        )
        expectEqual(head.isExact, isRaw)
        #expect(head.isWhole)
        expectEqual(Array(bytes[request.content]), Array("hi".utf8))
        expectEqual(source, IPAddress("192.0.2.7"))
    }

    /// The application gets both, and may read another cookie than one that has both.
    @Test func `two Cookie lines stay two`() throws {
        let message = CheckMessage("GET", "/", [("cookie", "a=b"), ("cookie", "c=d")])
        let head = Self.text(try head(message))
        expectEqual(head?.contains("cookie: a=b\r\ncookie: c=d\r\n"), true, "\(head ?? "")")
    }

    @Test func `repeated lines stay where they are exact, and a map has each name once`() throws {
        var message = CheckMessage("GET", "/", [("x-a", "1"), ("x-b", "2"), ("x-a", "3")])
        expectEqual(Self.text(try head(message))?.contains("x-a: 1\r\nx-b: 2\r\nx-a: 3\r\n"), true)
        message.isRaw = false
        expectEqual(Self.text(try head(message))?.hasSuffix("x-b: 2\r\nx-a: 3\r\n\r\n"), true)
    }

    @Test(arguments: [
        (":path", "/other"), (":method", "PUT"), (":authority", "b.example"), (":scheme", "https"),
        (":protocol", "websocket"), (":path", "/OPEN"), (":", ""),
    ])
    func `a pseudo-field that says something else makes the message unclear`(
        name: String,
        value: String
    ) throws {
        var message = CheckMessage("GET", "/open")
        message.pseudo = [(name, value)]
        #expect(try head(message) == nil)
        message.isRaw = false
        #expect(try head(message) == nil)
    }

    @Test func `what names no request, or two, is unclear`() throws {
        let changes: [(inout CheckMessage) -> Void] = [
            { $0.method = "" }, { $0.path = "" }, { $0.host = "" }, { $0.scheme = "" },
            { $0.query = "a=b" }, { $0.fragment = "x" }, { $0.fields = [("", [1])] },
            { ($0.content, $0.text) = ([1], [1]) },
        ]
        for (index, change) in changes.enumerated() {
            var message = CheckMessage("GET", "/open")
            message.pseudo = []
            change(&message)
            #expect(try head(message) == nil, "\(index)")
        }
        var one = CheckMessage("GET", "/open")
        one.isRaw = false
        // A message that is repeated is merged: here both kinds of headers come.
        #expect(try head(CheckMessage("GET", "/open").bytes + one.bytes) == nil)
    }

    @Test func `of a field that is repeated the last one counts`() throws {
        var other = CheckMessage("GET", "/open")
        other.path = "/other"
        other.pseudo = []
        var first = CheckMessage("GET", "/open")
        first.pseudo = []
        let text = Self.text(try head(first.bytes + other.bytes))
        expectEqual(text?.hasPrefix("GET /other HTTP/1.1\r\n"), true)
    }

    @Test func `without the path as it was sent nothing is exact`() throws {
        var message = CheckMessage("GET", "/open", [("x-a", "1")])
        message.pseudo = []
        try expectEqual(head(message)?.isExact, false)
    }

    @Test(arguments: [
        ("/a b", Malformed.Reason.targetByte), ("http://b.example/", .targetForm),
        ("a", .targetForm),
    ])
    func `a target that is none is malformed`(path: String, reason: Malformed.Reason) throws {
        try expectEqual(head(CheckMessage("GET", path))?.fault, reason)
    }

    @Test func `no value begins another line`() throws {
        for (name, value) in [
            ("x-a", "1\r\nx-b: 2"), ("x-a", "1\n"), ("x-a: 1\r\nx-b", "2"), ("x a", "1"),
            ("x-a:", "1"), ("x-a", "\0"),
        ] {
            let found = try head(CheckMessage("GET", "/", [(name, value)]))
            #expect(found?.fault != nil, "\(name) \(value)")
            expectEqual(found?.bytes, [])
        }
        for host in ["a\r\nx-b: 2", "a b", "a\n"] {
            var message = CheckMessage("GET", "/")
            message.host = host
            #expect(try head(message)?.fault != nil)
        }
    }

    /// Content that Envoy did not send as it came, or not all of it.
    @Test func `content that may be another one is not whole`() throws {
        var message = CheckMessage("POST", "/", content: [1, 2])
        try expectEqual(head(message)?.isWhole, true)
        message.fields = [("content-length", Array("3".utf8))]
        try expectEqual(head(message)?.isWhole, false)
        message.fields = [("content-length", Array("2".utf8))]
        try expectEqual(head(message)?.isWhole, true)
        message.fields += message.fields
        try expectEqual(head(message)?.isWhole, true)
        message.content = []
        try expectEqual(head(message)?.isWhole, false)
        message.fields = []
        message.text = [1, 2]
        try expectEqual(head(message)?.isWhole, false)
    }

    @Test func `a message that is cut short has a fault or names less`() throws {
        var message = CheckMessage("POST", "/pay", content: Array(repeating: 7, count: 300))
        message.source = "192.0.2.7"
        let bytes = message.bytes
        for count in 1..<bytes.count {
            #expect(throws: CheckRequest.Fault.self) {
                try CheckRequest(Array(bytes.prefix(count)).span, limits)
            }
        }
        #expect(try head([]) == nil)
    }

    @Test func `a message with more lines than a head may have is refused`() throws {
        for isRaw in [true, false] {
            var message = CheckMessage("GET", "/")
            message.isRaw = isRaw
            message.fields = (0..<100).map { ("x-\($0)", [0x61]) }
            try expectEqual(head(message)?.fault, nil)
            message.fields.append(("x", [0x61]))
            try expectEqual(head(message)?.fault, .fieldsTooMany)
            message.fields = (0..<2_000).map { ("x-\($0)", [0x61]) }
            #expect(throws: CheckRequest.Fault.tooManyFields) { try head(message) }
        }
    }
}
