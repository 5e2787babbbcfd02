import HTTPWire
import Testing

@testable import Admin

@Suite struct RequestReaderTests {
    private let text = Array(
        """
        GET /metrics HTTP/1.1\r
        Host: a\r
        \r
        HEAD /status HTTP/1.1\r
        Host: a\r
        Connection: close\r
        \r

        """.utf8
    )

    /// All requests in the pieces.
    private func requests(_ pieces: [ArraySlice<UInt8>]) throws(Malformed) -> [AdminRequest] {
        var reader = RequestReader()
        var found: [AdminRequest] = []
        for piece in pieces {
            Array(piece).withUnsafeBufferPointer { reader.append($0) }
            while let request = try reader.next(AdminLimits().requestHead) {
                found.append(request)
            }
        }
        let (isEmpty, hasBegun) = (reader.isEmpty, reader.hasBegun)
        #expect(isEmpty && !hasBegun)
        return found
    }

    @Test func `the same requests are found wherever the octets are cut`() throws {
        var cuts = text.indices.map { [text[..<$0], text[$0...]] }
        cuts.append(text.indices.map { text[$0...$0] })
        for pieces in cuts {
            let found = try requests(pieces)
            #expect(found.map(\.page) == [.metrics, .status])
            #expect(found.map(\.isHead) == [false, true])
            #expect(found.map(\.connection) == [.keep, .close])
        }
    }

    @Test func `half a head has begun and is no request`() throws {
        var reader = RequestReader()
        let hadBegun = reader.hasBegun
        text[..<10].withUnsafeBufferPointer { reader.append($0) }
        let request = try reader.next(AdminLimits().requestHead)
        let (isEmpty, hasBegun) = (reader.isEmpty, reader.hasBegun)
        #expect(!hadBegun && request == nil)
        #expect(hasBegun && !isEmpty)
    }

    @Test func `what is asked for is refused by page, then method, then content`() throws {
        let rows: [(String, AdminRequest.Outcome)] = [
            ("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n", .refused(.pageUnknown)),
            (
                "POST /status HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n",
                .refused(.methodRefused)
            ),
            (
                "GET /status HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n",
                .refused(.contentRefused)
            ),
            ("GET /status HTTP/1.1\r\nHost: a\r\n\r\n", .page(.status)),
            ("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", .refused(.pageUnknown)),
        ]
        for (text, outcome) in rows {
            #expect(try requests([Array(text.utf8)[...]]).first?.outcome == outcome)
        }
    }
}
