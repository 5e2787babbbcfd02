import EventLoops
import Expectations
import Gateway
import Glibc
import LoopbackKit
import Services
import Telemetry
import Testing

extension Scenarios {
    /// How a connection to a client ends behind its last response.
    struct ConnectionEndTests {
        /// So long that a connection which waits for the client's end is still there.
        private static let lingering = "timeouts: { linger: 1h }"

        private static func open(_ snapshot: AdminSnapshot) -> Int {
            snapshot.loops.reduce(0) { $0 + $1.openConnections }
        }

        @Test(
            arguments: [
                "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
                "GET / HTTP/1.0\r\nHost: a\r\n\r\n",
            ],
            [false, true]
        )
        func `a client that has said that its request is the last is let go of at once`(
            request: String,
            isSecure: Bool
        ) throws {
            let bench = try Bench(isSecure: isSecure, more: Self.lingering)
            defer { bench.stop() }
            let client = try bench.connect()
            defer { client.close() }
            try client.send(request)
            try expectEqual(client.readFinalResponse().status, 200)
            #expect(try client.endsSilently())
            expectEqual(client.wasEndedInOrder, isSecure)
            // The client has not closed its side.
            try bench.gateway.server.wait { Self.open($0) == 0 }
        }

        /// The segments: what answers the connect, what acknowledges the request, and the response.
        @Test(
            arguments: [
                "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
                "GET / HTTP/1.0\r\nHost: a\r\n\r\n",
                "POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\nab",
                "GET /\u{1} HTTP/1.1\r\nHost: a\r\n\r\n",
                "GET / HTTP/2.5\r\nHost: a\r\n\r\n",
            ]
        )
        func `the last response and the end are one segment`(request: String) throws {
            let bench = try Bench(more: Self.lingering)
            defer { bench.stop() }
            for _ in 0..<3 {
                let client = try bench.connect()
                defer { client.close() }
                try client.send(request)
                _ = try client.readFinalResponse()
                #expect(try client.endsSilently())
                #expect((2...3).contains(client.segmentsReceived))
            }
        }

        @Test(arguments: [false, true])
        func `the whole of a large last response arrives, however late it is read`(
            isSecure: Bool
        ) throws {
            let content = String(repeating: "0123456789abcdef", count: 1 << 18)
            let bench = try Bench(isSecure: isSecure, more: Self.lingering) { connection in
                guard let head = try connection.nextHead() else { return }
                try connection.answer(200, body: content, to: head)
            }
            defer { bench.stop() }
            for _ in 0..<3 {
                let client = try bench.connect()
                defer { client.close() }
                try client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                #expect(client.isReadable(within: Wire.patienceMilliseconds))
                try expectEqual(client.readFinalResponse().text, content)
                #expect(try client.endsSilently())
            }
        }

        /// A reset would drop what the client has not read of the response before.
        @Test(
            arguments: [
                "Content-Length: 9\r\n\r\nhello",
                "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
            ],
            [false, true]
        )
        func `behind a response that is cut short the one before it arrives whole`(
            cut: String,
            isSecure: Bool
        ) throws {
            let content = Content(count: 100_000)
            let bench = try Bench(isSecure: isSecure) { connection in
                guard try connection.nextRequest() != nil else { return }
                let head = "HTTP/1.1 200 OK\r\nContent-Length: \(content.count)\r\n\r\n"
                try connection.wire.send(head)
                try connection.wire.send(content)
                guard try connection.nextRequest() != nil else { return }
                try connection.wire.send("HTTP/1.1 200 OK\r\n" + cut)
            }
            defer { bench.stop() }
            let client = try bench.connect()
            defer { client.close() }
            // Most of it stays in the gateway's kernel.
            Wire.set(client.descriptor, SOL_SOCKET, SO_RCVBUF, 4_096)
            let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
            try client.send(get + get)
            try bench.gateway.server.wait { snapshot in
                snapshot.loops.contains { $0.tally[.originFailures] == 1 }
            }
            _ = try client.readHead()
            try expectEqual(client.digest(of: content.count), content.digest)
            #expect(throws: WireFault.ended) { try client.readResponse() }
        }

        /// Older clients send CR LF behind content (RFC 9112 §2.2), and a reset would destroy the
        /// response that they have not read yet.
        @Test func `a connection whose last request had content waits for the client`() throws {
            let origin = try TestOrigin()
            defer { origin.stop() }
            let gateway = try TestGateway(origin, more: Self.lingering)
            defer { gateway.stop() }
            let client = try Wire(port: gateway.port)
            defer { client.close() }
            let fields = "Host: a\r\nConnection: close\r\nContent-Length: 2\r\n"
            try client.send("POST / HTTP/1.1\r\n\(fields)\r\nab")
            #expect(client.isReadable(within: Wire.patienceMilliseconds))
            try client.send("\r\n")
            try expectEqual(client.readFinalResponse().status, 200)
            #expect(try client.endsSilently())
            expectEqual(Self.open(try gateway.server.snapshot()), 1)
        }

        /// The client's end comes with more bytes than one read brings.
        @Test func `a refused client that sends on, then ends, gets no reset`() throws {
            let folder = try TemporaryFolder.make()
            defer { TemporaryFolder.remove(folder) }
            let origin = try TestOrigin()
            defer { origin.stop() }
            let path = folder + "/gateway.sock"
            let gateway = try TestGateway(
                [("shop", [origin.address])],
                listen: "address: 'unix:\(path)'"
            )
            defer { gateway.stop() }
            let door = try LoopDoor(gateway)
            let client = try Wire(path: path)
            defer { client.close() }
            try client.send("GET /%2f HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(client.isReadable(within: Wire.patienceMilliseconds))
            try door.shut()
            let bytes = [UInt8](repeating: 7, count: EventLoop.inputBytes * 3 / 2)
            try expectEqual(client.sendUntilStalled(bytes, milliseconds: 200), bytes.count)
            client.finishSending()
            door.open()
            try expectEqual(client.readFinalResponse().status, 400)
            // An orderly end; a reset would be a fault.
            #expect(try client.readToEnd().isEmpty)
            door.remove()
        }
    }
}
