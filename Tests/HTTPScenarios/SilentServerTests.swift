import Expectations
import Gateway
import LoopbackKit
import Services
import Testing

extension Scenarios {
    /// Servers that don't answer, beside one that does.
    struct SilentServerTests {
        private static let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
        private static let clock = ContinuousClock()

        /// Takes requests and answers none.
        private static let silent: TestOrigin.Script = { connection in
            while try connection.nextRequest() != nil {}
        }

        /// Asks this often, one request after the other, each on a connection of its own.
        private static func ask(
            _ gateway: TestGateway,
            times: Int
        ) throws -> (statuses: [Int], slowest: Duration) {
            var statuses: [Int] = []
            var slowest = Duration.zero
            for _ in 0..<times {
                let began = clock.now
                statuses.append(try gateway.ask(get).status)
                slowest = max(slowest, clock.now - began)
            }
            return (statuses, slowest)
        }

        @Test func `no request waits for a server that swallows connects while another works`()
            throws
        {
            let origin = try TestOrigin()
            let deaf = try DeafPort()
            defer { origin.stop() }
            let gateway = try TestGateway(
                [("shop", [deaf.address, origin.address])],
                loops: 4,
                more: "timeouts: { connect: 15s }\nlimits: { pooled: 0 }"
            )
            defer { gateway.stop() }
            let (statuses, slowest) = try Self.ask(gateway, times: 24)
            expectEqual(statuses, Array(repeating: 200, count: 24))
            // The head start of a connect is a quarter of a second.
            #expect(slowest < .seconds(10))
            expectEqual(origin.requests.count, 24)
            withExtendedLifetime(deaf) {}
        }

        @Test func `of two servers that swallow connects neither keeps requests from the third`()
            throws
        {
            let origin = try TestOrigin()
            let deaf = try (0..<2).map { _ in try DeafPort() }
            defer { origin.stop() }
            let gateway = try TestGateway(
                [("shop", deaf.map(\.address) + [origin.address])],
                more: "timeouts: { connect: 15s }"
            )
            defer { gateway.stop() }
            let (statuses, slowest) = try Self.ask(gateway, times: 6)
            expectEqual(statuses, Array(repeating: 200, count: 6))
            #expect(slowest < .seconds(10))
            withExtendedLifetime(deaf) {}
        }

        @Test func `a request whose time is over says nothing about a server's connects`() throws {
            let deaf = try DeafPort()
            let gateway = try TestGateway(
                [("shop", [deaf.address])],
                originOptions: ", total_timeout: 400ms",
                more: "timeouts: { connect: 1h }"
            )
            defer { gateway.stop() }
            try expectEqual(gateway.ask(Self.get).status, 504)
            let snapshot = try gateway.server.snapshot()
            let server = try #require(snapshot.origins.first?.servers.first)
            expectEqual(server.state, "up")
            expectEqual(server.failures, 0)
            withExtendedLifetime(deaf) {}
        }

        /// The server gets the end of the content when the time is over.
        @Test func `an upload that takes all of the time says nothing about its server`() throws {
            let http2: TestOrigin.Script = { connection in
                let server = try HTTP2Server(connection)
                while try server.nextRequest() != nil {}
            }
            for (script, more) in [(Self.silent, ""), (http2, ", http2: on")] {
                let origin = try TestOrigin(script: script)
                defer { origin.stop() }
                let gateway = try TestGateway(
                    [("shop", [origin.address])],
                    originOptions: ", total_timeout: 400ms" + more
                )
                defer { gateway.stop() }
                let client = try gateway.connect()
                try client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na")
                // The time has begun.
                #expect(origin.wait { !$0.isEmpty })
                // Nothing comes before the content is whole: this is a pause.
                #expect(!client.isReadable(within: 800))
                try client.send("b")
                try expectEqual(client.readFinalResponse(to: "POST").status, 504)
                let snapshot = try gateway.server.snapshot()
                let server = try #require(snapshot.origins.first?.servers.first)
                expectEqual(server.state, "up")
                expectEqual(server.failures, 0)
            }
        }

        @Test func `a server that accepts and never answers gets one request of all loops`()
            throws
        {
            let origin = try TestOrigin()
            let hung = try TestOrigin(script: Self.silent)
            defer {
                origin.stop()
                hung.stop()
            }
            let gateway = try TestGateway(
                [("shop", [hung.address, origin.address])],
                loops: 4,
                more: "timeouts: { first_byte: 300ms }\nlimits: { pooled: 0 }"
            )
            defer { gateway.stop() }
            // Which event loop takes a connection is chance, and each event loop begins with the
            // hung server.
            let (statuses, _) = try Self.ask(gateway, times: 40)
            expectEqual(statuses.count(where: { $0 == 504 }), 1)
            expectEqual(statuses.count(where: { $0 == 200 }), 39)
            expectEqual(hung.connections.count, 1)
        }

        @Test func `a server that is slow with one request and answers others is not passed over`()
            throws
        {
            let reached = Gate()
            let script: TestOrigin.Script = { connection in
                while let request = try connection.nextRequest() {
                    guard request.target != "/slow" else {
                        reached.open()
                        continue
                    }
                    try connection.answer(200, body: "ok", to: request)
                }
            }
            let origins = try (0..<2).map { _ in try TestOrigin(script: script) }
            defer { for origin in origins { origin.stop() } }
            let gateway = try TestGateway(
                [("shop", origins.map(\.address))],
                more: "timeouts: { first_byte: 1s }\nlimits: { pooled: 0 }"
            )
            defer { gateway.stop() }
            let slow = try gateway.connect()
            try slow.send(Self.get.replacing("GET /", with: "GET /slow"))
            try reached.pass()
            for _ in 0..<4 { try expectEqual(gateway.ask(Self.get).status, 200) }
            try expectEqual(slow.readFinalResponse().status, 504)
            for _ in 0..<4 { try expectEqual(gateway.ask(Self.get).status, 200) }
            // Turns went on: the first server was not passed over.
            expectEqual(origins.map(\.requests.count).sorted(), [4, 5])
        }

        @Test func `a single server that answers nobody is asked all the same`() throws {
            let hung = try TestOrigin(script: Self.silent)
            defer { hung.stop() }
            let gateway = try TestGateway(hung, more: "timeouts: { first_byte: 100ms }")
            defer { gateway.stop() }
            let (statuses, _) = try Self.ask(gateway, times: 3)
            expectEqual(statuses, [504, 504, 504])
            expectEqual(hung.connections.count, 3)
        }
    }
}
