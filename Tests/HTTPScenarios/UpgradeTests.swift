import EventLoops
import Expectations
import Foundation
import LoopbackKit
import Services
import Synchronization
import TestSupport
import Testing

@testable import Gateway

extension Scenarios {
    struct UpgradeTests {
        private static let handshake = """
            GET /socket HTTP/1.1\r
            Host: a\r
            Connection: Upgrade\r
            Upgrade: websocket\r
            Sec-WebSocket-Version: 13\r
            Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r
            \r

            """
        private static let accepted = """
            HTTP/1.1 101 Switching Protocols\r
            Upgrade: websocket\r
            Connection: Upgrade\r
            Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r
            \r

            """

        /// Agrees to a tunnel, then sends back what it gets until the end.
        private static let echo: TestOrigin.Script = { connection in
            guard try connection.nextRequest() != nil else { return }
            try connection.wire.send(accepted)
            do {
                try connection.echo()
            } catch WireFault.ended {
                connection.wire.finishSending()
            }
        }

        @Test func `after 101 bytes pass both ways until both have ended`() throws {
            let bench = try Bench(script: Self.echo)
            defer { bench.stop() }
            let client = try bench.connect()
            try client.send(Self.handshake)
            let answer = try client.readResponse()
            expectEqual(answer.status, 101)
            expectEqual(answer.head.all("upgrade"), ["websocket"])
            expectEqual(answer.head.all("connection"), ["upgrade"])
            #expect(answer.head.has("sec-websocket-accept"))
            let request = try #require(bench.origin.requests.first)
            expectEqual(request.head.all("upgrade"), ["websocket"])
            expectEqual(request.head.all("connection"), ["upgrade"])
            let message = [UInt8](repeating: 0, count: 100_000) + Array("\r\n\r\nGET /x".utf8)
            try client.send(message)
            try expectEqual(client.take(message.count), message)
            try client.send("last")
            client.finishSending()
            try expectEqual(client.readToEnd(), Array("last".utf8))
            #expect(bench.origin.wait { $0.allSatisfy { !$0.isOpen } })
        }

        @Test func `a tunnel is logged when it ends, with the bytes of both directions`() throws {
            let origin = try TestOrigin(script: Self.echo)
            defer { origin.stop() }
            let gateway = try TestGateway(
                [("shop", [origin.address])],
                log: "{ access: ./access.log, level: error }"
            )
            let client = try gateway.connect()
            try client.send(Self.handshake)
            try expectEqual(client.readResponse().status, 101)
            // Another request begins and ends meanwhile.
            try expectEqual(gateway.ask("GET /%2f HTTP/1.1\r\nHost: a\r\n\r\n").status, 400)
            try client.send([UInt8](repeating: 7, count: 100_000))
            try expectEqual(client.take(100_000).count, 100_000)
            try expectEqual(self.openTunnels(gateway), 1)
            client.finishSending()
            try expectEqual(client.readToEnd(), [])
            let lines = try self.logLines(gateway, count: 2)
            try expectEqual(self.openTunnels(gateway), 0)
            gateway.stop()
            try #require(lines.count == 2)
            #expect(lines[0].contains(#""status":400"#))
            let line = lines[1]
            #expect(line.contains(#""path":"/socket","status":101"#))
            #expect(line.contains(#""request_bytes":100000,"response_bytes":100000"#))
            let times = try lines.map { line in
                try #require(line.split(separator: #""duration_us":"#).last?.prefix { $0 != "," })
            }
            // The tunnel was there before the other request began, and after it had ended.
            #expect(try #require(Int(times[1])) > #require(Int(times[0])))
        }

        /// The lines of the access log once there are `count`, or those there are at the deadline.
        /// The log is written after the event loop's iteration in which a request ended.
        private func logLines(_ gateway: TestGateway, count: Int) throws -> [Substring] {
            var lines: [Substring] = []
            let path = gateway.folder + "/access.log"
            try eventually {
                lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
                return lines.count >= count
            }
            return lines
        }

        /// What the gauge of the gateway's one event loop says.
        private func openTunnels(_ gateway: TestGateway) throws -> UInt64 {
            let gathered = Gate()
            let open = OpenTunnels()
            try #require(gateway.server.plane.loops.first).gather { facts in
                open.count.store(facts.openTunnels, ordering: .relaxed)
                gathered.open()
            }
            try gathered.pass()
            return open.count.load(ordering: .relaxed)
        }

