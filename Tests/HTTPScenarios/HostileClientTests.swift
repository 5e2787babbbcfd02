import Expectations
import Glibc
import LoopbackKit
import Testing

@testable import EventLoops

extension Scenarios {
    /// Clients that want to exhaust the gateway: each attack ends, memory stays, others are served.
    struct HostileClientTests {
        private static let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
        private static let upload =
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"

        /// What the process may grow by in an attack; all ends of all connections live in it.
        private static let growthMax = 32 << 20

        private func growth(_ attack: () throws -> Void) rethrows -> Int {
            try ResidentMemory.growth(below: Self.growthMax, attack)
        }

        /// Sends until the gateway has heard enough, then reads its answer.
        private func answer(to bytes: [UInt8], _ client: Wire) throws -> Int {
            do {
                _ = try client.sendUntilStalled(bytes, milliseconds: 1_000)
            } catch WireFault.reset {
                // The gateway reads away a bounded amount only.
            }
            return try client.readFinalResponse().status
        }

        @Test(arguments: [
            "GET / HTTP/1.1\r\nHost: a\r\nX: ", "GET /", "", "GET / HTTP/1.1\r\nHost: a\r\n ",
        ])
        func `a head without an end is answered long before it fills memory`(_ start: String)
            throws
        {
            let bench = try Bench()
            defer { bench.stop() }
            let flood = Array(start.utf8) + [UInt8](repeating: UInt8(ascii: "a"), count: 8 << 20)
            let grown = try growth {
                let status = try answer(to: flood, bench.connect())
                #expect([400, 414, 431].contains(status))
            }
            #expect(grown < Self.growthMax, "\(grown >> 10) KiB more")
            #expect(bench.origin.connections.isEmpty)
            try expectEqual(bench.gateway.ask(Self.get).status, 200)
        }

        @Test(arguments: ["A: b\r\n", "A:\r\n", "Content-Type: \r\n"])
        func `a flood of fields is answered 431`(_ line: String) throws {
            let bench = try Bench()
            defer { bench.stop() }
            let start = Array("GET / HTTP/1.1\r\nHost: a\r\n".utf8)
            let lines = Array(String(repeating: line, count: 1_000).utf8)
            let client = try bench.connect()
            try expectEqual(answer(to: start + lines + Array("\r\n".utf8), client), 431)
            #expect(bench.origin.connections.isEmpty)
        }

        @Test func `chunk extensions are bounded over all chunks together`() throws {
            let bench = try Bench()
            defer { bench.stop() }
            let chunk = "1;a=\(String(repeating: "b", count: 60))\r\nx\r\n"
            let client = try bench.connect()
            try client.send(Self.upload)
            let flood = Array(String(repeating: chunk, count: 10_000).utf8)
            try expectEqual(answer(to: flood, client), 400)
            #expect(bench.origin.wait { $0.allSatisfy { !$0.isOpen } })
            #expect(bench.origin.requests.isEmpty, "the origin never saw a whole request")
        }

        @Test func `trailers are bounded`() throws {
            let bench = try Bench()
            defer { bench.stop() }
            let client = try bench.connect()
            try client.send(Self.upload + "1\r\nx\r\n0\r\n")
            let flood = Array(String(repeating: "A: b\r\n", count: 100_000).utf8)
            let status = try answer(to: flood, client)
            #expect([400, 431].contains(status))
            #expect(bench.origin.wait { $0.allSatisfy { !$0.isOpen } })
            #expect(bench.origin.requests.isEmpty)
        }

        @Test func `content in chunks of one byte passes in bounded memory`() throws {
            let count = 200_000
            let bench = try Bench { connection in
                while let request = try connection.nextRequest() {
                    try connection.answer(200, body: "\(request.body.count)", to: request)
                }
            }
            defer { bench.stop() }
            let chunks = Array(String(repeating: "1\r\nx\r\n", count: count).utf8)
            let grown = try growth {
                let client = try bench.connect()
                try client.send(Array(Self.upload.utf8) + chunks + Array("0\r\n\r\n".utf8))
                try expectEqual(client.readFinalResponse().text, "\(count)")
            }
            #expect(grown < Self.growthMax, "\(grown >> 10) KiB more")
        }

