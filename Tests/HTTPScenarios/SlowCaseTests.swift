import Expectations
import LoopbackKit
import TestSupport
import Testing

extension Scenarios {
    /// The nine timed cases, with short timeouts instead of long delays.
    struct SlowCaseTests {
        private static func pieces(_ id: String) throws -> [[UInt8]] {
            try #require(HTTPCase.all.first { $0.id == id }).pieces
        }

        private func bench() throws -> Bench {
            let timeouts = "head: 400ms, body_idle: 400ms, idle: 300ms, handshake: 10s"
            return try Bench(more: "timeouts: { \(timeouts) }")
        }

        @Test(arguments: ["own-slow-00", "own-slow-04", "own-slow-05"])
        func `a request in pieces is served once it is there`(_ id: String) throws {
            let bench = try Bench()
            defer { bench.stop() }
            let client = try bench.connect()
            for piece in try Self.pieces(id) { try client.send(piece) }
            try expectEqual(client.readFinalResponse().status, 200)
            expectEqual(bench.origin.requests.count, 1)
        }

        @Test func `a head that is begun and not ended is answered 408`() throws {
            let bench = try bench()
            defer { bench.stop() }
            let client = try bench.connect()
            try client.send(Self.pieces("own-slow-01")[0])
            try expectEqual(client.readFinalResponse().status, 408)
            #expect(try client.endsSilently())
            #expect(bench.origin.connections.isEmpty)
        }

        @Test func `a head that trickles in is answered 408 however steady it is`() throws {
            let bench = try bench()
            defer { bench.stop() }
            let client = try bench.connect()
            // The head of the case, and a field that goes on for longer than any machine stalls.
            let bytes =
                try Self.pieces("own-slow-02").flatMap { $0 }
                + Array("X: \(String(repeating: "x", count: 500))".utf8)
            let began = ContinuousClock.now
            var sent = 0
            for byte in bytes {
                if client.isReadable(within: 40) { break }
                try client.send([byte])
                sent += 1
            }
            #expect(sent < bytes.count)
            try expectEqual(client.readFinalResponse().status, 408)
            #expect(began.duration(to: .now) >= .milliseconds(350))
            #expect(bench.origin.connections.isEmpty)
        }

        @Test func `content below the minimum rate is answered 408`() throws {
            let bench = try bench()
            defer { bench.stop() }
            let client = try bench.connect()
            let pieces = try Self.pieces("own-slow-03")
            try client.send(pieces[0])
            for piece in pieces.dropFirst() {
                if client.isReadable(within: 100) { break }
                try client.send(piece)
            }
            try expectEqual(client.readFinalResponse().status, 408)
            #expect(try client.endsSilently())
            #expect(bench.origin.wait { $0.allSatisfy { !$0.isOpen } })
            #expect(bench.origin.requests.isEmpty)
        }

        @Test func `content that is slow but steady passes`() throws {
            // All of it takes longer than a pause may; a pause takes a tenth of that.
            let timeouts = "{ body_idle: 1s, body_minimum_rate: 1B/s }"
            let bench = try Bench(more: "timeouts: \(timeouts)")
            defer { bench.stop() }
            let client = try bench.connect()
            try client.send("POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\n\r\n")
            for _ in 0..<12 {
                #expect(!client.isReadable(within: 100))
                try client.send("x")
            }
            try expectEqual(client.readFinalResponse().status, 200)
        }

        @Test func `a quote that is cut before CR is still malformed`() throws {
            let bench = try Bench()
            defer { bench.stop() }
            let client = try bench.connect()
            for piece in try Self.pieces("own-slow-06") { try client.send(piece) }
            try expectEqual(client.readFinalResponse().status, 400)
            #expect(try client.endsSilently())
            #expect(bench.origin.wait { $0.allSatisfy { !$0.isOpen } })
            #expect(bench.origin.requests.isEmpty)
        }

        @Test func `what follows an answer to slow content is no request`() throws {
            let bench = try bench()
            defer { bench.stop() }
            let client = try bench.connect()
            let pieces = try Self.pieces("own-slow-07")
            try client.send(pieces[0])
            try expectEqual(client.readFinalResponse().status, 408)
            for piece in pieces.dropFirst() { try client.send(piece) }
            #expect(try client.endsSilently())
            #expect(bench.origin.requests.isEmpty)
            expectEqual(bench.origin.connections.flatMap(\.heads).count, 1)
        }

        @Test func `an idle connection is closed without a word`() throws {
            let bench = try bench()
            defer { bench.stop() }
            let client = try bench.connect()
            try client.send(Self.pieces("own-slow-08")[0])
            try expectEqual(client.readFinalResponse().status, 200)
            #expect(try client.endsSilently())
        }
    }
}
