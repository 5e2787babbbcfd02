import Cryptography
import Expectations
import Foundation
import LoopbackKit
import Synchronization
import Testing

extension Scenarios {
    struct ContentTests {
        private static let digests = "X-Digest"

        /// Takes a request's content and says what it hashes to.
        private static let hashing: TestOrigin.Script = { connection in
            while let head = try connection.nextHead() {
                let digest: SHA256Digest
                if let length = head.head.value("content-length").flatMap({ Int($0) }) {
                    digest = try connection.wire.digest(of: length)
                } else {
                    digest = SHA256.digest(of: try connection.finish(head).body)
                }
                try connection.answer(200, body: "\(digest.array)", to: head)
            }
        }

        private static func text(_ content: Content) -> String { "\(content.digest.array)" }

        @Test(arguments: [1, 10 << 20])
        func `chunked content reaches the origin byte by byte`(_ count: Int) throws {
            let content = Content(count: count)
            let bench = try Bench(script: Self.hashing)
            defer { bench.stop() }
            let client = try bench.connect()
            for _ in 0..<2 {
                try client.send("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
                try client.sendChunks(of: content)
                try client.send("0\r\n\r\n")
                try expectEqual(client.readResponse().text, Self.text(content))
            }
        }

        @Test(arguments: [1, 64 << 20])
        func `content with a length reaches the origin byte by byte`(_ count: Int) throws {
            let content = Content(count: count)
            let bench = try Bench(script: Self.hashing)
            defer { bench.stop() }
            let client = try bench.connect()
            try client.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: \(count)\r\n\r\n")
            try client.send(content)
            try expectEqual(client.readResponse().text, Self.text(content))
        }

        @Test(arguments: [1, 10 << 20])
        func `a chunked response reaches the client byte by byte`(_ count: Int) throws {
            let content = Content(count: count)
            let bench = try Bench { connection in
                while try connection.nextRequest() != nil {
                    try connection.wire.send(
                        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                    )
                    try connection.wire.sendChunks(of: content)
                    try connection.wire.send("0\r\n\r\n")
                }
            }
            defer { bench.stop() }
            let client = try bench.connect()
            for version in ["1.1", "1.1", "1.0"] {
                try client.send("GET / HTTP/\(version)\r\nHost: a\r\n\r\n")
                let response = try client.readResponse()
                expectEqual(response.body.count, count)
                expectEqual(SHA256.digest(of: response.body), content.digest)
            }
        }

        @Test(arguments: [1, 64 << 20])
        func `a response with a length reaches the client byte by byte`(_ count: Int) throws {
            let content = Content(count: count)
            let bench = try Bench { connection in
                while try connection.nextRequest() != nil {
                    try connection.wire.send("HTTP/1.1 200 OK\r\nContent-Length: \(count)\r\n\r\n")
                    try connection.wire.send(content)
                }
            }
            defer { bench.stop() }
            let client = try bench.connect()
            try client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            try expectEqual(client.readHead().value("content-length"), "\(count)")
            try expectEqual(client.digest(of: count), content.digest)
            try client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            _ = try client.readHead()
        }

        @Test func `content flows both ways at once`() throws {
            let content = Content(count: 8 << 20)
            let bench = try Bench { connection in
                guard try connection.nextHead() != nil else { return }
                let wire = connection.wire
                try wire.send("HTTP/1.1 200 OK\r\nContent-Length: \(content.count)\r\n\r\n")
                var rest = content.count
                while rest > 0 {
                    if wire.inbox.isEmpty { try wire.receive() }
                    let bytes = wire.inbox
                    wire.inbox = []
                    rest -= bytes.count
                    try wire.send(bytes)
                }
            }
            defer { bench.stop() }
            let client = try bench.connect()
            let length = "Content-Length: \(content.count)\r\n"
            try client.send("POST / HTTP/1.1\r\nHost: a\r\n\(length)\r\n")
            Thread.detachNewThread { try? client.send(content) }
            _ = try client.readHead()
            try expectEqual(client.digest(of: content.count), content.digest)
        }

        // MARK: Memory

        private func growth(_ body: () throws -> Void) rethrows -> Int {
            try ResidentMemory.growth(below: Self.growthMax, body)
        }

        private static let growthMax = 8 << 20

        @Test func `an origin that does not read stops the client, and nothing piles up`() throws {
            let content = Content(count: 64 << 20)
            let gate = Gate()
            let bench = try Bench { connection in
                while let head = try connection.nextHead() {
                    try gate.pass()
                    let digest = try connection.wire.digest(of: content.count)
                    try connection.answer(200, body: "\(digest.array)", to: head)
                }
            }
            defer { bench.stop() }
            let length = "Content-Length: \(content.count)\r\n"
            let expected = Self.text(content)
            let grown = try growth {
                let client = try bench.connect()
                try client.send("PUT / HTTP/1.1\r\nHost: a\r\n\(length)\r\n")
                var sent = 0
                for piece in content.pieces {
                    let taken = try client.sendUntilStalled(piece, milliseconds: 200)
                    sent += taken
                    guard taken < piece.count else { continue }
                    break
                }
                // What the kernel's buffers take is a part of it only.
                #expect(sent < content.count)
                gate.open()
                for piece in Content(count: content.count).pieces.dropFirst(sent >> 20) {
                    try client.send(
                        sent & 0xF_FFFF == 0 ? piece : Array(piece[(sent & 0xF_FFFF)...])
                    )
                    sent = 0
                }
                try expectEqual(client.readResponse().text, expected)
            }
            #expect(grown < Self.growthMax, "\(grown >> 10) KiB more")
        }

        @Test func `content may stand still for longer than body_idle where the origin stops it`()
            throws
        {
            let content = Content(count: 40 << 20)
            let gate = Gate()
            let bench = try Bench(more: "timeouts: { body_idle: 1s }") { connection in
                guard let head = try connection.nextHead() else { return }
                try gate.pass()
                let digest = try connection.wire.digest(of: content.count)
                try connection.answer(200, body: "\(digest.array)", to: head)
            }
            defer { bench.stop() }
            let client = try bench.connect()
            let length = "Content-Length: \(content.count)\r\n"
            try client.send("PUT / HTTP/1.1\r\nHost: a\r\n\(length)\r\n")
            var rest: [UInt8] = []
            var unsent = content.pieces.makeIterator()
            while rest.isEmpty, let piece = unsent.next() {
                let taken = try client.sendUntilStalled(piece, milliseconds: 1_500)
                rest = Array(piece[taken...])
            }
            #expect(!rest.isEmpty)
            #expect(try bench.isServing())
            gate.open()
            try client.send(rest)
            while let piece = unsent.next() { try client.send(piece) }
            try expectEqual(client.readResponse().text, Self.text(content))
        }

        @Test func `a client that does not read stops the origin, and nothing piles up`() throws {
            let content = Content(count: 64 << 20)
            let stalled = Gate()
            let bench = try Bench { connection in
                while try connection.nextRequest() != nil {
                    let length = "Content-Length: \(content.count)\r\n"
                    try connection.wire.send("HTTP/1.1 200 OK\r\n\(length)\r\n")
                    var isStalled = false
                    for piece in content.pieces {
                        let taken = try connection.wire.sendUntilStalled(
                            piece,
                            milliseconds: isStalled ? Wire.patienceMilliseconds : 200
                        )
                        guard taken < piece.count else { continue }
                        isStalled = true
                        stalled.open()
                        try connection.wire.send(Array(piece[taken...]))
                    }
                }
            }
            defer { bench.stop() }
            let expected = content.digest
            let grown = try growth {
                let client = try bench.connect()
                try client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                try stalled.pass()
                _ = try client.readHead()
                try expectEqual(client.digest(of: content.count), expected)
            }
            #expect(grown < Self.growthMax, "\(grown >> 10) KiB more")
        }
    }
}
