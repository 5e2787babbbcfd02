import Expectations
import Testing

@testable import HTTPWire

struct RequestIDTests {
    /// What a reader finds in a head with these fields.
    private func found(
        _ fields: String,
        _ read: (FieldSection, Span<UInt8>) -> RequestID?
    ) throws -> String? {
        let bytes = Array("GET / HTTP/1.1\r\nHost: a\r\n\(fields)\r\n".utf8)
        var head = RequestHead()
        try head.read(bytes.span, isSecure: false, limits: HeadLimits())
        return read(head.fields, bytes.span)?.text
    }

    private func requestID(_ fields: String) throws -> String? {
        try found(fields) { $0.requestID($1) }
    }

    private func traceID(_ value: String) throws -> String? {
        try found("traceparent: \(value)\r\n") { $0.spanContext($1)?.trace.name }
    }

    @Test func `a name of token characters is taken, up to 64 of them`() throws {
        let longest = String(repeating: "a", count: 64)
        for text in ["1", "7f3c-9a.b_c~d", longest] {
            try expectEqual(requestID("X-Request-Id: \(text)\r\n"), text)
        }
    }

    @Test(arguments: [
        "a b", "a\"b", "a\\b", "a,b", "{a}", "a/b", "ä", "", String(repeating: "a", count: 65),
    ])
    func `a name that could end a text or a field is not taken`(text: String) throws {
        try expectEqual(requestID("X-Request-Id: \(text)\r\n"), nil)
    }

    @Test func `of two names, and of one for this hop alone, none is taken`() throws {
        try expectEqual(requestID("X-Request-Id: a\r\nX-Request-Id: b\r\n"), nil)
        try expectEqual(requestID("X-Request-Id: a\r\nConnection: X-Request-Id\r\n"), nil)
    }

    private static let trace = "0af7651916cd43dd8448eb211c80319c"

    @Test func `a valid traceparent has a trace id, also of a later version`() throws {
        let first = "\(Self.trace)-b7ad6b7169203331"
        for value in ["00-\(first)-01", "00-\(first)-00", "cc-\(first)-01", "cc-\(first)-01-more"] {
            try expectEqual(traceID(value), Self.trace, "\(value)")
        }
    }

    @Test(arguments: [
        // W3C Trace Context §3.2.2: version ff, zeros, capitals, other lengths, other marks.
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
        "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.",
        "00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01", "", "00",
    ])
    func `a traceparent that is not valid has none`(value: String) throws {
        try expectEqual(traceID(value), nil)
    }

    @Test func `names of our own are 32 digits, and none comes twice`() {
        var (one, other) = (RequestIDSource(key: (1, 2)), RequestIDSource(key: (3, 2)))
        var seen = Set<String>()
        for _ in 0..<1000 {
            for id in [one.next(), other.next()] {
                let text = id.text
                expectEqual(text.utf8.count, 32)
                #expect(text.allSatisfy { "0123456789abcdef".contains($0) })
                #expect(seen.insert(text).inserted)
            }
        }
    }

    @Test func `a number is written with all its digits`() {
        expectEqual(RequestID(0, 1).text, "00000000000000000000000000000001")
        expectEqual(RequestID(0xFEDC_BA98_7654_3210, 0).text, "fedcba98765432100000000000000000")
    }

    @Test func `a span is written as the standard has it, and read again`() throws {
        let trace = try #require(TraceID(RequestID(1, 2)))
        for (isSampled, flags) in [(true, "01"), (false, "00")] {
            var out: [UInt8] = []
            let span = SpanContext(trace, span: 4, isSampled: isSampled)
            HeadWriter.traceParent(span, into: &out)
            let value = "00-00000000000000010000000000000002-0000000000000004-\(flags)"
            expectEqual(out, Array("traceparent: \(value)\r\n".utf8))
            _ = try found("traceparent: \(value)\r\n") {
                expectEqual($0.spanContext($1), span)
                return nil
            }
        }
        #expect(TraceID(0, 0) == nil && TraceID(RequestID(0, 0)) == nil)
        expectEqual(SpanContext.text(ofSpan: 0xAB), "00000000000000ab")
    }
}
