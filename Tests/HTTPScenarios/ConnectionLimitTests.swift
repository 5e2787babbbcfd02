import Expectations
import Foundation
import LoopbackKit
import Services
import Synchronization
import Testing

@testable import Gateway

extension Scenarios {
    /// Servers whose connections are limited, and requests that wait for them.
    struct ConnectionLimitTests {
        private static let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

        private static func gateway(
            _ servers: [(TestOrigin, max: Int)],
            loops: Int = 2,
            queue: String = "{ max: 100, timeout: 10s }",
            _ options: String = "",
            more: String = ""
        ) throws -> TestGateway {
            try TestGateway(
                [("shop", servers.map { server($0.0, $0.max) })],
                loops: loops,
                originOptions: ", queue: \(queue)" + options,
                more: more
            )
        }

        private static func server(_ origin: TestOrigin, _ max: Int) -> String {
            "{ address: \"\(origin.address)\", max_connections: \(max) }"
        }

        /// Waits until so many requests are in the queue.
        private static func waits(_ count: Int, in gateway: TestGateway) throws {
            try gateway.server.wait { $0.origins.first?.waiting == count }
        }

        /// The connections of an origin that neither side has ended.
        private final class Census: Sendable {
            private let wires = Mutex<[Int: Wire]>([:])
            private let most = Mutex(0)

            var highest: Int { most.withLock { $0 } }

            /// Counts a connection with those that were there before it. An end that the origin has
            /// not read yet is seen: the gateway closes before it connects anew.
            func count(_ connection: OriginConnection) {
                wires.withLock { wires in
                    wires[connection.number] = connection.wire
                    // POLLRDHUP (Linux, poll(2)).
                    let open = wires.values.count {
                        !Wire.isReady($0.descriptor, for: 0x2000, within: 0)
                    }
                    most.withLock { $0 = max($0, open) }
                }
            }

            func leave(_ connection: OriginConnection) {
                wires.withLock { $0[connection.number] = nil }
            }
        }

        /// Asks from several clients at once, each so often on a connection that is kept for a few
        /// requests; all statuses.
        private static func askAll(
            _ gateway: TestGateway,
            clients: Int,
            times: Int
        ) -> [Int] {
            let statuses = Mutex<[Int]>([])
            DispatchQueue.concurrentPerform(iterations: clients) { _ in
                var client: Wire?
                for time in 0..<times {
                    var status = 0
                    do {
                        if time % 3 == 0 { client = try gateway.connect() }
                        try client?.send(get)
                        status = try client?.readFinalResponse().status ?? 0
                    } catch {
                        client = try? gateway.connect()
                    }
                    statuses.withLock { $0.append(status) }
                }
            }
            return statuses.withLock { $0 }
        }

        @Test func `a server never has more connections than it may, on all loops together`() throws
        {
            let census = Census()
            let asked = Mutex(0)
            let gate = Gate()
            let origin = try TestOrigin { connection in
                census.count(connection)
                defer { census.leave(connection) }
                while let request = try connection.nextRequest() {
                    census.count(connection)
                    if request.target == "/slow" {
                        try gate.pass()
                        try connection.answer(200, to: request)
                        continue
                    }
                    let number = asked.withLock { asked in
                        asked += 1
                        return asked
                    }
                    // Each seventh breaks, and is sent once more.
                    if number % 7 == 0 { return }
                    try connection.answer(200, to: request)
                }
            }
            defer { origin.stop() }
            let gateway = try Self.gateway([(origin, max: 3)], loops: 2, ", retries: { max: 10 }")
            defer { gateway.stop() }
            let slow = try (0..<5).map { _ in try gateway.connect() }
            for client in slow { try client.send(Self.get.replacing("GET /", with: "GET /slow")) }
            try Self.waits(2, in: gateway)
            for _ in slow { gate.open() }
            for client in slow { try expectEqual(client.readResponse().status, 200) }
            let statuses = Self.askAll(gateway, clients: 12, times: 15)
            expectEqual(statuses.count, 180)
            #expect(statuses.allSatisfy { $0 == 200 })
            expectEqual(census.highest, 3)
            let servers = try gateway.server.snapshot().origins.flatMap(\.servers)
            expectEqual(servers.map { $0.connections?.max }, [3])
            #expect(try #require(servers.first?.connections?.count) <= 3)
        }

