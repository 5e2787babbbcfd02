import Expectations
import HTTPWire
import Testing

struct ChunkedBodyTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let bytes: String
        let reason: Malformed.Reason?
        let content: String

        init(_ bytes: String, _ reason: Malformed.Reason) {
            (self.bytes, self.reason, content) = (bytes, reason, "")
        }

        init(_ bytes: String, content: String) {
            (self.bytes, reason, self.content) = (bytes, nil, content)
        }

        var testDescription: String { bytes.debugDescription }
    }

    static let rows: [Row] = [
        Row("0\r\n\r\n", content: ""),
        Row("5\r\nhello\r\n0\r\n\r\n", content: "hello"),
        Row("1\r\na\r\n2\r\nbc\r\n0\r\n\r\n", content: "abc"),
        Row("A\r\n0123456789\r\n000\r\n\r\n", content: "0123456789"),
        Row("1;a=b;c=\"d;\\\"\\\r\n", .chunkExtensionSyntax),
        Row("1 ; a = b;c=\"d\\\"\t\" ;e\r\nx\r\n0;f\r\n\r\n", content: "x"),
        Row("1;a=\"\u{E9}\"\r\nx\r\n0\r\n\r\n", content: "x"),
        Row("0\r\nX-T: v\r\n\r\n", content: ""),
        Row("\r\n", .chunkSizeSyntax), Row("g", .chunkSizeSyntax), Row("+1", .chunkSizeSyntax),
        Row(" 1", .chunkSizeSyntax), Row("0x1\r\n", .chunkExtensionSyntax),
        Row("5\nhello", .bareLineFeed), Row("5\rh", .bareCarriageReturn),
        Row("5 \r\n", .chunkExtensionSyntax), Row("5;\r\n", .chunkExtensionSyntax),
        Row("5;a=\r\n", .chunkExtensionSyntax), Row("5;a \r\n", .chunkExtensionSyntax),
        Row("5;a=\"b\r\n", .chunkExtensionSyntax), Row("5;a=\"b\"c\r\n", .chunkExtensionSyntax),
        Row("5;a\nhello", .bareLineFeed), Row("5,a\r\n", .chunkExtensionSyntax),
        Row("00000000000000005\r\n", .chunkSizeOverflow),
        Row("8000000000000000\r\n", .chunkSizeOverflow),
        Row("1\r\nab", .chunkDataEnd), Row("1\r\na\rb", .chunkDataEnd),
        Row("1\r\na\n", .chunkDataEnd),
        Row("0\r\n\n", .bareLineFeed), Row("0\r\n\rx", .bareCarriageReturn),
        Row("0\r\nX-T: v\n", .bareLineFeed), Row("0\r\nX-T\r\n\r\n", .colonMissing),
        Row("0\r\n X: v\r\n\r\n", .obsoleteFold), Row("0\r\nX: \u{0}\r\n\r\n", .controlByte),
        Row("0\r\nContent_Length: 1\r\n\r\n", .underscoreTwin),
    ]

    /// Reads pieces and answers the content, the bytes after the message, and the fault.
    private static func read(
        _ pieces: [[UInt8]],
        limits: HeadLimits = HeadLimits()
    ) -> (content: [UInt8], rest: Int?, fault: Malformed.Reason?, reader: BodyReader) {
        var reader = BodyReader(.chunked, limits: limits)
        var content: [UInt8] = []
        var rest: Int?
        for piece in pieces {
            if let seen = rest {
                rest = seen + piece.count
                continue
            }
            var position = 0
            do throws(Malformed) {
                reading: while true {
                    switch try reader.read(piece.span, from: &position) {
                    case .content(let range): content += piece[range]
                    case .needMore: break reading
                    case .finished:
                        rest = piece.count - position
                        break reading
                    }
                }
            } catch {
                return (content, nil, error.reason, reader)
            }
        }
        return (content, rest, nil, reader)
    }

    @Test(arguments: rows)
    func `a chunked body is read alike however it is cut`(_ row: Row) {
        let next = "GET / HTTP/1.1\r\n"
        let bytes = Array((row.bytes + next).utf8)
        for pieces in Splits.all(bytes) {
            let result = Self.read(pieces)
            expectEqual(result.fault, row.reason)
            guard row.reason == nil else { continue }
            expectEqual(result.content, Array(row.content.utf8))
            expectEqual(result.rest, next.utf8.count)
            expectEqual(result.reader.contentCount, UInt64(row.content.utf8.count))
        }
    }

    @Test(arguments: rows.filter { $0.reason == nil })
    func `a truncated chunked body is never finished`(_ row: Row) {
        let bytes = Array(row.bytes.utf8)
        for count in bytes.indices {
            var result = Self.read([Array(bytes[..<count])])
            #expect(result.rest == nil && result.fault == nil)
            #expect(throws: Malformed(.bodyTruncated, at: 0)) { try result.reader.close() }
        }
    }

    @Test func `extensions are bounded over the whole message`() {
        var limits = HeadLimits()
        limits.chunkExtensionBytesMax = 6
        let fine = "1;ab\r\nx\r\n0;cd\r\n\r\n"
        expectEqual(Self.read([Array(fine.utf8)], limits: limits).fault, nil)
        let more = "1;ab\r\nx\r\n0;cde\r\n\r\n"
        expectEqual(Self.read([Array(more.utf8)], limits: limits).fault, .chunkExtensionsTooLong)
    }

    @Test func `trailers are bounded and kept apart`() {
        var limits = HeadLimits()
        limits.trailerFieldsMax = 2
        limits.trailerBytesMax = 40
        let fine = Self.read([Array("0\r\nA: 1\r\nHost: b\r\n\r\n".utf8)], limits: limits)
        #expect(fine.fault == nil && fine.reader.trailers.fields.fields.count == 2)
        #expect(!fine.reader.trailers.isEmpty)
        let many = "0\r\nA: 1\r\nB: 1\r\nC: 1\r\n\r\n"
        expectEqual(Self.read([Array(many.utf8)], limits: limits).fault, .trailersTooLong)
        let long = "0\r\nA: \(String(repeating: "x", count: 60))"
        expectEqual(Self.read([Array(long.utf8)], limits: limits).fault, .trailersTooLong)
        let forbidden = Self.read([Array("0\r\nContent-Length: 1\r\nHost: b\r\n\r\n".utf8)])
        #expect(forbidden.reader.trailers.isEmpty)
    }

    @Test func `a length is counted off and the rest left alone`() throws {
        for pieces in Splits.all(Array("helloGET".utf8)) {
            var reader = BodyReader(.length(5), limits: HeadLimits())
            var content: [UInt8] = []
            var left = 0
            for piece in pieces {
                var position = 0
                while case .content(let range) = try reader.read(piece.span, from: &position) {
                    content += piece[range]
                }
                left += piece.count - position
            }
            #expect(content == Array("hello".utf8) && left == 3 && reader.isFinished)
        }
    }

    @Test func `no content is finished at once, and until close only by closing`() throws {
        var position = 0
        let bytes: [UInt8] = [1, 2]
        for framing in [BodyFraming.none, .length(0)] {
            var reader = BodyReader(framing, limits: HeadLimits())
            let step = try reader.read(bytes.span, from: &position)
            #expect(step == .finished && position == 0)
        }
        var open = BodyReader(.untilClose, limits: HeadLimits())
        let content = try open.read(bytes.span, from: &position)
        let rest = try open.read(bytes.span, from: &position)
        #expect(content == .content(0..<2) && rest == .needMore)
        #expect(open.expectedCount == nil && !open.isFinished)
        try open.close()
        #expect(open.isFinished && open.contentCount == 2)
        var short = BodyReader(.length(3), limits: HeadLimits())
        expectEqual(short.expectedCount, 3)
        #expect(throws: Malformed(.bodyTruncated, at: 0)) { try short.close() }
    }
}
