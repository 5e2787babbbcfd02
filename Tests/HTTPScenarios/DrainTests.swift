import Dispatch
import Expectations
import LoopbackKit
import Synchronization
import Testing

@testable import Gateway

extension Scenarios {
    /// What clients lose when the gateway is told to end: nothing that can be kept.
    struct DrainTests {
        private static let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
        private static let slow = get.replacing("GET /", with: "GET /slow")

        /// Returns when the event loops have been told, before they do anything else.
        private func beginDrain(_ gateway: TestGateway) {
            gateway.beginStop()
            gateway.server.plane.queue.sync {}
        }

        private func expectLastResponses(_ clients: [Wire]) throws {
            for client in clients {
                let response = try client.readResponse()
                expectEqual(response.status, 200)
                expectEqual(response.head.all("connection"), ["close"])
                client.close()
            }
        }

        private func waitForSlow(_ count: Int, at origin: TestOrigin) -> Bool {
            origin.wait { $0.flatMap(\.requests).count { $0.target == "/slow" } == count }
        }

        @Test
        func `72 clients with a request under way are answered, and told that it is the last`()
            throws
        {
            let gate = Gate()
            let origin = try TestOrigin(script: TestOrigin.slow(until: gate))
            defer { origin.stop() }
            let gateway = try TestGateway([("shop", [origin.address])], loops: 2)
            let clients = try (0..<72).map { _ in try gateway.connect() }
            for client in clients {
                try client.send(Self.get)
                try expectEqual(client.readResponse().status, 200)
                try client.send(Self.slow)
            }
            #expect(waitForSlow(clients.count, at: origin))
            beginDrain(gateway)
            for _ in clients { gate.open() }
            for client in clients {
                let response = try client.readResponse()
                expectEqual(response.text, "ok")
                expectEqual(response.head.all("connection"), ["close"])
                #expect(try client.endsSilently())
                client.close()
            }
            expectEqual(gateway.exitStatus(), 0)
        }

        @Test func `a request that crosses with the beginning of the drain is served`() throws {
            let origin = try TestOrigin()
            defer { origin.stop() }
            let gateway = try TestGateway(
                [("shop", [origin.address])],
                more: "timeouts: { drain_idle: 10s }"
            )
            let door = try LoopDoor(gateway)
            let clients = try (0..<72).map { _ in try gateway.connect() }
            for client in clients {
                try client.send(Self.get)
                try expectEqual(client.readResponse().status, 200)
            }
            try door.shut()
            beginDrain(gateway)
            for client in clients { try client.send(Self.get) }
            door.open()
            try expectLastResponses(clients)
            door.remove()
            expectEqual(gateway.exitStatus(), 0)
        }

        @Test func `a client that was not told yet may send one more request, and is told then`()
            throws
        {
            let gate = Gate()
            let origin = try TestOrigin { connection in
                while let request = try connection.nextRequest() {
                    guard request.target == "/slow" else {
                        try connection.answer(200, body: "ok", to: request)
                        continue
                    }
                    try connection.wire.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nsl")
                    try gate.pass()
                    try connection.wire.send("ow")
                }
            }
            defer { origin.stop() }
            let gateway = try TestGateway(origin, more: "timeouts: { drain_idle: 10s }")
            let (client, idle) = (try gateway.connect(), try gateway.connect())
            try client.send(Self.slow)
            // The head has gone out, and says that the connection stays.
            while client.inbox.count < 40 { try client.receive() }
            beginDrain(gateway)
            // Answered by the gateway itself.
            try expectEqual(idle.readOwn().all("connection"), ["close"])
            gate.open()
            let response = try client.readResponse()
            #expect(response.text == "slow" && !response.head.has("connection"))
            try client.send(Self.get)
            let last = try client.readResponse()
            #expect(last.text == "ok" && last.head.all("connection") == ["close"])
            for client in [client, idle] { client.close() }
            expectEqual(gateway.exitStatus(), 0)
        }

