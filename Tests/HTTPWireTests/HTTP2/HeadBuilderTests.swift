import Expectations
import Testing

@testable import HTTPWire

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
                    builder.add(name, value, within: limits)
                }
            }
        }
        let built = builder.end(hasContent: hasContent)
        return (String(decoding: builder.bytes[built.range], as: UTF8.self), built.fault)
    }

    @Test func `fields become a head of HTTP/1.1, with one host and one cookie`() throws {
        let fields = [("cookie", "a"), ("host", "A.TEST"), ("x", ""), ("cookie", "b")]
        let built = Self.built(Self.plain + fields)
        expectEqual(built.head, "GET /x?y HTTP/1.1\r\nhost: a.test\r\nx: \r\ncookie: a; b\r\n\r\n")
        expectEqual(built.fault, nil)
    }

    @Test func `content without a length is chunked, and with one has it`() throws {
        #expect(Self.built(Self.plain, hasContent: true).head.contains("chunked"))
        let stated = Self.built(Self.plain + [("content-length", "3")], hasContent: true)
        #expect(!stated.head.contains("chunked"))
    }

    /// nghttp2 lets few of these through; nothing depends on that.
    @Test(arguments: [
        ([(":path", "/a HTTP/1.1\r\nx: y")], Malformed.Reason.targetByte),
        ([(":path", "http://b.test/")], .targetForm), ([(":path", "")], .targetForm),
        ([(":scheme", "ftp")], .targetScheme), ([(":scheme", "")], .targetScheme),
        ([(":method", "GET /b HTTP/1.1\r\n\r\n")], .targetByte),
        ([(":authority", "a\r\nx: y")], .targetByte), ([(":status", "200")], .fieldNameSyntax),
        ([("a: b\r\nx", "y")], .fieldNameSyntax), ([("a:b", "y")], .fieldNameSyntax),
        ([("", "y")], .fieldNameSyntax), ([("x", "y\r\nz: a")], .controlByte),
        ([("x", "y\nz")], .controlByte), ([("x", "\0")], .controlByte),
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
        expectEqual(built.fault, reason)
        #expect(built.head.isEmpty)
    }

    @Test func `a head too long is malformed`() throws {
        let long = String(repeating: "x", count: 4000)
        let over = Array(repeating: ("x", long), count: 5)
        expectEqual(Self.built(Self.plain + over).fault, .headTooLong)
        let farOver = Array(repeating: ("x", long), count: 17)
        expectEqual(Self.built(Self.plain + farOver).fault, .headTooLong)
        let many = Array(repeating: ("x", ""), count: 101)
        expectEqual(Self.built(Self.plain + many).fault, .fieldsTooMany)
    }

    @Test func `heads that follow each other don't mix, and are forgotten in parts`() throws {
        var builder = RequestHeadBuilder(nonce: 1)
        builder.begin()
        _ = builder.end(hasContent: false)
        builder.begin()
        builder.forgetTaken()
        #expect(builder.bytes.isEmpty)
        expectEqual(builder.end(hasContent: false).fault, .targetScheme)
    }

    private static func build(_ path: String, in builder: inout RequestHeadBuilder) -> String {
        builder.begin()
        let fields = [(":method", "GET"), (":scheme", "https"), (":path", path)]
        for (name, value) in fields {
            Array(name.utf8).withUnsafeBufferPointer { name in
                Array(value.utf8).withUnsafeBufferPointer {
                    builder.add(name, $0, within: HeadLimits())
                }
            }
        }
        let built = builder.end(hasContent: false)
        return String(decoding: builder.bytes[built.range], as: UTF8.self)
    }

    @Test func `memory goes from one connection to the next, and heads stay with their own`() {
        let memory = HeadMemory()
        var first = RequestHeadBuilder(nonce: 1)
        var second = RequestHeadBuilder(nonce: 2)
        memory.lend(to: &first)
        expectEqual(Self.build("/first", in: &first), "GET /first HTTP/1.1\r\n\r\n")
        // The first has the memory, so the second has its own.
        memory.lend(to: &second)
        expectEqual(Self.build("/other", in: &second), "GET /other HTTP/1.1\r\n\r\n")
        let capacity = first.capacity
        memory.takeBack(from: &first)
        memory.takeBack(from: &second)
        #expect((first.capacity, second.capacity) == (0, 0))
        memory.lend(to: &second)
        expectEqual(second.capacity, capacity)
        #expect(second.bytes.isEmpty)
        expectEqual(Self.build("/", in: &second), "GET / HTTP/1.1\r\n\r\n")
        // What one connection needed far more of is not kept for the others.
        let long = "/" + String(repeating: "a", count: 8000)
        for _ in 0..<10 { _ = Self.build(long, in: &second) }
        memory.takeBack(from: &second)
        memory.lend(to: &first)
        #expect((first.capacity, second.capacity) == (0, 0))
    }
}
