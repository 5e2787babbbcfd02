import Expectations
import LoopbackKit
import Testing

extension Scenarios {
    /// Origins that were taken over, or are broken: what they send is bounded too.
    struct HostileOriginTests {
        private static let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

        /// Reads a request, sends this as long as it is taken, a piece at a time.
        private static func flooding(
            _ start: String,
            _ piece: String,
            count: Int
        ) -> TestOrigin.Script {
            { connection in
                while try connection.nextRequest() != nil {
                    try connection.wire.send(start)
                    let block = Array(String(repeating: piece, count: 1_000).utf8)
                    do {
                        for _ in 0..<count / 1_000 { try connection.wire.send(block) }
                    } catch WireFault.reset {
                        return
                    }
                    try connection.awaitEnd()
                }
            }
        }

        @Test func `a flood of interim responses is answered for with 502`() throws {
            let bench = try Bench(
                script: Self.flooding("", "HTTP/1.1 102 Processing\r\n\r\n", count: 200_000)
            )
            defer { bench.stop() }
            let client = try bench.connect()
            try client.send(Self.get)
            var interim = 0
            var answer = try client.readResponse()
            while answer.status < 200 {
                interim += 1
                answer = try client.readResponse()
            }
            expectEqual(answer.status, 502)
            #expect(interim <= 16)
            #expect(bench.origin.wait { $0.allSatisfy { !$0.isOpen } })
        }

        @Test(arguments: ["A: b\r\n", "Set-Cookie: a\r\n"])
        func `a flood of fields is answered for with 502`(_ line: String) throws {
            let bench = try Bench(
                script: Self.flooding("HTTP/1.1 200 OK\r\n", line, count: 1_000_000)
            )
            defer { bench.stop() }
            try expectEqual(bench.gateway.ask(Self.get).status, 502)
            #expect(bench.origin.wait { $0.allSatisfy { !$0.isOpen } })
        }

        @Test(arguments: ["A: b\r\n", "1;a=b\r\nx\r\n"])
        func `floods behind a response's head end it`(_ piece: String) throws {
            let last = piece.hasPrefix("A") ? "0\r\n" : ""
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n\(last)"
            let bench = try Bench(script: Self.flooding(head, piece, count: 1_000_000))
            defer { bench.stop() }
            let client = try bench.connect()
            try client.send(Self.get)
            #expect(throws: WireFault.reset) { _ = try client.readFinalResponse() }
            #expect(bench.origin.wait { $0.allSatisfy { !$0.isOpen } })
        }

        @Test func `a head that trickles in is bounded by the time for the first byte`() throws {
            let bench = try Bench(more: "timeouts: { first_byte: 300ms }") { connection in
                while try connection.nextRequest() != nil {
                    try connection.wire.send("HTTP/1.1 200 OK\r\nX: ")
                    // Until the gateway ends it.
                    while !connection.wire.isReadable(within: 20) {
                        try connection.wire.send("a")
                    }
                    try connection.awaitEnd()
                }
            }
            defer { bench.stop() }
            try expectEqual(bench.gateway.ask(Self.get).status, 504)
            #expect(bench.origin.wait { $0.allSatisfy { !$0.isOpen } })
        }
    }
}