        @Test func `a client that pipelines and never reads is stopped, the others are served`()
            throws
        {
            let bench = try Bench(more: "timeouts: { response_idle: 300ms }") { connection in
                while let request = try connection.nextRequest() {
                    try connection.answer(
                        200,
                        body: String(repeating: "x", count: 10_000),
                        to: request
                    )
                }
            }
            defer { bench.stop() }
            let requests = Array(String(repeating: Self.get, count: 1_000_000).utf8)
            var clients: [Wire] = []
            let grown = try growth {
                let client = try bench.connect()
                clients.append(client)
                do {
                    let sent = try client.sendUntilStalled(requests, milliseconds: 200)
                    #expect(sent < requests.count)
                } catch WireFault.reset {
                    // Cut off while it sent.
                }
                try expectEqual(bench.gateway.ask(Self.get).status, 200)
            }
            #expect(grown < Self.growthMax, "\(grown >> 10) KiB more")
            // It took nothing, so it is cut off: the origin is asked for the rest no more.
            #expect(bench.origin.requests.count < 1_000_000)
            for client in clients { #expect(client.isReset(within: Wire.patienceMilliseconds)) }
        }

        @Test func `ten thousand idle connections are held, and others are served`() throws {
            var limit = rlimit()
            getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            let bench = try Bench()
            defer { bench.stop() }
            // Both ends of each are in this process, and the gateway keeps an eighth free.
            let count = min(10_000, max(Int(limit.rlim_max / 16 * 7) - 1_000, 0))
            try #require(count > 100, "the limit of descriptors leaves nothing to try")
            HostedGateway.awaitEnds()
            let before = ResidentMemory.bytes
            let clients = try (0..<count).map { _ in try bench.connect() }
            // A beginning of a head each, so that all were accepted and hold something.
            for client in clients { try client.send("GET / HTTP/1.1\r\n") }
            for _ in 0..<20 { try expectEqual(bench.gateway.ask(Self.get).status, 200) }
            let each = (ResidentMemory.bytes - before) / count
            #expect(each < 16 << 10, "\(each) bytes a connection, with the client's own")
            for client in clients.suffix(20) {
                try client.send("Host: a\r\n\r\n")
                try expectEqual(client.readResponse().status, 200)
            }
        }

        @Test func `a thousand slow heads are all ended by the timeout`() throws {
            let bench = try Bench(more: "timeouts: { head: 300ms }")
            defer { bench.stop() }
            let clients = try (0..<1_000).map { _ in try bench.connect() }
            for client in clients { try client.send("GET / HTTP/1.1\r\nX: ") }
            try expectEqual(bench.gateway.ask(Self.get).status, 200)
            for client in clients { try expectEqual(client.readFinalResponse().status, 408) }
            expectEqual(bench.origin.connections.count, 1)
        }

        @Test func `a client that takes its response below the minimum rate is cut off`() throws {
            let content = Content(count: 32 << 20)
            let timeouts = "{ response_idle: 300ms, response_minimum_rate: 1MiB/s }"
            let bench = try Bench(more: "timeouts: \(timeouts)", script: Self.sending(content))
            defer { bench.stop() }
            let silent = try bench.connect()
            let client = try bench.connect()
            try client.send(Self.get)
            var taken = 0
            // A byte in each 10 ms, until the gateway has had enough.
            let isCut = {
                do {
                    while taken < 3_000 {
                        try client.receive(atMost: 1)
                        taken += 1
                        _ = silent.isReadable(within: 10)
                        if bench.origin.connections.allSatisfy({ !$0.isOpen }) { return true }
                    }
                    return false
                } catch {
                    return true
                }
            }()
            #expect(isCut)
            #expect(taken < 3_000)
        }

        @Test func `a client that reads slowly is not cut off because the kernel holds much`()
            throws
        {
            let content = Content(count: 8 << 20)
            let timeouts = "{ response_idle: 1s, response_minimum_rate: 1KiB/s }"
            let bench = try Bench(more: "timeouts: \(timeouts)", script: Self.sending(content))
            defer { bench.stop() }
            let silent = try bench.connect()
            let client = try bench.connect()
            Wire.set(client.descriptor, SOL_SOCKET, SO_RCVBUF, 16 << 10)
            try client.send(Self.get)
            // For longer than the timeout, a little at a time; then the rest at once.
            for _ in 0..<60 {
                try client.receive(atMost: 8 << 10)
                #expect(!silent.isReadable(within: 40))
            }
            _ = try client.readHead()
            try expectEqual(client.digest(of: content.count), content.digest)
        }

        @Test func `for a client that does not read the kernel holds little`() throws {
            let content = Content(count: 16 << 20)
            let stalled = Gate()
            let bench = try Bench { connection in
                while try connection.nextRequest() != nil {
                    let length = "Content-Length: \(content.count)\r\n"
                    try connection.wire.send("HTTP/1.1 200 OK\r\n\(length)\r\n")
                    var hasStalled = false
                    for piece in content.pieces {
                        let sent = try connection.wire.sendUntilStalled(piece, milliseconds: 300)
                        guard sent < piece.count else { continue }
                        if !hasStalled { stalled.open() }
                        hasStalled = true
                        try connection.wire.send(Array(piece[sent...]))
                    }
                }
            }
            defer { bench.stop() }
            let client = try bench.connect()
            try client.send(Self.get)
            try stalled.pass()
            let queue = try SendQueue.bytes(from: bench.gateway.port, to: client.localPort)
            // The bound, and the segment that was begun below it.
            let most = (128 << 10) + (64 << 10)
            #expect(queue <= most, "\(queue) bytes")
            #expect(queue > 0)
            // What was held back comes when the client reads.
            _ = try client.readHead()
            try expectEqual(client.digest(of: content.count), content.digest)
        }

        /// A new key costs the client 27 bytes, and the gateway as many (RFC 8446 §4.6.3).
        @Test func `an upload that asks for keys all the time has to take the answers`() throws {
            let bench = try Bench(isSecure: true) { connection in
                guard try connection.nextHead() != nil else { return }
                try connection.awaitEnd()
            }
            defer { bench.stop() }
            let certificate = try TestCertificate.made.get().certificate
            let context = try TLSContext(clientTrusting: .file(certificate))
            let tls = try TLSSession(connecting: context, to: "127.0.0.1")
            let client = try Wire(port: bench.gateway.port)
            var out: [UInt8] = []
            func send() throws {
                tls.takeCiphertext(into: &out)
                try client.send(out)
                out = []
            }
            tls.goOn()
            try send()
            while !tls.isEstablished {
                try client.receive()
                let came = client.inbox
                client.inbox = []
                tls.feed(came.span)
                tls.goOn()
                try send()
            }
            let head = Array("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 999999\r\n\r\n".utf8)
            let isWritten = tls.write(head.span)
            #expect(isWritten)
            let piece: [UInt8] = [7]
            #expect(throws: WireFault.reset) {
                // The answers to all would be 6 MB.
                for _ in 0..<1_000 {
                    for _ in 0..<220 {
                        tls.updateKey(isPeerAsked: true)
                        _ = tls.write(piece.span)
                    }
                    try send()
                }
            }
        }

        /// Answers with this content.
        private static func sending(_ content: Content) -> TestOrigin.Script {
            { connection in
                while try connection.nextRequest() != nil {
                    let length = "Content-Length: \(content.count)\r\n"
                    try connection.wire.send("HTTP/1.1 200 OK\r\n\(length)\r\n")
                    try connection.wire.send(content)
                }
            }
        }
    }
}
