import HTTPWire
import Testing

@testable import HTTP2Wire

struct HeadBuilderTests {
    private static let plain = [
        (":method", "GET"), (":scheme", "https"), (":authority", "a.test"), (":path", "/x?y"),
    ]

    private static func built(
        _ fields: [(String, String)],
        hasContent: Bool = false,
        limits: HeadLimits = HeadLimits()
    ) -> (head: String, fault: Malformed.Reason?) {
        var builder = RequestHeadBuilder(nonce: 1)
        builder.begin()
        for (name, value) in fields {
            let (name, value) = (Array(name.utf8), Array(value.utf8))
            name.withUnsafeBufferPointer { name in
                value.withUnsafeBufferPointer { value in
                    builder.add(name, value, limits)
                }
            }
        }
        let built = builder.end(hasContent: hasContent)
        return (String(decoding: builder.bytes[built.range], as: UTF8.self), built.fault)
    }

    @Test func `fields become a head of HTTP/1.1, with one host and one cookie`() throws {
        let fields = [("cookie", "a"), ("host", "A.TEST"), ("x", ""), ("cookie", "b")]
        let built = Self.built(Self.plain + fields)
        #expect(
            built.head
                == "GET /x?y HTTP/1.1\r\nhost: a.test\r\nx: \r\ncookie: a; b\r\n\r\n"
        )
        #expect(built.fault == nil)
    }

    @Test func `content without a length is chunked, and with one has it`() throws {
        #expect(Self.built(Self.plain, hasContent: true).head.contains("chunked"))
        let stated = Self.built(Self.plain + [("content-length", "3")], hasContent: true)
        #expect(!stated.head.contains("chunked"))
    }

    /// nghttp2 lets few of these through; nothing depends on that.
    @Test(arguments: [
        ([(":path", "/a HTTP/1.1\r\nx: y")], Malformed.Reason.targetOctet),
        ([(":path", "http://b.test/")], .targetForm), ([(":path", "")], .targetForm),
        ([(":scheme", "ftp")], .targetScheme), ([(":scheme", "")], .targetScheme),
        ([(":method", "GET /b HTTP/1.1\r\n\r\n")], .targetOctet),
        ([(":authority", "a\r\nx: y")], .targetOctet), ([(":status", "200")], .fieldNameSyntax),
        ([("a: b\r\nx", "y")], .fieldNameSyntax), ([("a:b", "y")], .fieldNameSyntax),
        ([("", "y")], .fieldNameSyntax), ([("x", "y\r\nz: a")], .controlOctet),
        ([("x", "y\nz")], .controlOctet), ([("x", "\0")], .controlOctet),
        ([("host", "b.test")], .hostDiffers),
        ([("transfer-encoding", "chunked")], .connectionOption),
        ([("connection", "x")], .connectionOption),
    ])
    func `what could end a line, or be read in two ways, makes no head`(
        _ more: [(String, String)],
        _ reason: Malformed.Reason
    ) throws {
        let replaced = Self.plain.filter { field in !more.contains { $0.0 == field.0 } }
        let pseudo = more.filter { $0.0.hasPrefix(":") }
        let rest = more.filter { !$0.0.hasPrefix(":") }
        let built = Self.built(replaced + pseudo + rest)
        #expect(built.fault == reason)
        #expect(built.head.isEmpty)
    }

    @Test func `a head too long is malformed`() throws {
        let long = String(repeating: "x", count: 4000)
        let over = Array(repeating: ("x", long), count: 5)
        #expect(Self.built(Self.plain + over).fault == .headTooLong)
        let farOver = Array(repeating: ("x", long), count: 17)
        #expect(Self.built(Self.plain + farOver).fault == .headTooLong)
        let many = Array(repeating: ("x", ""), count: 101)
        #expect(Self.built(Self.plain + many).fault == .fieldsTooMany)
    }

    @Test func `heads that follow each other don't mix, and are forgotten in parts`() throws {
        var builder = RequestHeadBuilder(nonce: 1)
        builder.begin()
        _ = builder.end(hasContent: false)
        builder.begin()
        builder.forgetTaken(isMidHead: true)
        #expect(builder.bytes.isEmpty)
        #expect(builder.end(hasContent: false).fault == .targetScheme)
    }
}