        private final class OpenTunnels: Sendable {
            let count = Atomic<UInt64>(0)
        }

        @Test func `two hundred tunnels echo side by side`() throws {
            let bench = try Bench(script: Self.echo)
            defer { bench.stop() }
            let clients = try (0..<200).map { _ in try bench.connect() }
            for client in clients { try client.send(Self.handshake) }
            for client in clients { try expectEqual(client.readResponse().status, 101) }
            for round in 0..<5 {
                for (number, client) in clients.enumerated() {
                    try client.send("message \(round) of \(number);")
                }
                for (number, client) in clients.enumerated() {
                    let message = Array("message \(round) of \(number);".utf8)
                    try expectEqual(client.take(message.count), message)
                }
            }
            for client in clients { client.close() }
            #expect(bench.origin.wait { $0.allSatisfy { !$0.isOpen } })
        }

        @Test func `no byte of the tunnel reaches the origin before its 101`() throws {
            let gate = Gate()
            let bench = try Bench { connection in
                while let request = try connection.nextRequest() {
                    guard request.target == "/socket" else {
                        try connection.answer(200, body: "ok", to: request)
                        continue
                    }
                    try gate.pass()
                    let isQuiet =
                        connection.wire.inbox.isEmpty
                        && !connection.wire.isReadable(within: 0)
                    try connection.wire.send(Self.accepted)
                    let early = try connection.wire.take(5)
                    try connection.wire.send(Array((isQuiet ? "quiet " : "early ").utf8) + early)
                    return try connection.awaitEnd()
                }
            }
            defer { bench.stop() }
            let client = try bench.connect()
            try client.send(Self.handshake + "early")
            // Served behind it on the same event loop, so the event loop has seen all of it.
            try expectEqual(bench.gateway.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").text, "ok")
            gate.open()
            try expectEqual(client.readResponse().status, 101)
            try expectEqual(client.take(11), Array("quiet early".utf8))
        }

        @Test func `an origin that refuses the upgrade leaves a connection for requests`() throws {
            let bench = try Bench()
            defer { bench.stop() }
            let client = try bench.connect()
            for _ in 0..<2 {
                try client.send(Self.handshake)
                let answer = try client.readResponse()
                expectEqual(answer.status, 200)
                #expect(!answer.head.has("upgrade"))
            }
            expectEqual(bench.origin.connections.count, 1)
        }

        @Test(arguments: ["h2c", "h2c, websocket", "TLS/1.0", "foo/9"])
        func `an upgrade that would leave the gateway blind is served as a plain request`(
            _ wanted: String
        ) throws {
            let bench = try Bench()
            defer { bench.stop() }
            let request = Self.handshake.replacing("Upgrade: websocket", with: "Upgrade: \(wanted)")
            try expectEqual(bench.gateway.ask(request).status, 200)
            let head = try #require(bench.origin.requests.first).head
            #expect(!head.has("upgrade") && !head.has("connection"))
        }

        @Test(arguments: ["Upgrade: h2c\r\n", ""])
        func `a switch to what was not asked for is no answer`(_ upgrade: String) throws {
            let bench = try Bench { connection in
                guard try connection.nextRequest() != nil else { return }
                let switched = Self.accepted.replacing("Upgrade: websocket\r\n", with: upgrade)
                try connection.wire.send(switched + "bytes")
                try connection.awaitEnd()
            }
            defer { bench.stop() }
            try expectEqual(bench.gateway.ask(Self.handshake).status, 502)
        }

        @Test func `bytes that the origin sends with its 101 come first`() throws {
            let bench = try Bench { connection in
                guard try connection.nextRequest() != nil else { return }
                try connection.wire.send(Self.accepted + "hello")
                try connection.awaitEnd()
            }
            defer { bench.stop() }
            let client = try bench.connect()
            try client.send(Self.handshake)
            try expectEqual(client.readResponse().status, 101)
            try expectEqual(client.take(5), Array("hello".utf8))
        }

        @Test func `what a client sends behind the origin's end arrives whole`() throws {
            let gate = Gate()
            let received = Mutex(0)
            let bench = try Bench { connection in
                guard try connection.nextRequest() != nil else { return }
                try connection.wire.send(Self.accepted + "bye")
                connection.wire.finishSending()
                try gate.pass()
                let count = try connection.wire.readToEnd().count
                received.withLock { $0 = count }
            }
            defer { bench.stop() }
            let client = try bench.connect()
            try client.send(Self.handshake)
            try expectEqual(client.readResponse().status, 101)
            try expectEqual(client.readToEnd(), Array("bye".utf8))
            let bytes = [UInt8](repeating: 7, count: 32 << 20)
            let sent = try client.sendUntilStalled(bytes, milliseconds: 200)
            client.close()
            gate.open()
            #expect(bench.origin.wait { $0.allSatisfy { !$0.isOpen } })
            expectEqual(received.withLock { $0 }, sent)
        }

        /// The close of a Unix socket ends both directions at once.
        @Test func `what a client sends before it closes a Unix socket arrives whole`() throws {
            let gate = Gate()
            let received = Mutex(0)
            let folder = try TemporaryFolder.make()
            defer { TemporaryFolder.remove(folder) }
            let origin = try TestOrigin { connection in
                guard let request = try connection.nextRequest() else { return }
                guard request.target == "/socket" else {
                    return try connection.answer(200, body: "ok", to: request)
                }
                try connection.wire.send(Self.accepted)
                try gate.pass()
                let count = try connection.wire.readToEnd().count
                received.withLock { $0 = count }
            }
            defer { origin.stop() }
            let path = folder + "/gateway.sock"
            let gateway = try TestGateway(
                [("shop", [origin.address])],
                listen: "address: 'unix:\(path)'"
            )
            defer { gateway.stop() }
            let client = try Wire(path: path)
            try client.send(Self.handshake)
            try expectEqual(client.readResponse().status, 101)
            let bytes = [UInt8](repeating: 7, count: 32 << 20)
            let sent = try client.sendUntilStalled(bytes, milliseconds: 200)
            client.close()
            // Served on the same event loop, so that it has seen the close.
            let other = try Wire(path: path)
            try other.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            try expectEqual(other.readResponse().text, "ok")
            gate.open()
            #expect(origin.wait { $0.allSatisfy { !$0.isOpen } })
            expectEqual(received.withLock { $0 }, sent)
        }

        /// The event loop stands still behind its turn, so that what a turn has passed on can be
        /// counted.
        @Test func `a busy tunnel passes one read on, then it is the turn of others`() throws {
            let (flood, stalled) = (Gate(), Gate())
            let folder = try TemporaryFolder.make()
            defer { TemporaryFolder.remove(folder) }
            // A Unix socket holds more than one read brings.
            let origin = try TestOrigin(path: folder + "/origin") { connection in
                guard try connection.nextRequest() != nil else { return }
                try connection.wire.send(Self.accepted)
                try flood.pass()
                let bytes = [UInt8](repeating: 7, count: EventLoop.inputBytes * 3 / 2)
                let sent = try connection.wire.sendUntilStalled(bytes, milliseconds: 200)
                expectEqual(sent, bytes.count)
                stalled.open()
                try connection.awaitEnd()
            }
            let gateway = try TestGateway(origin)
            defer {
                gateway.stop()
                origin.stop()
            }
            let door = try LoopDoor(gateway)
            let client = try gateway.connect()
            try client.send(Self.handshake)
            try expectEqual(client.readResponse().status, 101)
            try door.shut()
            flood.open()
            try stalled.pass()
            try door.shutAgain()
            while client.isReadable(within: 200) { try client.receive() }
            expectEqual(client.inbox.count, EventLoop.inputBytes)
            door.open()
            try expectEqual(
                client.take(EventLoop.inputBytes * 3 / 2).count,
                EventLoop.inputBytes * 3 / 2
            )
            door.remove()
        }

        @Test func `the end of either side with a reset ends the other`() throws {
            let bench = try Bench(script: Self.echo)
            defer { bench.stop() }
            let client = try bench.connect()
            try client.send(Self.handshake)
            try expectEqual(client.readResponse().status, 101)
            client.reset()
            #expect(bench.origin.wait { $0.allSatisfy { !$0.isOpen } })
        }

        @Test func `an idle tunnel is closed`() throws {
            let bench = try Bench(more: "timeouts: { tunnel_idle: 200ms }", script: Self.echo)
            defer { bench.stop() }
            let client = try bench.connect()
            try client.send(Self.handshake)
            try expectEqual(client.readResponse().status, 101)
            #expect(try client.endsSilently())
            #expect(bench.origin.wait { $0.allSatisfy { !$0.isOpen } })
        }
    }
}
