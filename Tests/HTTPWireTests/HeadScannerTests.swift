import Expectations
import HTTPWire
import Testing

struct HeadScannerTests {
    private static let limits = HeadLimits()

    /// The outcome after all pieces, and how many bytes were there when it came.
    private static func scan(
        _ pieces: [[UInt8]],
        limits: HeadLimits = limits
    ) -> (Result<HeadScanner.Outcome, Malformed>, Int) {
        var scanner = HeadScanner(.request(isSecure: false))
        var buffer: [UInt8] = []
        for piece in pieces {
            buffer += piece
            do throws(Malformed) {
                let outcome = try scanner.scan(buffer.span, limits: limits)
                if outcome != .needMore { return (.success(outcome), buffer.count) }
            } catch {
                return (.failure(error), buffer.count)
            }
        }
        return (.success(.needMore), buffer.count)
    }

    @Test func `finds the end of a head however it is cut, and no byte later`() {
        let next = Array("GET /2 HTTP/1.1\r\n".utf8)
        for (before, start) in [("", 0), ("\r\n", 2), ("\r\n\r\n", 4)] {
            let source = "\(before)GET / HTTP/1.1\r\nHost: a\r\nX: \t\r\n\r\n"
            let head = Array(source.utf8)
            for pieces in Splits.all(head + next) {
                let (outcome, _) = Self.scan(pieces)
                expectEqual(outcome, .success(.complete(start..<head.count)))
            }
            let (_, seen) = Self.scan(Splits.singles(head + next))
            expectEqual(seen, head.count)
        }
    }

    @Test(arguments: [
        ("GET / HTTP/1.1\n", Malformed.Reason.bareLineFeed),
        ("GET / HTTP/1.1\rX", .bareCarriageReturn),
        ("GET / HTTP/1.1\r\r", .bareCarriageReturn),
        ("\u{16}", .controlByte), ("GET / HTTP/1.1\r\nX: \u{0}", .controlByte),
        ("GET / HTTP/1.1\r\n\r\n", .hostMissing),
        ("GET /\r\n", .requestLineSyntax), ("G@", .methodSyntax), (" ", .methodSyntax),
        ("\r\n\r\n\r", .emptyLinesBeforeHead),
    ])
    func `rejects at once what can become no head`(_ source: String, _ reason: Malformed.Reason) {
        let bytes = Array(source.utf8)
        let (outcome, seen) = Self.scan(Splits.singles(bytes))
        if reason == .hostMissing {
            // Only the whole head tells; the scanner lets it through.
            expectEqual(outcome, .success(.complete(0..<bytes.count)))
        } else {
            expectEqual(outcome, .failure(Malformed(reason, at: 0)))
            expectEqual(seen, bytes.count)
        }
    }

    @Test(arguments: [
        ("GET /", "a", " HTTP/1.1\r\n\r\n", Malformed.Reason.targetTooLong),
        ("GET / HTTP/1.1\r\nX: ", "a", "\r\n\r\n", .headTooLong),
        ("GET / HTTP/1.1\r\n", "A", ": b\r\n\r\n", .headTooLong),
        ("", "A", " / HTTP/1.1\r\n\r\n", .methodTooLong),
        ("GET / HTTP/1.1", "\r\nX: y", "\r\n\r\n", .headTooLong),
    ])
    func `bounds what it waits for`(
        _ start: String,
        _ filling: String,
        _ end: String,
        _ reason: Malformed.Reason
    ) {
        let source = Array((start + String(repeating: filling, count: 20000) + end).utf8)
        expectEqual(Self.scan([source]).0, .failure(Malformed(reason, at: 0)))
        let (outcome, seen) = Self.scan(Splits.singles(source))
        expectEqual(outcome, .failure(Malformed(reason, at: 0)))
        #expect(seen <= Self.limits.headBytesMax + 2)
    }

    @Test func `a truncated head keeps waiting at every cut`() {
        let head = Array("POST /a?b HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n".utf8)
        for count in head.indices {
            let (outcome, _) = Self.scan([Array(head[..<count])])
            expectEqual(outcome, .success(.needMore))
        }
    }
}