        @Test func `clients that wait to be accepted are served before the listener closes`() throws
        {
            let origin = try TestOrigin()
            defer { origin.stop() }
            let gateway = try TestGateway(
                [("shop", [origin.address])],
                more: "timeouts: { drain_idle: 10s }"
            )
            let door = try LoopDoor(gateway)
            try door.shut()
            // More than are accepted in one go.
            let clients = try (0..<72).map { _ in try gateway.connect() }
            beginDrain(gateway)
            for client in clients { try client.send(Self.get) }
            door.open()
            try expectLastResponses(clients)
            door.remove()
            expectEqual(gateway.exitStatus(), 0)
        }

        /// Its end can't be told from that of a client that waits for the response. The time to
        /// drain is longer than a test waits.
        @Test(arguments: ["before", "behind"])
        func `a client that has gone does not hold the drain`(_ moment: String) throws {
            let gate = Gate()
            let origin = try TestOrigin { connection in
                guard let request = try connection.nextRequest() else { return }
                guard request.target == "/slow" else { return try connection.awaitEnd() }
                try gate.pass()
                try connection.answer(200, body: "ok", to: request)
            }
            defer { origin.stop() }
            let gateway = try TestGateway(
                origin,
                more: "timeouts: { drain: 5m, drain_idle: 300ms }"
            )
            let (client, other) = (try gateway.connect(), try gateway.connect())
            try client.send(Self.get)
            try other.send(Self.slow)
            #expect(origin.wait { $0.count == 2 && $0.allSatisfy { $0.requests.count == 1 } })
            if moment == "before" { client.close() }
            gateway.beginStop()
            if moment == "behind" { client.close() }
            // The connection to the origin goes with it.
            #expect(origin.wait { $0.count { $0.isOpen } == 1 })
            // Whoever is still there is waited for.
            gate.open()
            try expectEqual(other.readResponse().text, "ok")
            other.close()
            expectEqual(gateway.exitStatus(), 0)
        }

        /// Its end does not tell whether it has gone, but what it takes does.
        @Test func `a client that has ended its direction gets all of a flowing response`() throws {
            let isOver = Mutex(false)
            let origin = try TestOrigin { connection in
                guard try connection.nextRequest() != nil else { return }
                try connection.wire.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                while !isOver.withLock({ $0 }) {
                    try connection.wire.send("1\r\nx\r\n")
                    _ = connection.wire.isReadable(within: 10)
                }
                try connection.wire.send("0\r\n\r\n")
            }
            defer { origin.stop() }
            let gateway = try TestGateway(
                origin,
                more: "timeouts: { drain: 5m, drain_idle: 2s }"
            )
            let (client, idle) = (try gateway.connect(), try gateway.connect())
            #expect(try idle.readOwn().all("connection").isEmpty)
            try client.send(Self.get)
            client.finishSending()
            while client.inbox.count < 100 { try client.receive() }
            gateway.beginStop()
            // The time of those that wait is over.
            #expect(try idle.endsSilently())
            isOver.withLock { $0 = true }
            let response = try client.readResponse()
            #expect(response.text.allSatisfy { $0 == "x" })
            client.close()
            expectEqual(gateway.exitStatus(), 0)
        }

        @Test func `an idle client that says nothing is closed after a short while`() throws {
            let origin = try TestOrigin()
            defer { origin.stop() }
            let gateway = try TestGateway(
                origin,
                more: "timeouts: { drain: 5m, drain_idle: 100ms }"
            )
            let client = try gateway.connect()
            try client.send(Self.get)
            try expectEqual(client.readResponse().status, 200)
            gateway.beginStop()
            #expect(try client.endsSilently())
            expectEqual(gateway.exitStatus(), 0)
        }
    }
}

extension Wire {
    /// The head of an answer that the gateway makes itself.
    fileprivate func readOwn() throws -> WireHead {
        try send("GET /.well-known/app-attest/none HTTP/1.1\r\nHost: a\r\n\r\n")
        let response = try readResponse()
        guard response.status == 404 else { throw WireFault.malformed("\(response.status)") }
        return response.head
    }
}
