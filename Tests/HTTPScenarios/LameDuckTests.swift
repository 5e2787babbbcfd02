import Expectations
import LoopbackKit
import Testing

extension Scenarios {
    /// The time between the signal to stop and the end of the listeners, for load balancers.
    struct LameDuckTests {
        private static let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

        private static func bench(
            _ time: String,
            http2: Bool = false,
            script: @escaping TestOrigin.Script = TestOrigin.friendly
        ) throws -> Bench {
            try Bench(
                http2: http2,
                more: """
                    admin: { address: 127.0.0.1:0 }
                    timeouts: { lame_duck: \(time), drain_idle: 100ms }
                    """,
                script: script
            )
        }

        @Test func `a lame duck says that it is not ready, and serves all clients as before`()
            throws
        {
            let bench = try Self.bench("1h")
            defer { bench.origin.stop() }
            let known = try bench.connect()
            try known.send(Self.get)
            try expectEqual(known.readResponse().status, 200)
            try expectEqual(bench.gateway.askOperators("/readyz").status, 200)
            bench.gateway.beginStop()
            let readiness = try bench.gateway.askOperators("/readyz")
            expectEqual(readiness.status, 503)
            #expect(readiness.text.contains("draining"))
            for client in [known, try bench.connect(), try bench.connect()] {
                try client.send(Self.get + Self.get)
                for _ in 0..<2 {
                    let response = try client.readResponse()
                    expectEqual(response.status, 200)
                    #expect(!response.head.has("connection"))
                }
            }
            // A second signal is in a hurry.
            bench.gateway.beginStop()
            expectEqual(bench.gateway.exitStatus(), 0)
            #expect(try known.endsSilently())
        }

        @Test func `a lame duck tells HTTP/2 clients of the end when its time is over`() throws {
            let gate = Gate()
            let bench = try Self.bench(
                "2s",
                http2: true,
                script: TestOrigin.slow(until: gate)
            )
            defer { bench.origin.stop() }
            let client = try bench.connectHTTP2()
            let slow = try client.open(HTTP2Client.get("/slow"))
            #expect(bench.origin.wait { $0.contains { $0.heads.count == 1 } })
            bench.gateway.beginStop()
            try expectEqual(bench.gateway.askOperators("/readyz").status, 503)
            // Known clients are served, and new ones, and none is sent away.
            let another = try bench.connectHTTP2()
            for client in [client, another] {
                try expectEqual(client.ask(HTTP2Client.get()).status, 200)
                #expect(client.goAways.isEmpty)
            }
            try client.readUntil { client.goAways.count == 2 }
            expectEqual(client.goAways.map(\.code), [0, 0])
            expectEqual(client.goAways[1].last, slow + 2)
            #expect(!client.soFar(slow).isComplete)
            gate.open()
            try expectEqual(client.answer(slow).status, 200)
            try expectEqual(client.lastCode(), 0)
            expectEqual(bench.gateway.exitStatus(), 0)
        }

        @Test func `a lame duck drains when its time is over`() throws {
            let bench = try Self.bench("50ms")
            defer { bench.origin.stop() }
            let client = try bench.connect()
            bench.gateway.beginStop()
            expectEqual(bench.gateway.exitStatus(), 0)
            #expect(try client.endsSilently())
        }
    }
}