        @Test
        func `requests wait for a connection, and are served in the order in which they came`()
            throws
        {
            let gate = Gate()
            let origin = try TestOrigin { connection in
                while let request = try connection.nextRequest() {
                    try gate.pass()
                    try connection.answer(200, to: request)
                }
            }
            defer { origin.stop() }
            let gateway = try Self.gateway(
                [(origin, max: 1)],
                more: "admin: { address: 127.0.0.1:0 }"
            )
            defer { gateway.stop() }
            var clients: [Wire] = []
            for number in 0..<6 {
                let client = try gateway.connect()
                clients.append(client)
                try client.send("GET /\(number) HTTP/1.1\r\nHost: a\r\n\r\n")
                try Self.waits(number, in: gateway)
                if number == 0 { #expect(origin.wait { $0.first?.heads.count == 1 }) }
            }
            let lines = try gateway.askOperators("/origins").text
            #expect(lines.hasSuffix("\t1 of 1 connections\t5 waiting\n"))
            for client in clients {
                gate.open()
                try expectEqual(client.readResponse().status, 200)
            }
            expectEqual(origin.requests.map(\.target), (0..<6).map { "/\($0)" })
            let metrics = try gateway.askOperators("/metrics").text
            #expect(metrics.contains("portcullis_origin_queued_total 5\n"))
            #expect(metrics.contains("portcullis_origin_queue_seconds_count 5\n"))
            #expect(metrics.contains("portcullis_origin_requests_waiting{origin=\"shop\"} 0\n"))
            #expect(metrics.contains("portcullis_origin_queue_full_total 0\n"))
        }

        @Test func `an idle connection of another loop makes room for a request`() throws {
            let origin = try TestOrigin()
            defer { origin.stop() }
            let gateway = try Self.gateway([(origin, max: 1)], loops: 4)
            defer { gateway.stop() }
            for _ in 0..<24 { try expectEqual(gateway.ask(Self.get).status, 200) }
            // The event loops took the connection from each other.
            #expect(origin.connections.count > 1)
        }

        @Test(arguments: [("{ max: 1, timeout: 10s }", 1), ("{ max: 0 }", 0)])
        func `a request that finds the queue full is answered at once`(
            queue: String,
            waiting: Int
        ) throws {
            let gate = Gate()
            let origin = try TestOrigin(script: TestOrigin.slow(until: gate))
            defer { origin.stop() }
            let gateway = try Self.gateway([(origin, max: 1)], queue: queue)
            defer { gateway.stop() }
            var clients: [Wire] = []
            for number in 0...waiting {
                let client = try gateway.connect()
                clients.append(client)
                try client.send(Self.get.replacing("GET /", with: "GET /slow"))
                try Self.waits(number, in: gateway)
                if number == 0 { #expect(origin.wait { $0.first?.heads.count == 1 }) }
            }
            let refused = try gateway.ask(Self.get)
            expectEqual(refused.status, 503)
            #expect(refused.head.has("retry-after"))
            #expect(refused.text.contains("origin-queue-full"))
            for client in clients {
                gate.open()
                try expectEqual(client.readResponse().status, 200)
            }
        }

        @Test func `a request that waits too long is answered 503, and leaves the queue`() throws {
            let gate = Gate()
            let origin = try TestOrigin(script: TestOrigin.slow(until: gate))
            defer { origin.stop() }
            let gateway = try Self.gateway([(origin, max: 1)], queue: "{ timeout: 100ms }")
            defer { gateway.stop() }
            let first = try gateway.connect()
            try first.send(Self.get.replacing("GET /", with: "GET /slow"))
            #expect(origin.wait { $0.first?.heads.count == 1 })
            let late = try gateway.ask(Self.get)
            expectEqual(late.status, 503)
            #expect(late.text.contains("origin-queue-timeout"))
            try Self.waits(0, in: gateway)
            gate.open()
            try expectEqual(first.readResponse().status, 200)
            try expectEqual(gateway.ask(Self.get).status, 200)
            expectEqual(origin.requests.count, 2)
        }

        @Test func `another server is asked before a request waits`() throws {
            let gate = Gate()
            let origins = try (0..<2).map { _ in
                try TestOrigin(script: TestOrigin.slow(until: gate))
            }
            defer { for origin in origins { origin.stop() } }
            let gateway = try Self.gateway(
                [(origins[0], max: 1), (origins[1], max: 3)],
                ", balance: hash-address"
            )
            defer { gateway.stop() }
            let clients = try (0..<4).map { _ in try gateway.connect() }
            for client in clients {
                try client.send(Self.get.replacing("GET /", with: "GET /slow"))
            }
            #expect(origins[0].wait { $0.count { $0.heads.count == 1 } == 1 })
            #expect(origins[1].wait { $0.count { $0.heads.count == 1 } == 3 })
            try Self.waits(0, in: gateway)
            for _ in clients { gate.open() }
            for client in clients { try expectEqual(client.readResponse().status, 200) }
        }

        @Test func `a tunnel holds its place, and gives it back at its end`() throws {
            let origin = try TestOrigin { connection in
                while let request = try connection.nextRequest() {
                    guard request.head.has("upgrade") else {
                        try connection.answer(200, to: request)
                        continue
                    }
                    let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                    try connection.wire.send(head + "Connection: Upgrade\r\n\r\n")
                    return try connection.awaitEnd()
                }
            }
            defer { origin.stop() }
            let gateway = try Self.gateway([(origin, max: 1)])
            defer { gateway.stop() }
            let tunnel = try gateway.connect()
            let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n"
            try tunnel.send("GET /t HTTP/1.1\r\nHost: a\r\n\(upgrade)\r\n")
            try expectEqual(tunnel.readResponse().status, 101)
            let waiting = try gateway.connect()
            try waiting.send(Self.get)
            try Self.waits(1, in: gateway)
            tunnel.close()
            try expectEqual(waiting.readResponse().status, 200)
        }

        @Test func `a client that goes away leaves the queue`() throws {
            let gate = Gate()
            let origin = try TestOrigin(script: TestOrigin.slow(until: gate))
            defer { origin.stop() }
            let gateway = try Self.gateway([(origin, max: 1)])
            defer { gateway.stop() }
            let first = try gateway.connect()
            try first.send(Self.get.replacing("GET /", with: "GET /slow"))
            #expect(origin.wait { $0.first?.heads.count == 1 })
            let gone = try gateway.connect()
            try gone.send(Self.get.replacing("GET /", with: "GET /gone"))
            let stays = try gateway.connect()
            try stays.send(Self.get)
            try Self.waits(2, in: gateway)
            gone.reset()
            try Self.waits(1, in: gateway)
            gate.open()
            try expectEqual(first.readResponse().status, 200)
            try expectEqual(stays.readResponse().status, 200)
            #expect(!origin.requests.contains { $0.target == "/gone" })
        }

        @Test func `a limit that a reload raises or takes away lets waiting requests go`() throws {
            let gate = Gate()
            let origin = try TestOrigin(script: TestOrigin.slow(until: gate))
            defer { origin.stop() }
            let gateway = try Self.gateway([(origin, max: 1)])
            defer { gateway.stop() }
            let first = try gateway.connect()
            try first.send(Self.get.replacing("GET /", with: "GET /slow"))
            #expect(origin.wait { $0.first?.heads.count == 1 })
            var clients = [first]
            for (count, server) in [(2, Self.server(origin, 2)), (3, origin.address)] {
                let waiting = try gateway.connect()
                try waiting.send(Self.get.replacing("GET /", with: "GET /slow"))
                try Self.waits(1, in: gateway)
                let text = TestGateway.text(
                    [("shop", [server])],
                    listen: "address: 127.0.0.1:0",
                    loops: 2
                )
                let file = gateway.folder + "/portcullis.yaml"
                try text.write(toFile: file, atomically: true, encoding: .utf8)
                gateway.server.readAgain()
                #expect(origin.wait { $0.reduce(0) { $0 + $1.heads.count } == count })
                clients.append(waiting)
            }
            for _ in clients { gate.open() }
            for client in clients { try expectEqual(client.readResponse().status, 200) }
        }

        @Test func `a request from before a reload waits with the others`() throws {
            let (broken, slow) = (Gate(), Gate())
            let origin = try TestOrigin { connection in
                while let request = try connection.nextRequest() {
                    // It breaks once, and is sent once more.
                    if request.target == "/broken", connection.number == 0 {
                        return try broken.pass()
                    }
                    if request.target == "/slow" { try slow.pass() }
                    try connection.answer(200, body: "ok", to: request)
                }
            }
            defer { origin.stop() }
            let gateway = try Self.gateway([(origin, max: 1)], loops: 1, ", retries: { max: 1 }")
            defer { gateway.stop() }
            let first = try gateway.connect()
            try first.send(Self.get.replacing("GET /", with: "GET /broken"))
            #expect(origin.wait { $0.first?.heads.count == 1 })
            gateway.server.readAgain()
            try gateway.server.wait { $0.configuration.generation == 2 }
            let second = try gateway.connect()
            try second.send(Self.get.replacing("GET /", with: "GET /slow"))
            try Self.waits(1, in: gateway)
            broken.open()
            // It has the place that the first one has lost.
            #expect(origin.wait { $0.count == 2 && $0[1].heads.count == 1 })
            slow.open()
            try expectEqual(second.readResponse().status, 200)
            try expectEqual(first.readResponse().status, 200)
        }
    }
}
